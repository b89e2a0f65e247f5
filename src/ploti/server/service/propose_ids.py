"""Proposals to replace record ids: made by staff or by a matching, shown, and rejected."""

from __future__ import annotations

from msgspec.structs import replace

from ploti.errors import Conflict, Fault, InvalidInput, NotFound
from ploti.model.admin import Proposal, ProposalKind, ProposalPage, ProposalState
from ploti.model.ids import DatasetId, ProposalId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Proposed
from ploti.server.membership.principal import Principal
from ploti.server.ports.proposals import ProposalRow
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, read_timed_cursor, timed_cursor
from ploti.server.service.release_version import attempt_of
from ploti.server.service.show_dataset import find_dataset, lock_dataset, no_version


def propose_replacement(
    tx: Transaction,
    dataset_id: DatasetId,
    *,
    column: str | None,
    proposal_id: ProposalId,
    by: Principal,
    now: Instant,
) -> Proposal:
    """Propose to deal all ids of a dataset anew, in the order of a column where one is named.

    Nothing changes before it is approved. Raises NotFound where there is no version yet, and
    InvalidInput for a column that the current version has not.
    """
    dataset = lock_dataset(tx, dataset_id)
    current = dataset.current_version
    version = None if current is None else tx.versions.get(dataset_id, current)
    if version is None:
        raise no_version(dataset_id)
    schema = tx.versions.content(dataset_id, version.version).schema
    names = [each.name for each in schema.columns]
    if column is not None and column not in names:
        message = f"'{column}' is no column of {dataset_id}: it has {', '.join(names)}"
        raise InvalidInput(message, errors=(Fault("from", message),))
    row = ProposalRow(
        id=proposal_id,
        dataset_id=dataset_id,
        kind=ProposalKind.REPLACE,
        state=ProposalState.OPEN,
        version=version.version,
        column=column,
        proposed=Proposed(records=version.row_count, estimate=None, examples=[]),
        made_at=now,
        made_by=by.member_id,
    )
    tx.proposals.add(row)
    return show_proposal(row)


def list_proposals(
    tx: Transaction, dataset_id: DatasetId, *, cursor: str | None, limit: int
) -> ProposalPage:
    """The proposals of a dataset, newest first; raises NotFound where there is none such."""
    check_limit(limit)
    place = read_timed_cursor(cursor)
    found = tx.proposals.page(
        find_dataset(tx, dataset_id).id,
        before=place and (place[0], ProposalId(place[1])),
        limit=limit + 1,
    )
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda each: timed_cursor(each.made_at, each.id)
    )
    return ProposalPage(proposals=[show_proposal(each) for each in page], next_cursor=next_cursor)


def get_proposal(tx: Transaction, proposal_id: ProposalId) -> Proposal:
    """One proposal; raises NotFound."""
    return show_proposal(_find(tx, proposal_id))


def reject_proposal(
    tx: Transaction, proposal_id: ProposalId, *, by: Principal, note: str, now: Instant
) -> Proposal:
    """Put a proposal aside; raises NotFound, and Conflict where it was decided."""
    proposal = find_open(tx, proposal_id)
    rejected = replace(
        proposal,
        state=ProposalState.REJECTED,
        decided_at=now,
        decided_by=by.member_id,
        note=note or None,
    )
    keep_decided(tx, rejected)
    return show_proposal(rejected)


def keep_decided(tx: Transaction, proposal: ProposalRow) -> None:
    """Keep what became of a proposal; what it was made of loses its use."""
    tx.proposals.save(proposal)
    if proposal.kind is ProposalKind.CONTINUE:
        tx.versions.drop_links(proposal.dataset_id, proposal.version)
        tx.builds.end(attempt_of(proposal))


def find_open(tx: Transaction, proposal_id: ProposalId) -> ProposalRow:
    """A proposal to be decided; raises NotFound, and Conflict where it was decided."""
    found = _find(tx, proposal_id)
    if found.state is not ProposalState.OPEN:
        raise Conflict(f"{proposal_id} was {found.state} already")
    return found


def _find(tx: Transaction, proposal_id: ProposalId) -> ProposalRow:
    """A proposal whose version is released; raises NotFound."""
    found = tx.proposals.get(proposal_id)
    if found is None or found.state is ProposalState.WAITING:
        raise NotFound(f"There is no proposal {proposal_id}: the list of proposals has their ids")
    return found


def show_proposal(row: ProposalRow) -> Proposal:
    """A proposal as staff see it."""
    return Proposal(
        id=row.id,
        dataset_id=row.dataset_id,
        kind=row.kind,
        state=row.state,
        version=row.version,
        column=row.column,
        records=row.proposed.records,
        estimate=row.proposed.estimate,
        examples=row.proposed.examples,
        made_at=row.made_at,
        made_by=row.made_by,
        decided_at=row.decided_at,
        decided_by=row.decided_by,
        note=row.note,
    )
