"""Carries out the steps of a plan: what they need is fetched first, then each is a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from ploti.errors import (
    ApiError,
    Forbidden,
    NotDeliverable,
    NotFound,
    NotSubscribed,
    OutsideCoverage,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from ploti.model.ids import DatasetId
from ploti.model.version import Version
from ploti.sync.costs import Weights, is_dearer
from ploti.sync.destination import Session, TableError, Transaction
from ploti.sync.downloads import Downloads
from ploti.sync.feed import Feed, FileError, Role
from ploti.sync.held import Held, State
from ploti.sync.ledger import Finish, Ledger, not_yet
from ploti.sync.plan import forgotten, goes_past_major, holding
from ploti.sync.progress import Moment
from ploti.sync.ready import Ready, Supply, check_rows, find_difference
from ploti.sync.steps import Alter, Apply, Await, Keep, Leave, Load, Skip, Step

_LEFT = (NotSubscribed, OutsideCoverage, NotDeliverable, NotFound)
"""Answers that say that the dataset has left meanwhile (R-141)."""

OF_THE_RUN = (Unauthenticated, Forbidden, RateLimited, Unavailable)
"""Answers that concern every dataset: they end the run."""

FAULTS = (ApiError, FileError, TableError)
"""What may be wrong with one dataset, but for the answers above."""


class OnRemoved(StrEnum):
    """What becomes of the table of a dataset that leaves."""

    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run goes about it."""

    verify: bool = False
    on_removed: OnRemoved = OnRemoved.KEEP
    table_name: str | None = None


