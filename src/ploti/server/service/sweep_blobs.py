"""Removes what ended attempts left and nothing uses: by name, since every blob has an attempt."""

from __future__ import annotations

from ploti.model.ids import DatasetId
from ploti.server.ports.outside import Blobs
from ploti.server.ports.rows import AttemptId, AttemptRow
from ploti.server.ports.store import Store, Transaction


def source_blob(dataset_id: DatasetId, attempt_id: AttemptId) -> str:
    """The name under which an attempt keeps the source's bytes."""
    return f"states/{dataset_id}/{attempt_id}"


def file_blob(attempt: AttemptRow, name: str) -> str:
    """The name of a file that an attempt built."""
    return f"{_below(attempt)}{name}"


async def sweep_blobs(store: Store, blobs: Blobs) -> None:
    """Remove what lost its use; a crash in between repeats it, nothing in use is ever removed."""
    for attempt in await store.read(lambda tx: tx.builds.to_sweep()):
        await _sweep(store, blobs, attempt)


async def _sweep(store: Store, blobs: Blobs, attempt: AttemptRow) -> None:
    kept = await store.read(lambda tx: tx.builds.kept(attempt))
    names = {attempt.source_blob, *await blobs.names(_below(attempt))}
    for name in sorted(names - kept):
        await blobs.delete(name)
    await store.write(lambda tx: _mark(tx, attempt, kept))


def _mark(tx: Transaction, attempt: AttemptRow, kept: set[str]) -> None:
    """Only where nothing lost its use meanwhile: else the next sweep looks again."""
    if tx.builds.kept(attempt) != kept:
        return
    if kept:
        tx.builds.swept(attempt.id)
    else:
        tx.builds.forget(attempt.id)


def _below(attempt: AttemptRow) -> str:
    return f"datasets/{attempt.dataset_id}/{attempt.version}/{attempt.id}/"
