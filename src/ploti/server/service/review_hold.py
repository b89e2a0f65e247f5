"""Holds shown to staff, and ended by them."""

from __future__ import annotations

from msgspec import structs

from ploti.errors import Conflict, NotFound
from ploti.model.admin import AcceptedFinding, AcceptedPage, Hold, HoldPage, HoldState
from ploti.model.ids import DatasetId, HoldId, MemberId
from ploti.model.wire import Instant
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import HoldRow, ListedHold
from ploti.server.ports.store import Transaction
from ploti.server.release.accepted import Accepted, is_acceptable
from ploti.server.service.page_lists import check_limit, cut, read_timed_cursor, timed_cursor
from ploti.server.service.plan_jobs import plan_stale
from ploti.server.service.release_version import end_hold
from ploti.server.service.show_dataset import find_dataset


def list_holds(
    tx: Transaction, *, cursor: str | None, limit: int, state: HoldState | None
) -> HoldPage:
    """Holds, newest first, of one state where it is given."""
    check_limit(limit)
    place = read_timed_cursor(cursor)
    found = tx.holds.page(
        before=place and (place[0], HoldId(place[1])), limit=limit + 1, state=state
    )
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda listed: timed_cursor(listed.hold.since, listed.hold.id)
    )
    return HoldPage(holds=[_show(tx, listed) for listed in page], next_cursor=next_cursor)


def get_hold(tx: Transaction, hold_id: HoldId) -> Hold:
    """One hold; raises NotFound."""
    return _show(tx, find_hold(tx, hold_id))


def release_hold(
    tx: Transaction, hold_id: HoldId, *, by: Principal, note: str, now: Instant
) -> Hold:
    """Release a held version with its events (R-081), and accept what it was held for.

    Raises NotFound, and Conflict where the hold has ended or the version's records are not matched.
    """
    hold = _lock_open(tx, hold_id)
    if not hold.matched:
        raise Conflict(f"{hold_id} holds a version whose records are not matched")
    end_hold(tx, hold, HoldState.RELEASED, by=by.member_id, note=note, now=now)
    _accept(tx, hold, by=by, note=note, now=now)
    plan_stale(tx, find_dataset(tx, hold.dataset_id))
    return get_hold(tx, hold_id)


def discard_hold(
    tx: Transaction, hold_id: HoldId, *, by: Principal, note: str, now: Instant
) -> Hold:
    """Discard a held version: the next one follows from what subscribers hold (R-082).

    Raises NotFound, and Conflict where the hold has ended.
    """
    hold = _lock_open(tx, hold_id)
    end_hold(tx, hold, HoldState.DISCARDED, by=by.member_id, note=note, now=now)
    plan_stale(tx, find_dataset(tx, hold.dataset_id))
    return get_hold(tx, hold_id)


def list_accepted(
    tx: Transaction, dataset_id: DatasetId, *, cursor: str | None, limit: int
) -> AcceptedPage:
    """The accepted findings of a dataset, by id; raises NotFound where there is none such."""
    check_limit(limit)
    accepted = tx.holds.accepted(find_dataset(tx, dataset_id).id)
    found = [each for each in accepted if cursor is None or each.id > cursor][: limit + 1]
    page, next_cursor = cut(found, limit=limit, cursor=lambda each: each.id)
    names = tx.members.names({each.accepted_by for each in page})
    shown = [
        AcceptedFinding(**structs.asdict(each), accepted_by_name=names.get(each.accepted_by))
        for each in page
    ]
    return AcceptedPage(findings=shown, next_cursor=next_cursor)


def withdraw_accepted(tx: Transaction, dataset_id: DatasetId, finding_id: str) -> None:
    """Have a finding hold versions of a dataset again; raises NotFound."""
    if finding_id not in {each.id for each in tx.holds.accepted(dataset_id)}:
        raise NotFound(f"There is no accepted finding {finding_id} of {dataset_id}")
    tx.holds.withdraw(finding_id)


def _accept(tx: Transaction, hold: HoldRow, *, by: Principal, note: str, now: Instant) -> None:
    held_for = [finding for finding in hold.findings if is_acceptable(finding)]
    for number, finding in enumerate(held_for, start=1):
        tx.holds.accept(
            Accepted(
                id=f"acc_{hold.id.removeprefix('hold_')}_{number:02d}",
                dataset_id=hold.dataset_id,
                kind=finding.kind,
                subject=finding.subject,
                measure=finding.measure,
                message=finding.message,
                hold_id=hold.id,
                accepted_at=now,
                accepted_by=by.member_id,
                note=note or None,
            )
        )


def find_hold(tx: Transaction, hold_id: HoldId) -> ListedHold:
    """A hold with its version; raises NotFound."""
    found = tx.holds.get(hold_id)
    if found is None:
        raise NotFound(f"There is no hold {hold_id}: the list of holds has their ids")
    return found


def _lock_open(tx: Transaction, hold_id: HoldId) -> HoldRow:
    """The hold as it stands once its dataset is locked; raises Conflict where it has ended."""
    tx.datasets.lock(find_hold(tx, hold_id).hold.dataset_id)
    hold = find_hold(tx, hold_id).hold
    if hold.state is not HoldState.OPEN:
        raise Conflict(f"{hold_id} has ended already: its version was {hold.state}")
    return hold


def _show(tx: Transaction, listed: ListedHold) -> Hold:
    hold, version = listed.hold, listed.version
    decided_by = None if hold.decided_by is None else MemberId(hold.decided_by)
    return Hold(
        id=hold.id,
        dataset_id=hold.dataset_id,
        version=hold.version,
        current_version=version.previous_version,
        reason=hold.reason,
        state=hold.state,
        since=hold.since,
        row_count=version.row_count,
        current_row_count=listed.base_row_count,
        counts=version.counts,
        schema_change=version.schema_change,
        findings=hold.findings,
        matched=hold.matched,
        decided_at=hold.decided_at,
        decided_by=decided_by,
        decided_by_name=decided_by and tx.members.names([decided_by]).get(decided_by),
        note=hold.note,
    )