class Work:
    """The steps, over a feed, a ledger and a folder for downloads."""

    def __init__(
        self,
        *,
        feed: Feed,
        ledger: Ledger,
        downloads: Downloads,
        options: Options,
        weights: Weights,
    ) -> None:
        self._feed = feed
        self._ledger = ledger
        self._downloads = downloads
        self._options = options
        self._supply = Supply(feed, downloads, verify=options.verify)
        self._weights = weights
        self.loads = 0
        self.applies = 0
        self.differing: set[DatasetId] = set()

    def forget(self) -> None:
        """Take nothing for granted that the server said before."""
        self._supply.forget()

    def do(self, steps: Sequence[Step], finish: Finish) -> None:
        """Carry out the first of one dataset's steps, or as many as form a chain of changes.

        A fault of the dataset ends in its mark, never in an error.
        """
        try:
            self._do(steps, finish)
        finally:
            self._downloads.clear()

    def _do(self, steps: Sequence[Step], finish: Finish) -> None:
        chain = _leading_chain(steps)
        if chain:
            self._advance(chain, finish)
            return
        step = next(step for step in steps if not isinstance(step, Skip))
        match step:
            case Load():
                self._load(step, finish)
            case Leave():
                self._leave(step, finish)
            case Await():
                held = self._ledger.held(step.dataset_id)
                self._ledger.record(forgotten(held, step), finish)
            case Keep():
                held = self._ledger.held(step.dataset_id)
                self._ledger.record(replace(held, last_event=step.event), finish)
            case _:
                raise AssertionError(f"{step} stands in a chain")

    def recover(self, held: Held) -> None:
        """Try once to load the current version of a dataset that could not go on (S-37)."""
        reason = f"trying again: {held.reason}"
        step = Load(
            dataset_id=held.dataset_id,
            event=held.last_event,
            version=None,
            reason=reason,
            at_least=held.wanted or 0,
        )
        try:
            self._load_version(step, not_yet)
        except OF_THE_RUN:
            raise
        except FAULTS as error:
            self._mark(State.NEEDS_LOAD, step, error, not_yet)
        finally:
            self._downloads.clear()

    def _load(self, step: Load, finish: Finish) -> None:
        """Load the version that the step names; where that fails, the current one, once (S-18)."""
        try:
            self._load_version(step, finish)
        except OF_THE_RUN:
            raise
        except _LEFT as error:
            self._mark(State.LEAVING, step, error, finish)
        except FAULTS as error:
            if step.version is None:
                self._mark(State.NEEDS_LOAD, step, error, finish)
                return
            instead = replace(step, version=None, failed=step.version, reason=str(error))
            self._load(instead, finish)

    def _load_version(self, step: Load, finish: Finish) -> None:
        held = self._ledger.held(step.dataset_id)
        self._ledger.tell(Moment.LOADING, held, f"loading: {step.reason}")
        number = self._number(step)
        if number is None:
            self._ledger.record(
                forgotten(held, Await(dataset_id=step.dataset_id, event=step.event)), finish
            )
            return
        ready = self._fetch(self._feed.version(step.dataset_id, number), "snapshot")
        with self._ledger.session() as session:
            table = held.table or self._table_name(session, step.dataset_id)
            loaded = holding(held, ready.version, table=table, event=step.event)
            with self._ledger.change(session, loaded, finish) as transaction:
                transaction.claim(table, step.dataset_id)
                exactly = goes_past_major(held, ready.version)
                transaction.load(table, ready.schema, ready.file, exactly=exactly)
                self._check(transaction, table, ready)
        self.loads += 1

    def _table_name(self, session: Session, dataset_id: DatasetId) -> str:
        """What a new table is called; a name that was asked for is had as it is, or not at all."""
        wanted = self._options.table_name
        name = session.table_name(wanted or dataset_id.removeprefix("ds_"))
        if wanted not in (None, name):
            raise TableError(f"no table here can be called {wanted}: take another --table-name")
        return name

    def _number(self, step: Load) -> int | None:
        """The number of the version to load, None where the dataset has none."""
        if step.version is not None:
            return step.version
        current = self._feed.dataset(step.dataset_id).current
        number = current.version if current else None
        if number is not None and number == step.failed:
            raise TableError(step.reason)  # it leads back to the same place
        if (number or 0) < step.at_least:
            raise TableError(
                f"the server's current version is {number or 'none'}, though its log"
                f" tells of version {step.at_least}"
            )
        return number

    def _advance(self, chain: Sequence[Apply | Alter], finish: Finish) -> None:
        """Go from version to version, or straight to a load where that is cheaper or needed."""
        last = chain[-1]
        try:
            load = self._prefer_load(chain)
            if load is None:
                self._apply(chain, self._versions(chain), finish)
                return
        except OF_THE_RUN:
            raise
        except _LEFT as error:
            self._mark(State.LEAVING, last, error, finish)
            return
        except FAULTS as error:
            load = _load_instead(last, None, str(error))
        self._load(load, finish)

    def _versions(self, chain: Sequence[Apply | Alter]) -> list[Version]:
        applies = [step for step in chain if isinstance(step, Apply)]
        return [self._feed.version(step.dataset_id, step.version) for step in applies]

    def _prefer_load(self, chain: Sequence[Apply | Alter]) -> Load | None:
        """The load of the current version, where that is cheaper than all versions up to it."""
        applies = [step for step in chain if isinstance(step, Apply)]
        if not applies:
            return None
        last, held = applies[-1], self._ledger.held(chain[0].dataset_id)
        ahead = self._feed.versions(last.dataset_id, after=held.version or 0)
        if not ahead:
            return None
        current = self._feed.version(last.dataset_id, ahead[-1].version)
        if not is_dearer(ahead, current, self._weights):
            return None
        reason = f"to load version {current.version} is cheaper than {len(ahead)} versions' changes"
        return _load_instead(last, current.version, reason)

    def _apply(
        self, chain: Sequence[Apply | Alter], versions: Sequence[Version], finish: Finish
    ) -> None:
        """Apply versions one after another, all fetched before the destination is opened."""
        ready = {version.version: self._fetch(version, "changes") for version in versions}
        with self._ledger.session() as session:
            for step in chain:
                match step:
                    case Alter():
                        self._alter(session, step, finish)
                    case Apply():
                        self._apply_version(session, step, ready[step.version], finish)
                    case _ as never:
                        assert_never(never)

    def _alter(self, session: Session, step: Alter, finish: Finish) -> None:
        held = self._ledger.held(step.dataset_id)
        altered = replace(held, last_event=step.event)
        with self._ledger.change(session, altered, finish) as transaction:
            transaction.add_columns(_table(held), step.added)

    def _apply_version(self, session: Session, step: Apply, ready: Ready, finish: Finish) -> None:
        held = self._ledger.held(step.dataset_id)
        table = _table(held)
        applied = holding(held, ready.version, table=table, event=step.event)
        with self._ledger.change(session, applied, finish) as transaction:
            transaction.apply(table, ready.schema, ready.file)
            self._check(transaction, table, ready)
        self.applies += 1

    def _leave(self, step: Leave, finish: Finish) -> None:
        held = self._ledger.held(step.dataset_id)
        left = forgotten(held, step)
        if self._options.on_removed is OnRemoved.KEEP or held.table is None:
            self._ledger.record(left, finish)
            return
        try:
            self._drop(held.table, replace(left, table=None), finish)
        except TableError as error:
            reason = f"{left.reason}; the table could not be dropped: {error}"
            self._ledger.record(replace(left, reason=reason), finish)

    def _drop(self, table: str, left: Held, finish: Finish) -> None:
        with (
            self._ledger.session() as session,
            self._ledger.change(session, left, finish) as transaction,
        ):
            transaction.drop(table)

    def _fetch(self, version: Version, role: Role) -> Ready:
        ready = self._supply.fetch(version, role)
        held = self._ledger.held(version.dataset_id)
        self._ledger.tell(Moment.FETCHED, held, f"fetched the {role} of version {version.version}")
        return ready

    def _check(self, transaction: Transaction, table: str, ready: Ready) -> None:
        """Compare the table with the version that it is to be, before anything is committed."""
        dataset_id = ready.version.dataset_id
        check_rows(transaction, table, ready)
        difference = find_difference(transaction, table, ready)
        if difference is not None:
            self.differing.add(dataset_id)
            raise TableError(f"table {table} would differ from its version: {difference}")
        self.differing.discard(dataset_id)

    def _mark(
        self, state: State, step: Load | Apply | Alter, error: Exception, finish: Finish
    ) -> None:
        """Record that the dataset cannot go on, and why; the others are not concerned."""
        held = self._ledger.held(step.dataset_id)
        wanted = step.at_least if isinstance(step, Load) else held.wanted
        marked = replace(
            held, state=state, reason=str(error), wanted=wanted or None, last_event=step.event
        )
        moment = Moment.LEAVING if state is State.LEAVING else Moment.STUCK
        self._ledger.tell(moment, marked, str(error))
        if marked != held:
            self._ledger.record(marked, finish)


def _leading_chain(steps: Sequence[Step]) -> list[Apply | Alter]:
    chain: list[Apply | Alter] = []
    for step in steps:
        if isinstance(step, Apply | Alter):
            chain.append(step)
        elif not isinstance(step, Skip):
            break
    return chain


def _load_instead(last: Apply | Alter, version: int | None, reason: str) -> Load:
    """The load that does what a chain with this end was to do."""
    return Load(
        dataset_id=last.dataset_id,
        event=last.event,
        version=version,
        reason=reason,
        at_least=last.version if isinstance(last, Apply) else 0,
    )


def _table(held: Held) -> str:
    if held.table is None:
        raise TableError("there is no table to go on with")
    return held.table
