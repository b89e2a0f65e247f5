"""Downloads of a version's files: resumed when broken, checked before they are used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ploti.model.ids import DatasetId

if TYPE_CHECKING:
    from ploti.client.sides import BlockingSide

Role = Literal["snapshot", "changes", "schema"]


def fetch_file(
    client: BlockingSide, dataset_id: DatasetId, version: int, role: Role, format: str, to: Path
) -> Path:
    """Download one file of a version to the path `to`, which is given back.

    Until all its bytes are there and have the sha256 that the version gives, the file is called
    `<to>.part`; a broken download goes on from there, with fresh links when they have expired.
    A file at `to` that has the right sum already is left as it is.

    Raises:
        SyncError: The version has no such file, there is no room, or the bytes are damaged.
        TransportError: The server cannot be reached, or no more bytes come.
        ApiError: The server refuses (`Expired`, `NotSubscribed`, `NotFound`, ...).
    """
    raise NotImplementedError
