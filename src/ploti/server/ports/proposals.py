"""Port of the proposals to replace record ids."""

from __future__ import annotations

from typing import Protocol

from ploti.model.admin import ProposalKind, ProposalState
from ploti.model.ids import DatasetId, ProposalId
from ploti.model.wire import Instant, Value
from ploti.server.build.candidate import Proposed


class ProposalRow(Value, kw_only=True):
    """A proposal: of staff, to replace all ids; or of a matching, of the records of a version.

    One of a matching waits until its version is released, and is forgotten where that never is.
    """

    id: ProposalId
    dataset_id: DatasetId
    kind: ProposalKind
    state: ProposalState
    version: int
    column: str | None
    proposed: Proposed
    made_at: Instant
    made_by: str | None
    decided_at: Instant | None = None
    decided_by: str | None = None
    note: str | None = None


class Proposals(Protocol):
    """Proposals to replace record ids."""

    def add(self, proposal: ProposalRow) -> None:
        """Keep a new proposal."""
        ...

    def save(self, proposal: ProposalRow) -> None:
        """Keep what was decided of a proposal."""
        ...

    def get(self, proposal_id: ProposalId) -> ProposalRow | None:
        """A proposal; None where there is none."""
        ...

    def of_version(self, dataset_id: DatasetId, version: int) -> list[ProposalRow]:
        """The proposals of a version's matching."""
        ...

    def page(
        self, dataset_id: DatasetId, *, before: tuple[Instant, ProposalId] | None, limit: int
    ) -> list[ProposalRow]:
        """The proposals of a dataset that do not wait for their version, newest first."""
        ...

    def drop(self, proposal_id: ProposalId) -> None:
        """Forget a proposal."""
        ...
