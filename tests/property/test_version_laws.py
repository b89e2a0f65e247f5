"""Laws 1, 2 and 4 over histories with all that may happen to a dataset, through the use cases.

States are edited, broken, widened, narrowed and given new keys; held versions are released or
discarded; versions are rebuilt and restored, ids replaced, and months go by.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.building import check_fold
from tests.fakes.child_builder import ChildBuilder
from tests.fakes.world import PERMITS, World, play

from ploti.errors import Conflict, Expired
from ploti.model.admin import HoldState
from ploti.model.digest import Buckets, digest_sql
from ploti.model.ids import ProposalId
from ploti.model.sql import literal
from ploti.model.version import ResyncReason
from ploti.model.wire import Instant
from ploti.server.build.candidate import FileRole
from ploti.server.ports.rows import VersionRow
from ploti.server.service.propose_ids import propose_replacement
from ploti.server.service.rebuild_version import rebuild_version
from ploti.server.service.replace_ids import approve_proposal
from ploti.server.service.restore_version import restore_version

KEYS = [f"k{number:02d}" for number in range(26)]
DAYS = timedelta(days=1)

Row = dict[str, Any]
State = dict[str, Any]

edits = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3), max_size=4)
lost = st.sets(st.sampled_from(KEYS), max_size=4)
pushes = st.fixed_dictionaries(
    {
        "lost": lost,
        "edits": edits,
        "columns": st.sampled_from(["same", "same", "same", "more", "fewer"]),
        "keys": st.sampled_from(["same", "same", "same", "new"]),
        "broken": st.sampled_from(["no", "no", "no", "few", "repeated"]),
    }
)
steps = st.one_of(
    *(st.tuples(st.just("push"), pushes),) * 4,
    *(st.tuples(st.just("decide"), st.sampled_from(["release", "release", "discard"])),) * 2,
    st.tuples(st.just("rebuild"), st.none()),
    st.tuples(st.just("restore"), st.integers(1, 6)),
    st.tuples(st.just("replace"), st.sampled_from([None, None, "id"])),
    st.tuples(st.just("days"), st.sampled_from([10, 100])),
    st.tuples(st.just("follow"), st.none()),
)


def write(state: State) -> str:
    """A CSV of a state: 26 records that have nothing in common but a column."""
    names = {"same": ["id", "name", "n"], "more": ["id", "name", "n", "more"], "fewer": ["id", "n"]}
    columns = names[state["columns"]]
    prefix = "X-" if state["keys"] == "new" else ""
    lines = [columns]
    for number, key in enumerate(KEYS):
        if key in state["lost"] or (state["broken"] == "few" and number > 5):
            continue
        values = {"id": prefix + key, "name": f"site {number * 7919 % 1009}", "more": "x"}
        values["n"] = str(1000 + number * 37 + state["edits"].get(key, 0))
        lines.append([values[column] for column in columns])
    if state["broken"] == "repeated" and len(lines) > 1:
        lines.append(lines[-1])
    return "".join(",".join(line) + "\n" for line in lines)


def owner(row: Row) -> str:
    """Whose record a row is, whatever its key is called."""
    return str(row["id"]).removeprefix("X-")


class History:
    """A dataset to which things happen, and a subscriber that follows it."""

    def __init__(self, world: World, subscription: Any) -> None:
        self.world = world
        self.subscription = subscription
        self.owners: dict[str, str] = {}
        self.seen = 0
        self.cursor = "evt_000000000000"
        self.held: int | None = None
        self.table: dict[str, Row] = {}

    async def do(self, step: str, what: Any) -> None:
        """One step; what cannot be at this moment is refused, and nothing happens."""
        with suppress(Conflict, Expired):
            await getattr(self, step)(what)
        await self.check()

    async def push(self, state: State) -> None:
        await self.world.push(write(state))

    async def decide(self, how: str) -> None:
        for hold in await self.world.holds(HoldState.OPEN):
            end = self.world.release if how == "release" else self.world.discard
            await end(hold.id)

    async def rebuild(self, _: None) -> None:
        if await self.current() is not None:
            await rebuild_version(self.world.parts, PERMITS)

    async def restore(self, number: int) -> None:
        released = [version.version for version in await self.released()]
        if number in released:
            await restore_version(self.world.parts, PERMITS, number)

    async def replace(self, column: str | None) -> None:
        if await self.current() is None:
            return
        world, now = self.world, self.world.clock.now()
        new = ProposalId(world.ids.token("prop_"))
        await world.write(
            lambda tx: propose_replacement(
                tx, PERMITS, column=column, proposal_id=new, by=world.staff, now=now
            )
        )
        await approve_proposal(world.parts, new, by=world.staff, note="")

    async def days(self, count: int) -> None:
        self.world.clock.moment = Instant.of(self.world.clock.moment + count * DAYS)

    async def follow(self, _: None) -> None:
        """Law 1: read the log on, and apply what it says."""
        for event in await self.world.events(self.subscription.id, after=self.cursor):
            data, kind = event["data"], event["type"].rpartition(".")[2]
            if kind == "resync_required":
                rows = await self.rows(data["version"], FileRole.SNAPSHOT)
                self.table = {row["_ploti_record_id"]: row for row in rows}
                self.held = data["version"]
            elif kind == "updated":
                assert data["previousVersion"] == self.held
                await self.apply(data["version"], data["counts"])
            self.cursor = event["id"]

    async def apply(self, number: int, counts: dict[str, int]) -> None:
        changes = await self.rows(number, FileRole.CHANGES)
        assert len(changes) == sum(counts.values())
        for row in changes:
            id_ = row["_ploti_record_id"]
            kind = row.pop("_ploti_change")
            assert (id_ in self.table) == (kind != "added")
            if row.pop("_ploti_op") == "delete":
                del self.table[id_]
            else:
                self.table[id_] = row
        self.held = number

    async def check(self) -> None:
        """Laws 2 and 4 for every version released since the last look."""
        for version in await self.released():
            if version.version > self.seen:
                await self.check_ids(version)
                await self.check_fold(version)
                self.seen = version.version

    async def check_ids(self, version: VersionRow) -> None:
        rows = await self.rows(version.version, FileRole.SNAPSHOT)
        ids = [row["_ploti_record_id"] for row in rows]
        assert ids == sorted(set(ids))
        for row in rows:
            assert self.owners.setdefault(row["_ploti_record_id"], owner(row)) == owner(row)
        if version.previous_version is None:
            return
        before = await self.rows(version.previous_version, FileRole.SNAPSHOT)
        moved = await self.id_map(version)
        now = {row["id"]: row["_ploti_record_id"] for row in rows}
        if version.reason is ResyncReason.PREVIOUS_UNAVAILABLE or _repeats(before, rows):
            return
        for row in before:
            id_ = row["_ploti_record_id"]
            if row["id"] in now:
                assert now[row["id"]] == moved.get(id_, id_)

    async def check_fold(self, version: VersionRow) -> None:
        snapshot = await self.path(version.version, FileRole.SNAPSHOT)
        content = await self.world.read(lambda tx: tx.versions.content(PERMITS, version.version))
        with duckdb.connect() as connection:
            sql = digest_sql(content.schema, f"read_parquet({literal(snapshot)})")
            found = Buckets.from_sql(connection.execute(sql).fetchall())
        assert found == Buckets.from_wire(content.buckets)
        if version.reason is None:
            before = await self.path(version.previous_version or 0, FileRole.SNAPSHOT)
            changes = await self.path(version.version, FileRole.CHANGES)
            check_fold(Path(before), Path(changes), Path(snapshot))

    async def id_map(self, version: VersionRow) -> dict[str, str]:
        if version.reason is not ResyncReason.RECORD_IDS_CHANGED:
            return {}
        rows = await self.rows(version.version, FileRole.ID_MAP)
        return {row["_ploti_previous_record_id"]: row["_ploti_record_id"] for row in rows}

    async def current(self) -> int | None:
        dataset = await self.world.read(lambda tx: tx.datasets.get(PERMITS))
        return dataset.current_version if dataset else None

    async def released(self) -> list[VersionRow]:
        return await self.world.read(lambda tx: tx.versions.released(PERMITS, after=0, limit=500))

    async def rows(self, number: int, role: FileRole) -> list[Row]:
        return pq.read_table(await self.path(number, role)).to_pylist()

    async def path(self, number: int, role: FileRole) -> str:
        files = await self.world.read(lambda tx: tx.versions.files(PERMITS, number))
        (blob,) = [f.blob for f in files if f.role is role and f.format.endswith("parquet")]
        async with self.world.blobs.local(blob) as path:
            return path


def _repeats(*sides: list[Row]) -> bool:
    """Whether a key is there twice: then rows are told apart by what else they have."""
    return any(len({row["id"] for row in side}) < len(side) for side in sides)


PLAIN = {"lost": set(), "edits": {}, "columns": "same", "keys": "same", "broken": "no"}
LESS = PLAIN | {"lost": {"k01", "k05"}, "edits": {"k07": 2}}


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=3, max_size=7))
@example(
    [
        *(("push", PLAIN), ("push", LESS), ("replace", None), ("push", PLAIN)),
        *(("restore", 1), ("follow", None), ("push", LESS), ("rebuild", None)),
        *(("push", PLAIN | {"keys": "new"}), ("decide", "release"), ("replace", "id")),
    ]
)
@example(
    [
        *(("push", PLAIN), ("push", PLAIN | {"columns": "more"})),
        *(("push", PLAIN | {"broken": "few"}), ("decide", "release"), ("push", PLAIN)),
        *(("restore", 1), ("push", LESS), ("decide", "release"), ("days", 100), ("push", PLAIN)),
        *(("push", PLAIN | {"broken": "repeated"}), ("decide", "release"), ("push", LESS)),
    ]
)
def test_laws_1_2_and_4_hold_whatever_happens_to_a_dataset(happened: list[tuple[str, Any]]) -> None:
    async def story(world: World) -> None:
        await world.declare()
        history = History(world, await world.subscribe())
        for step, what in happened:
            await history.do(step, what)
        await history.follow(None)
        current = await history.current()
        assert history.held == current
        if current is not None:
            rows = await history.rows(current, FileRole.SNAPSHOT)
            assert history.table == {row["_ploti_record_id"]: row for row in rows}

    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), story, builder=ChildBuilder())
