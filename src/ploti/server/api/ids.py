"""The staff's side of record ids: proposals to replace them, and what becomes of these."""

from __future__ import annotations

from litestar import Router, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from ploti.errors import Code
from ploti.model.admin import Decision, NewReplacement, Outcome, Proposal, ProposalPage
from ploti.model.ids import DatasetId, ProposalId
from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import BODY, PROBLEMS
from ploti.server.api.params import PAGE, Cursor, Limit
from ploti.server.membership.principal import ADMIN
from ploti.server.service import propose_ids
from ploti.server.service.replace_ids import approve_proposal as approve

_ONE = {PROBLEMS: (Code.NOT_FOUND,)}
_DECIDED = {PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT), BODY: Decision}


@get("/datasets/{dataset:str}/proposals", opt=_ONE)
async def list_proposals(
    caller: NamedDependency[Caller],
    *,
    dataset: FromPath[DatasetId],
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> ProposalPage:
    """Proposals to replace a dataset's record ids, newest first."""
    return await caller.read(
        lambda tx, _: propose_ids.list_proposals(tx, dataset, cursor=cursor, limit=limit)
    )


@get("/proposals/{proposal:str}", opt=_ONE)
async def get_proposal(
    caller: NamedDependency[Caller], *, proposal: FromPath[ProposalId]
) -> Proposal:
    """One proposal with its examples."""
    return await caller.read(lambda tx, _: propose_ids.get_proposal(tx, proposal))


@post("/datasets/{dataset:str}/proposals", opt=_ONE | {BODY: NewReplacement})
async def propose_replacement(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
) -> Proposal:
    """Propose to deal all record ids of a dataset anew; nothing changes before it is approved."""
    asked = await caller.body(NewReplacement)
    now, new = backend.clock.now(), ProposalId(backend.ids.token("prop_"))
    return await caller.write(
        lambda tx, who: propose_ids.propose_replacement(
            tx, dataset, column=asked.from_, proposal_id=new, by=who, now=now
        )
    )


@post(
    "/proposals/{proposal:str}/approve",
    status_code=200,
    opt=_DECIDED | {PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT, Code.UNAVAILABLE)},
)
async def approve_proposal(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    proposal: FromPath[ProposalId],
) -> Outcome:
    """Replace the ids as proposed: a version to load, with its id map, released at once."""
    decision = await caller.body(Decision)
    who = await caller.admit()
    return await caller.once(lambda: approve(backend.parts, proposal, by=who, note=decision.note))


@post("/proposals/{proposal:str}/reject", status_code=200, opt=_DECIDED)
async def reject_proposal(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    proposal: FromPath[ProposalId],
) -> Proposal:
    """Put a proposal aside: the ids stay as they are."""
    decision = await caller.body(Decision)
    now = backend.clock.now()
    return await caller.write(
        lambda tx, who: propose_ids.reject_proposal(
            tx, proposal, by=who, note=decision.note, now=now
        )
    )


ROUTER = Router(
    "/v1/admin",
    route_handlers=[
        list_proposals,
        get_proposal,
        propose_replacement,
        approve_proposal,
        reject_proposal,
    ],
    opt={PERMISSION: ADMIN},
    tags=["admin"],
)
