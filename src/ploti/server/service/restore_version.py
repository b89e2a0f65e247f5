"""An older version's content made current again, under a new number."""

from __future__ import annotations

from msgspec.structs import replace

from ploti.errors import Conflict, Expired
from ploti.model.admin import Outcome
from ploti.model.ids import DatasetId
from ploti.server.build.candidate import FileRole
from ploti.server.build.progress import Tell
from ploti.server.ports.outside import Fetched, StoredBlob
from ploti.server.ports.rows import VersionRow, VersionState
from ploti.server.ports.store import Transaction
from ploti.server.service.check_source import Parts, carry_out
from ploti.server.service.plan_check import find_maps
from ploti.server.service.plan_jobs import plan_jobs
from ploti.server.service.settle_check import Arrival
from ploti.server.service.show_dataset import lock_dataset, no_version
from ploti.server.service.show_version import snapshot_of


async def restore_version(parts: Parts, dataset_id: DatasetId, number: int) -> Outcome:
    """Make the content of an older version a new one to be loaded, reviewed like any other.

    From the order on checks pause until they are resumed, and the dataset's next version that is
    sent is to be loaded (S-19, S-23). Raises NotFound, Expired where the snapshot is not kept any
    more, and Conflict for the version that is current.
    """
    version = await parts.store.write(lambda tx: _order(tx, dataset_id, number))
    return await bring_back(parts, version)


async def bring_back(parts: Parts, version: VersionRow) -> Outcome:
    """Make the records of a version's snapshot a new version to be loaded, and review it."""
    dataset_id, number = version.dataset_id, version.version

    async def bring(into: str, tell: Tell) -> Arrival:
        del tell  # it is here already
        files = await parts.store.read(lambda tx: tx.versions.files(dataset_id, number))
        snapshot = snapshot_of(files)
        await parts.blobs.copy(snapshot.blob, into)
        blob = StoredBlob(name=into, bytes=snapshot.bytes, sha256=snapshot.sha256)
        fetched = Fetched(blob=blob, name=f"{dataset_id}_v{number}.parquet")
        at = version.source_fetched_at
        return Arrival(fetched=fetched, sha256=blob.sha256, fetched_at=at)

    return await carry_out(parts, dataset_id, bring, always=True, restores=number)


def _order(tx: Transaction, dataset_id: DatasetId, number: int) -> VersionRow:
    dataset = lock_dataset(tx, dataset_id)
    version = tx.versions.get(dataset_id, number)
    if version is None or version.state is not VersionState.RELEASED:
        raise no_version(dataset_id, number)
    if number == dataset.current_version:
        raise Conflict(f"Version {number} of {dataset_id} is current: nothing need be restored")
    files = tx.versions.files(dataset_id, number)
    if not any(file.role is FileRole.SNAPSHOT for file in files):
        raise Expired(f"The snapshot of version {number} of {dataset_id} is past retention")
    find_maps(tx, dataset, after=number)
    paused = replace(dataset.declaration, paused=True)
    ordered = replace(dataset, declaration=paused, released_again=number)
    tx.datasets.save(ordered)
    plan_jobs(tx, ordered)
    return version
