"""A world for the replay law: a feed, a destination, and what may happen to either."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema, refuse_all

from ploti.errors import ExitStatus, InternalError, NotSubscribed
from ploti.model.digest import Cell
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema
from ploti.model.version import ResyncReason
from ploti.sync.progress import Progress
from ploti.sync.verify import verify
from ploti.sync.work import Options

IDS = [DatasetId("ds_parcels"), DatasetId("ds_permits")]
SCHEMAS = [
    make_schema(no="string", units="int64"),
    make_schema(no="string", units="int64", floors="int64"),
    make_schema(no="string", units="string", floors="int64"),
    make_schema(no="string", floors="int64"),
]
RECORDS = [f"rec_{number}" for number in range(5)]


class CrashError(BaseException):
    """Sync dies here."""


def cells(schema: Schema, seed: int) -> Mapping[str, Cell]:
    """A record's cells; one in three is null."""
    return {
        column.name: None if (seed + place) % 3 == 0 else _cell(column.type, seed + place)
        for place, column in enumerate(schema.columns)
    }


def _cell(kind: str, seed: int) -> Cell:
    return seed if kind == "int64" else f"'{seed}'"


datasets = st.sampled_from(IDS)
rows = st.dictionaries(st.sampled_from(RECORDS), st.integers(0, 8), max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("release"), datasets, st.sampled_from([0, 0, 0, 1, 2, 3]), rows),
    st.tuples(st.just("release_again"), datasets, st.sampled_from(ResyncReason), rows),
    st.tuples(st.just("leave_or_join"), datasets),
    st.tuples(st.just("discard"), datasets),
    st.tuples(st.just("prune"), st.integers(0, 3)),
    st.tuples(st.just("forget"), datasets, st.sampled_from(["snapshot", "changes"])),
    st.tuples(st.just("recover_a_backup"), st.just(None)),
    st.tuples(st.just("sync"), st.sampled_from([500, 1, 2])),
    st.tuples(
        st.just("sync_while_it_fails"), datasets, st.sampled_from([NotSubscribed, InternalError])
    ),
    st.tuples(st.just("crash"), st.integers(0, 25)),
)


class World:
    """The feed, the destination and what may happen to them."""

    def __init__(self, place: synced.Place) -> None:
        self.place = place
        self.feed = FakeFeed()
        for each in IDS:
            self.feed.join(each)
        self.backup = copy.deepcopy(self.feed)

    def release(self, dataset_id: DatasetId, schema: int, seeds: Mapping[str, int]) -> None:
        columns = SCHEMAS[schema]
        new = {key: cells(columns, seed) for key, seed in seeds.items()}
        self.feed.release(dataset_id, columns, new)

    def release_again(
        self, dataset_id: DatasetId, reason: ResyncReason, seeds: Mapping[str, int]
    ) -> None:
        new = {key: cells(SCHEMAS[1], seed) for key, seed in seeds.items()}
        self.feed.release(dataset_id, SCHEMAS[1], new, reason=reason)

    def leave_or_join(self, dataset_id: DatasetId) -> None:
        if self.feed.datasets[dataset_id].member:
            self.feed.leave(dataset_id)
        else:
            self.feed.join(dataset_id)

    def discard(self, dataset_id: DatasetId) -> None:
        self.feed.skip_number(dataset_id)

    def prune(self, keep: int) -> None:
        self.feed.prune(keep)

    def forget(self, dataset_id: DatasetId, role: str) -> None:
        """Retention takes files of all versions but the current one's snapshot."""
        dataset = self.feed.datasets[dataset_id]
        for number in dataset.versions:
            if role == "changes" or number != dataset.current:
                self.feed.forget_file(
                    dataset_id, number, "snapshot" if role == "snapshot" else "changes"
                )

    def recover_a_backup(self, _: None) -> None:
        """Yesterday's server comes back, with numbers that were never given (delivery.md)."""
        given = self.feed
        self.feed, self.backup = self.backup, copy.deepcopy(given)
        self.feed.last = max(self.feed.last, given.last) + 1_000_000
        self.feed.prune()
        for dataset_id, dataset in self.feed.datasets.items():
            highest = max(dataset.next_number, given.datasets[dataset_id].next_number)
            dataset.next_number = highest + 1_000

    def sync(self, page_size: int) -> None:
        self.feed.page_size = page_size
        result = synced.sync(self.feed, self.place, options=Options(verify=page_size == 1))
        assert result.exit_status is ExitStatus.DONE, result
        self.compare()

    def sync_while_it_fails(self, dataset_id: DatasetId, error: type[NotSubscribed]) -> None:
        """Another dataset never suffers, and afterwards nothing is lost (S-37)."""
        self.feed.refuse = refuse_all(of=dataset_id, by=error("not now"))
        synced.sync(self.feed, self.place)
        self.feed.refuse = lambda *_: None
        self.compare_held()

    def crash(self, after: int) -> None:
        left = iter(range(after))

        def observe(_: Progress) -> None:
            if next(left, None) is None:
                raise CrashError

        with suppress(CrashError):
            synced.sync(self.feed, self.place, observe=observe)
        if synced.is_begun(self.place):
            self.compare_held()

    def compare(self) -> None:
        """Every delivered table is the current version, and `verify` says so."""
        found = synced.held(self.place)
        for dataset_id, dataset in self.feed.datasets.items():
            if not dataset.member:
                assert dataset_id not in found or found[dataset_id] == (None, "removed")
            elif dataset.current is None:
                assert found[dataset_id] == (None, "waiting")
            else:
                assert found[dataset_id] == (dataset.current, "held")
        self.compare_held()
        verified = verify(self.feed, synced.destination(self.place))
        assert all(each.matches for each in verified.datasets)

    def compare_held(self) -> None:
        """What is recorded as held is what the table has, at any moment."""
        if not synced.is_begun(self.place):
            return
        for dataset_id, (number, state) in synced.held(self.place).items():
            known = self.feed.datasets[DatasetId(dataset_id)].versions
            if state == "held" and number in known and not self.is_from_before_the_backup():
                version = known[number]
                table = dataset_id.removeprefix("ds_")
                assert synced.read_table(self.place, version, table) == synced.expected(version)

    def is_from_before_the_backup(self) -> bool:
        """Whether the file was last synced with the server that is gone."""
        cursor = synced.cursor(self.place)
        return cursor is None or cursor < f"evt_{self.feed.first - 1:012d}"

    def live(self, history: list[tuple[Any, ...]]) -> None:
        """Let it all happen, and become idle."""
        for name, *arguments in history:
            getattr(self, name)(*arguments)
        self.sync(500)
