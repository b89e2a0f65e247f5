"""A process that releases versions as fast as it can, and says each once it is durable."""

import asyncio
import sys

from tests.fakes.releases import release

from ploti.model.ids import DatasetId
from ploti.server.adapters.store import SqliteStore

DATASET = DatasetId("ds_a")


async def main(path: str) -> None:
    store = SqliteStore(path)
    while True:
        print(await store.write(lambda tx: release(tx, DATASET)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
