"""The current version built again, out of the source state that it was built from."""

from __future__ import annotations

from msgspec.structs import replace

from ploti.errors import Conflict
from ploti.model.admin import Outcome
from ploti.model.ids import DatasetId
from ploti.server.build.progress import Tell
from ploti.server.ports.outside import Fetched, StoredBlob
from ploti.server.ports.rows import StateRow, VersionRow
from ploti.server.ports.store import Transaction
from ploti.server.release.known import Role
from ploti.server.service.check_source import Parts, carry_out
from ploti.server.service.plan_check import RESTORED
from ploti.server.service.restore_version import bring_back
from ploti.server.service.settle_check import Arrival
from ploti.server.service.show_dataset import lock_dataset, no_version


async def rebuild_version(parts: Parts, dataset_id: DatasetId) -> Outcome:
    """Build the current version again, as a new one to be loaded, and review it like any other.

    From the order on, the dataset's next version that is sent is to be loaded, be it this one or a
    newer state (R-062, S-19). One that was restored is made of its own snapshot again. Raises
    NotFound, and Conflict where there is no state to build from.
    """
    state, version = await parts.store.write(lambda tx: _order(tx, dataset_id))
    if state.settings == RESTORED:
        return await bring_back(parts, version)
    blob = StoredBlob(name=state.blob or "", bytes=0, sha256=state.sha256)
    fetched = Fetched(blob=blob, name=state.name, validators=state.validators)

    async def bring(into: str, tell: Tell) -> Arrival:
        del into, tell
        return Arrival(fetched=fetched, sha256=state.sha256, fetched_at=state.fetched_at)

    return await carry_out(parts, dataset_id, bring, reads=state.blob, always=True)


def _order(tx: Transaction, dataset_id: DatasetId) -> tuple[StateRow, VersionRow]:
    dataset = lock_dataset(tx, dataset_id)
    current = dataset.current_version
    version = None if current is None else tx.versions.get(dataset_id, current)
    if version is None:
        raise no_version(dataset_id)
    state = tx.states.of(dataset_id).get(Role.CURRENT)
    if state is None or state.blob is None:
        raise Conflict(f"The source state of {dataset_id}'s current version is not kept: check it")
    tx.datasets.save(replace(dataset, released_again=current))
    return state, version
