"""Proposals to replace record ids, in a table."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, tuple_, update

from ploti.model.admin import ProposalKind, ProposalState
from ploti.model.ids import DatasetId, ProposalId
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import id_proposal
from ploti.server.ports.proposals import ProposalRow


class SqlProposals:
    """The port's `Proposals` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, proposal: ProposalRow) -> None:
        """Keep a new proposal."""
        self._connection.execute(insert(id_proposal).values(fields_of(proposal)))

    def save(self, proposal: ProposalRow) -> None:
        """Keep what was decided of a proposal."""
        same = id_proposal.c.id == proposal.id
        self._connection.execute(update(id_proposal).where(same).values(fields_of(proposal)))

    def get(self, proposal_id: ProposalId) -> ProposalRow | None:
        """A proposal; None where there is none."""
        wanted = _PROPOSAL.where(id_proposal.c.id == proposal_id)
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else value_of(ProposalRow, found)

    def of_version(self, dataset_id: DatasetId, version: int) -> list[ProposalRow]:
        """The proposals of a version's matching."""
        wanted = _PROPOSAL.where(
            id_proposal.c.dataset_id == dataset_id,
            id_proposal.c.version == version,
            id_proposal.c.kind == ProposalKind.CONTINUE,
        )
        return [value_of(ProposalRow, row) for row in self._connection.execute(wanted).mappings()]

    def page(
        self, dataset_id: DatasetId, *, before: tuple[Instant, ProposalId] | None, limit: int
    ) -> list[ProposalRow]:
        """The proposals of a dataset that do not wait for their version, newest first."""
        wanted = (
            _PROPOSAL.where(
                id_proposal.c.dataset_id == dataset_id,
                id_proposal.c.state != ProposalState.WAITING,
            )
            .order_by(id_proposal.c.made_at.desc(), id_proposal.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            wanted = wanted.where(tuple_(id_proposal.c.made_at, id_proposal.c.id) < before)
        return [value_of(ProposalRow, row) for row in self._connection.execute(wanted).mappings()]

    def drop(self, proposal_id: ProposalId) -> None:
        """Forget a proposal."""
        self._connection.execute(delete(id_proposal).where(id_proposal.c.id == proposal_id))


_PROPOSAL = select(*columns_of(id_proposal, ProposalRow))
