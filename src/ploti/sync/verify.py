"""Proves that a copy equals the version it holds, or says in which digest buckets it does not."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from ploti.errors import ApiError, ExitStatus, Forbidden, RateLimited, SyncError, Unauthenticated
from ploti.errors import Unavailable as ServerUnavailable
from ploti.model.digest import PREFIX, Buckets
from ploti.model.ids import DatasetId
from ploti.model.version import Version, VersionDigest
from ploti.model.wire import Value
from ploti.sync.destination import Destination, Session, TableError
from ploti.sync.feed import Feed
from ploti.sync.held import Held, State
from ploti.sync.progress import Moment, Observer, Progress, ignore

_SHOWN = 5


class Verification(Value, kw_only=True):
    """What was found about one table.

    `matches` is None where the version's digest could not be had; `buckets` are the numbers of
    those that differ (0 to 255: the first byte of the record id's SHA-256); `repaired` is whether
    the table differed and was made equal.
    """

    dataset_id: DatasetId
    table: str
    version: int
    matches: bool | None
    buckets: list[int]
    detail: str
    repaired: bool = False


class Verified(Value, kw_only=True):
    """All tables that hold a version."""

    datasets: list[Verification]

    @property
    def differing(self) -> dict[DatasetId, list[int]]:
        """The buckets that differ, of every table that does; none where it cannot be looked at."""
        return {each.dataset_id: each.buckets for each in self.datasets if each.matches is False}

    def after_repair(self, again: Verified) -> Verified:
        """This, with what was found of the tables that were repaired since."""
        later = {each.dataset_id: each for each in again.datasets}
        return Verified(
            datasets=[
                msgspec.structs.replace(later[each.dataset_id], repaired=True)
                if later.get(each.dataset_id) and later[each.dataset_id].matches
                else later.get(each.dataset_id, each)
                for each in self.datasets
            ]
        )

    @property
    def exit_status(self) -> ExitStatus:
        """5 where a copy differs, 3 where one could not be looked at, 0 where all are equal."""
        found = {each.matches for each in self.datasets}
        if False in found:
            return ExitStatus.DIFFERS
        return ExitStatus.BEHIND if None in found else ExitStatus.DONE


def verify(
    feed: Feed,
    destination: Destination,
    *,
    only: Container[DatasetId] | None = None,
    observe: Observer = ignore,
) -> Verified:
    """Compare every table, or those of some datasets, with the version that it holds."""
    found: list[Verification] = []
    with destination.reading() as session:
        held = [each for each in session.holdings().datasets.values() if _has_rows(each)]
        for number, each in enumerate(held, 1):
            if only is None or each.dataset_id in only:
                observe(_checking(each, f"table {each.table}, {number} of {len(held)}"))
                found.append(_verify_one(feed, session, each))
    return Verified(datasets=found)


def _checking(held: Held, detail: str) -> Progress:
    return Progress(
        moment=Moment.CHECKING, detail=detail, dataset_id=held.dataset_id, version=held.version
    )


def _has_rows(held: Held) -> bool:
    return held.state is not State.REMOVED and held.version is not None and held.table is not None


def _verify_one(feed: Feed, session: Session, held: Held) -> Verification:
    table, number = held.table or "", held.version or 0
    try:
        digest = feed.digest(held.dataset_id, number)
        schema = feed.schema(held.dataset_id, number)
    except (Unauthenticated, Forbidden, RateLimited, ServerUnavailable):
        raise
    except ApiError as error:
        return _result(held, matches=None, detail=f"cannot be checked: {error}")
    wanted = _read_buckets(digest)
    try:
        with session.transaction() as transaction:
            found = transaction.buckets(table, schema)
    except TableError as error:
        return _result(held, matches=False, detail=str(error))
    differing = found.differing(wanted)
    detail = describe(found, wanted) or "equal"
    return _result(held, matches=not differing, detail=detail, buckets=differing)


def _result(
    held: Held, *, matches: bool | None, detail: str, buckets: list[int] | None = None
) -> Verification:
    return Verification(
        dataset_id=held.dataset_id,
        table=held.table or "",
        version=held.version or 0,
        matches=matches,
        buckets=buckets or [],
        detail=detail,
    )


def read_wanted(feed: Feed, version: Version) -> Buckets:
    """The buckets of a version; raises SyncError where this release cannot compute its digest."""
    return _read_buckets(feed.digest(version.dataset_id, version.version))


def _read_buckets(digest: VersionDigest) -> Buckets:
    """Refuse a digest made by later rules: that is no difference in the copy."""
    if not digest.content_digest.startswith(PREFIX):
        kind = digest.content_digest.partition(":")[0]
        raise SyncError(f"The server's digests are of kind {kind}: this ploti is too old for them")
    return Buckets.from_wire(digest.buckets)


def describe(found: Buckets, wanted: Buckets) -> str | None:
    """Which buckets differ and how, in words; None where none does."""
    differing = found.differing(wanted)
    if not differing:
        return None
    shown = [
        f"{number} ({_rows(found.rows[number], wanted.rows[number])})"
        for number in differing[:_SHOWN]
    ]
    more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    noun = "bucket" if len(differing) == 1 else "buckets"
    return f"{noun} {', '.join(shown)}{more} of 256"


def _rows(found: int, wanted: int) -> str:
    rows = "1 row" if found == 1 else f"{found} rows"
    return rows if found == wanted else f"{rows}, should be {wanted}"
