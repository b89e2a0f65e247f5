"""Port of the database for backups and restores: how far numbers were given."""

from __future__ import annotations

from typing import Protocol

from ploti.model.wire import Instant


class Recovery(Protocol):
    """How far numbers were given, to be known again after a restore."""

    def given(self) -> int:
        """How many bodies were ever kept; it only rises, and any number given raises it."""
        ...

    def now(self) -> Instant | None:
        """The database's own clock; None where it goes by this machine's."""
        ...

    def raise_given(self, to: int) -> None:
        """Have `given` go on from this number."""
        ...

    def raise_logs(self, by: int) -> int:
        """Raise every log's newest number, and drop all events; how many logs there are."""
        ...

    def raise_datasets(self, by: int) -> int:
        """Raise every dataset's next number, and have its next version loaded; how many."""
        ...

    def blobs(self) -> set[str]:
        """The names of all files that a version or a source's state has."""
        ...
