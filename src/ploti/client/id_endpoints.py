"""REST calls about record ids: proposals to replace them, and what becomes of these."""

from __future__ import annotations

from ploti.client.calls import BUILDING, Call, ListCall, Listed, path, query, reads, reads_list
from ploti.model.admin import Decision, NewReplacement, Outcome, Proposal, ProposalPage
from ploti.model.wire import encode


def list_proposals(
    dataset_id: str, *, cursor: str | None = None, limit: int | None = None
) -> ListCall[Proposal, str | None]:
    """Proposals to replace a dataset's record ids, newest first."""
    return ListCall(
        method="GET",
        path=path("admin", "datasets", dataset_id, "proposals"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(ProposalPage, lambda page: Listed(page, page.proposals, page.next_cursor)),
    )


def get_proposal(proposal_id: str) -> Call[Proposal]:
    """One proposal with its examples."""
    return Call(method="GET", path=path("admin", "proposals", proposal_id), read=reads(Proposal))


def propose_replacement(dataset_id: str, *, from_column: str | None = None) -> Call[Proposal]:
    """Propose to deal all record ids of a dataset anew, in the order of a column if one is named.

    Nothing changes before the proposal is approved.
    """
    return Call(
        method="POST",
        path=path("admin", "datasets", dataset_id, "proposals"),
        body=encode(NewReplacement(from_=from_column)),
        read=reads(Proposal),
    )


def approve_proposal(
    proposal_id: str, *, note: str = "", timeout: float = BUILDING
) -> Call[Outcome]:
    """Replace record ids as proposed: a version to load, with a map from the ids before."""
    return Call(
        method="POST",
        path=path("admin", "proposals", proposal_id, "approve"),
        body=encode(Decision(note=note)),
        read=reads(Outcome),
        timeout=timeout,
    )


def reject_proposal(proposal_id: str, *, note: str = "") -> Call[Proposal]:
    """Put a proposal aside: the ids stay as they are."""
    return Call(
        method="POST",
        path=path("admin", "proposals", proposal_id, "reject"),
        body=encode(Decision(note=note)),
        read=reads(Proposal),
    )
