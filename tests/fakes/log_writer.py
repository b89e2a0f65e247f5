"""A process that writes to the log's tables all the time, and delivers, until it is killed."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

from sqlalchemy.exc import IntegrityError
from tests.fakes.log_deeds import RolledBackError, pick

from ploti.errors import PlotiError
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.meters import PrometheusMeters
from ploti.server.adapters.sealer import Sealer
from ploti.server.adapters.store import PostgresStore, SqliteStore, SqlStore
from ploti.server.deliver.answers import Answer
from ploti.server.service.deliver_due import Delivering
from ploti.server.worker.deliveries import DeliveryWorker

SEALED_WITH = b"of the tests, thirty-two or more"


class FilePoster:
    """Posts a line a body at the end of a file, whole: every process of a test shares it."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def refuse(self, url: str) -> str | None:
        return None

    async def post(self, url: str, *, body: bytes, headers: dict[str, str]) -> Answer:
        os.write(self._file, url.encode() + b" " + body + b"\n")
        return Answer(ms=1, status=200)


def open_store(where: str) -> SqlStore:
    """SQLite at a path, or PostgreSQL at an address."""
    if where.startswith("postgresql:"):
        return PostgresStore(where, now=SystemClock().now)
    return SqliteStore(where)


def delivering(store: SqlStore, sent: Path) -> Delivering:
    """The ports of a worker that posts to a file."""
    return Delivering(
        store=store,
        poster=FilePoster(sent),
        sealer=Sealer([SEALED_WITH]),
        clock=SystemClock(),
        ids=RandomIds(),
        meters=PrometheusMeters(),
        base="http://a",
    )


async def write_for_ever(store: SqlStore, random: Random) -> None:
    while True:
        # One that was rolled back, that lost a race for an id, or whose dataset is not there
        with suppress(RolledBackError, IntegrityError, PlotiError):
            await store.write(pick(random))


async def main(where: str, sent: Path, *, seed: int, writers: int) -> None:
    store = open_store(where)
    worker = DeliveryWorker(delivering(store, sent))
    store.on_log(worker.ring)
    print("writes", flush=True)
    writing = [write_for_ever(store, Random(f"{seed}/{number}")) for number in range(writers)]
    await asyncio.gather(worker.run(), *writing)


if __name__ == "__main__":
    asyncio.run(
        main(sys.argv[1], Path(sys.argv[2]), seed=int(sys.argv[3]), writers=int(sys.argv[4]))
    )
