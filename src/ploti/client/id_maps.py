"""Id maps of a dataset's versions, put together over as many as lie between two of them."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping
from pathlib import Path

from anyio.to_thread import run_sync as in_thread

from ploti.client.calls import BUILDING
from ploti.client.endpoints import get_version, list_versions
from ploti.client.files import download
from ploti.client.transport import Transport
from ploti.errors import Expired
from ploti.model.version import ResyncReason, VersionSummary

_ROW = ("_ploti_previous_record_id", "_ploti_record_id")


async def id_map(
    transport: Transport, dataset_id: str, from_version: int, to_version: int
) -> dict[str, str]:
    """The record ids of one version that differ in a later one, each with the id that it is now.

    The maps of all versions between are put together. An id that is neither in the map nor in the
    later version belongs to a record that is gone (S-24).

    Raises:
        Expired: A map between the two is past retention: load the later version.
        ApiError: The server refuses.
        TransportError: The server cannot be reached.
    """
    found: dict[str, str] = {}
    for version in await _loaded_between(transport, dataset_id, from_version, to_version):
        shown = await transport.send(
            get_version(dataset_id, version.version, format="csv", patience=BUILDING)
        )
        if shown.reason is not ResyncReason.RECORD_IDS_CHANGED:
            continue
        if not shown.files.id_map:
            raise Expired(
                f"The id map of version {version.version} of {dataset_id} is past retention:"
                f" load version {to_version}"
            )
        found = compose(found, await _read(transport, dataset_id, version.version))
    return found


def compose(first: Mapping[str, str], then: Mapping[str, str]) -> dict[str, str]:
    """One map that leads where two lead, one after the other; ids that come home are left out."""
    both = {old: then.get(new, new) for old, new in first.items()}
    moved = set(first.values())
    both |= {old: new for old, new in then.items() if old not in moved and old not in first}
    return {old: new for old, new in both.items() if old != new}


async def _loaded_between(
    transport: Transport, dataset_id: str, start: int, end: int
) -> list[VersionSummary]:
    """The versions after one, up to another, that are to be loaded."""
    found: list[VersionSummary] = []
    after: int | None = start
    while after is not None and after < end:
        listed = await transport.send(list_versions(dataset_id, after=after, limit=500))
        found += [each for each in listed.items if each.version <= end and each.resync_required]
        after = listed.next_cursor
    return found


async def _read(transport: Transport, dataset_id: str, version: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "id_map.csv")
        await download(transport, dataset_id, version, to=path, role="id_map", format="csv")
        return await in_thread(_parse, path)


def _parse(path: Path) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row[_ROW[0]]: row[_ROW[1]] for row in csv.DictReader(file)}
