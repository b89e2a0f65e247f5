"""Tables for tests of the matching: rows as dictionaries on either side, and the links found."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from ploti.server.build.matching.match import match
from ploti.server.build.matching.question import (
    Budget,
    Continuation,
    MatchColumn,
    Question,
    Report,
    Row,
    Stage,
)

Record = Mapping[str, object]

TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "geometry": pa.binary(),
}


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Links by the rows' places in the two lists: new row to old row."""

    links: dict[int, int]
    stages: dict[int, Stage]
    evidence: dict[int, str | None]
    proposals: dict[int, int]
    report: Report
    cpu_seconds: float

    def of(self, stage: Stage) -> dict[int, int]:
        return {new: old for new, old in self.links.items() if self.stages[new] is stage}


class Tables:
    """A connection with the two tables of one matching."""

    def __init__(self, *, threads: int = 1) -> None:
        self.connection = duckdb.connect(config={"threads": threads})

    def run(self, sql: str) -> Sequence[Row]:
        return self.connection.execute(sql).fetchall()

    def fill(self, name: str, columns: Mapping[str, pa.DataType], rows: Sequence[Record]) -> None:
        arrays = [pa.array([row[c] for row in rows], type=t) for c, t in columns.items()]
        table = pa.Table.from_arrays(arrays, names=list(columns))
        self.connection.register("given", table)
        self.run(f"CREATE OR REPLACE TABLE {name} AS FROM given")
        self.connection.unregister("given")


def record_id(place: int) -> str:
    return f"rec_{1:08d}{place:010d}"


def matched(
    old: Sequence[Record],
    new: Sequence[Record],
    *,
    types: Mapping[str, str],
    key: Sequence[str] = (),
    key_before: Sequence[str] | None = None,
    gone: Sequence[Record] | None = None,
    old_only: Sequence[str] = (),
    new_only: Sequence[str] = (),
    ignored: Sequence[str] = (),
    continuation: Continuation = Continuation.REVIEW,
    budget: Budget | None = None,
    threads: int = 1,
) -> Matched:
    """Match `new` to `old`; `types` are of all columns, those of one side alone included."""
    tables = Tables(threads=threads)
    question = ask(
        tables,
        old,
        new,
        types=types,
        key=key,
        key_before=key_before,
        gone=gone,
        old_only=old_only,
        new_only=new_only,
        ignored=ignored,
        continuation=continuation,
        budget=budget,
    )
    begun = time.process_time()
    report = match(tables.run, question)
    return _read(tables, report, old, cpu_seconds=time.process_time() - begun)


def ask(
    tables: Tables,
    old: Sequence[Record],
    new: Sequence[Record],
    *,
    types: Mapping[str, str],
    key: Sequence[str] = (),
    key_before: Sequence[str] | None = None,
    gone: Sequence[Record] | None = None,
    old_only: Sequence[str] = (),
    new_only: Sequence[str] = (),
    ignored: Sequence[str] = (),
    continuation: Continuation = Continuation.REVIEW,
    budget: Budget | None = None,
) -> Question:
    """Fill the tables, and give the question of their matching."""
    arrow = {name: TYPES[type_] for name, type_ in types.items()}
    before = {c: t for c, t in arrow.items() if c not in new_only}
    after = {c: t for c, t in arrow.items() if c not in old_only}
    ids = [{"_ploti_record_id": record_id(i), **row} for i, row in enumerate(old)]
    tables.fill("base", {"_ploti_record_id": pa.string(), **before}, ids)
    positions = [{"_ploti_position": i, **row} for i, row in enumerate(new)]
    tables.fill("state", {"_ploti_position": pa.int64(), **after}, positions)
    if gone is not None:
        rows = [dict.fromkeys(before) | dict(row) for row in gone]
        tables.fill("gone", {"_ploti_record_id": pa.string(), **before}, rows)
    return Question(
        base="base",
        new="state",
        columns=tuple(
            MatchColumn(name=c, type=types[c], compared=c not in ignored)
            for c in before
            if c in after
        ),
        added=tuple(new_only),
        key_before=tuple(key if key_before is None else key_before),
        key_now=tuple(key),
        gone=None if gone is None else "gone",
        continuation=continuation,
        budget=budget or Budget(),
    )


def _read(tables: Tables, report: Report, old: Sequence[Record], *, cpu_seconds: float) -> Matched:
    places = {record_id(i): i for i in range(len(old))}
    links = tables.run("SELECT position, record_id, stage, evidence FROM match_links")
    proposals = tables.run("SELECT position, record_id FROM match_proposals")
    return Matched(
        links={p: places.get(r, -1) for p, r, *_ in links},
        stages={p: Stage(s) for p, _, s, _ in links},
        evidence={p: e for p, *_, e in links},
        proposals={p: places[r] for p, r in proposals},
        report=report,
        cpu_seconds=cpu_seconds,
    )


PERMIT = {
    "permit": "string",
    "address": "string",
    "work": "string",
    "value": "int64",
    "lat": "float64",
    "lon": "float64",
}
STREETS = ["Oak", "Elm", "Main", "River", "Church", "Mill", "Hill", "Park", "Lake", "Pine"]
WORK = ["new roof", "garage", "pool", "remodel kitchen", "fence", "new house", "repair", "sign"]


def permits(count: int, *, seed: int = 1) -> list[dict[str, object]]:
    """Made permits, all different, the numbers of a year: `2016-000001 BP`."""
    draw = random.Random(seed)
    return [
        {
            "permit": f"2016-{i:06d} BP",
            "address": f"{draw.randrange(1, 9_999)} {draw.choice(STREETS)} {draw.choice('NSEW')}",
            "work": draw.choice(WORK),
            "value": draw.randrange(1_000, 900_000),
            "lat": round(30 + draw.random(), 6),
            "lon": round(-97 - draw.random(), 6),
        }
        for i in range(1, count + 1)
    ]


def shuffled(rows: Sequence[Record], *, seed: int) -> tuple[list[Record], list[int]]:
    """The rows in another order, and for each its place before."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    return [rows[i] for i in order], order
