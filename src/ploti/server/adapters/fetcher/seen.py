"""Which rows of a paged source came already, however many it says it has, in little memory."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from typing import Self

import numpy as np
import numpy.typing as npt

from ploti.server.adapters.fetcher.asking import TryAgain

ObjectIds = npt.NDArray[np.int64]

_DIGEST = 16
_PAGES_KIB = 32 << 10
"""KiB of them that SQLite keeps in memory; the others are in a file of its own that nobody sees."""


class Seen:
    """A set that only grows, of what tells a source's rows apart; it is on the disk.

    A source may have as many rows as fit into the largest state: as a set in memory they took some
    hundred bytes each.
    """

    def __init__(self) -> None:
        self._known = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._known.execute(f"PRAGMA cache_size = -{_PAGES_KIB}")
        self._known.execute("PRAGMA journal_mode = OFF")
        self._known.execute("CREATE TABLE seen (id BLOB PRIMARY KEY) WITHOUT ROWID")
        self._count = 0

    def __enter__(self) -> Self:
        """The set itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Forget all of it."""
        self._known.close()

    def __len__(self) -> int:
        return self._count

    async def add(self, ids: Sequence[bytes]) -> None:
        """Take in what is new of these."""
        await asyncio.to_thread(self._add, ids)

    def _add(self, ids: Sequence[bytes]) -> None:
        before = self._known.total_changes
        self._known.execute("BEGIN")
        self._known.executemany("INSERT OR IGNORE INTO seen VALUES (?)", map(_row, ids))
        self._known.execute("COMMIT")
        self._count += self._known.total_changes - before


class Listed:
    """The object ids that a layer lists, each once and in order, and which of their rows came."""

    def __init__(self, ids: ObjectIds) -> None:
        self.ids = ids
        self._came = np.zeros(len(ids), np.bool_)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def came(self) -> int:
        """How many of the rows came."""
        return int(np.count_nonzero(self._came))

    @property
    def missing(self) -> ObjectIds:
        """Those that did not."""
        return self.ids[~self._came]

    def take(self, ids: Sequence[int]) -> bool:
        """Note rows that came; False, and nothing noted, where one of them had come before.

        Raises TryAgain for a row that is not listed: it came to be after the list.
        """
        given = np.array(ids, np.int64)
        places = np.searchsorted(self.ids, given)
        places[places == len(self.ids)] = 0
        if not len(self.ids) or (self.ids[places] != given).any():
            raise TryAgain("the source changed while it was read: it gave a row that it had not")
        if len(np.unique(places)) < len(places) or self._came[places].any():
            return False
        self._came[places] = True
        return True


def _row(told: bytes) -> tuple[bytes]:
    return (told if len(told) <= _DIGEST else blake2b(told, digest_size=_DIGEST).digest(),)
