"""A resource of a CKAN: the file that it leads to, or its table in the datastore."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from yarl import URL

from ploti.errors import SourceError
from ploti.server.adapters.fetcher.asking import Ask, Reply, decoded, failure

_IN_DATASTORE = "datastore"


class Resource(NamedTuple):
    """Where a resource's data is: an address, and whether rows are to be had there or a file.

    `suffix` is what the CKAN calls the format (`.csv`); empty where it does not.
    """

    url: str
    rows: bool
    suffix: str = ""

    def named(self, name: str) -> str:
        """A file's name, with the suffix where it has none."""
        return name if PurePosixPath(name).suffix else name + self.suffix


class _Resource(msgspec.Struct):
    id: str
    url: str | None = None
    url_type: str | None = None
    format: str | None = None
    datastore_active: bool | None = None


class _Answer(msgspec.Struct):
    success: bool
    result: _Resource | None = None
    error: msgspec.Raw = msgspec.Raw()


async def find_resource(call: str, ask: Ask) -> Resource:
    """What a `resource_show` tells; raises SourceError where it leads to no data."""
    return await ask(URL(call), lambda reply: _resource(call, reply))


def _resource(call: str, reply: Reply) -> Resource:
    answer = decoded(reply.body, _Answer)
    if not answer.success or answer.result is None:
        raise SourceError(failure(bytes(answer.error)))
    found = answer.result
    if found.url_type == _IN_DATASTORE and found.datastore_active:
        table = URL(call).with_query({"resource_id": found.id})
        path = table.path.replace("resource_show", "datastore_search")
        return Resource(url=str(table.with_path(path).with_query(table.query)), rows=True)
    if not found.url or not urlsplit(found.url).scheme:
        raise SourceError("the resource has no file: it names no address to download it from")
    word = (found.format or "").strip().lower().lstrip(".")
    return Resource(url=found.url, rows=False, suffix=f".{word}" if word.isalnum() else "")
