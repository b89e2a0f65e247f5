"""The proof that pairs made by a key are the same records, from a sample of them."""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.sql import identifier
from ploti.server.build.matching.expressions import content
from ploti.server.build.matching.links import POSITION, drop, rows_of, table, whole
from ploti.server.build.matching.question import (
    LEAST_PAIRS,
    MatchColumn,
    Proof,
    Question,
    Run,
)
from ploti.server.build.matching.values import prepared

SAMPLE = 2_000
INFORMATIVE = 20
_APART = 0.9


def prove(run: Run, question: Question, *, pairs: str) -> Proof:
    """Compare a sample of `pairs` (a relation of position, record_id), and pairs made at random.

    The sample is drawn by a hash of the record id, so it is the same each time.
    """
    if not question.content:
        return Proof()
    _draw(run, question, pairs)
    informative = _informative(run, question.content)
    agreeing, known, random_agreeing, random_known = (
        map(whole, run(_comparison(informative))[0]) if informative else (0, 0, 0, 0)
    )
    told = bool(informative) and _is_told(run, informative)
    changed, moved = _moves(run, question)
    drop(run, "match_sample", "match_sample_old", "match_sample_new")
    return Proof(
        columns=len(informative),
        pairs=known,
        agreeing=agreeing,
        random_pairs=random_known,
        random_agreeing=random_agreeing,
        told=told,
        changed=changed,
        moved=moved,
    )


def prove_by_changed(run: Run, question: Question, *, positions: str) -> Proof | None:
    """The proof where at least half of the pairs are rows without any change.

    Most pairs agree then: what is left is whether those of `positions`, a query of a sample of the
    changed rows, have what was another's. One column finds the candidates, so that the others are
    decoded at few places; None where no column tells rows apart.
    """
    names = [column.name for column in question.content]
    if not names:
        return Proof()
    row = content(names)
    table(
        run,
        "match_changed",
        f"SELECT n.* FROM {question.new} AS n JOIN ({positions}) AS s ON n.{POSITION} = s.position",
    )
    counts = ", ".join(f"count(DISTINCT {identifier(name)})" for name in names)
    (values,) = run(f"SELECT {counts} FROM match_changed")
    most, anchor = max(zip(map(whole, values), map(identifier, names), strict=True))
    if most <= min(INFORMATIVE, rows_of(run, "match_changed") // 2):
        drop(run, "match_changed")
        return None
    ((changed,),) = run(f"SELECT count({anchor}) FROM match_changed")
    moved = rows_of(
        run,
        f"(SELECT {POSITION} FROM (SELECT {POSITION}, {anchor} AS anchor, {row} AS content"
        f" FROM match_changed) AS c JOIN (SELECT {anchor} AS anchor, {row} AS content"
        f" FROM {question.base} WHERE {anchor} IN (SELECT {anchor} FROM match_changed)) AS o"
        f" USING (anchor, content)"
        f" GROUP BY {POSITION} HAVING count(*) = 1)",
    )
    drop(run, "match_changed")
    return Proof(changed=whole(changed), moved=moved)


def _moves(run: Run, question: Question) -> tuple[int, int]:
    """How many pairs of the sample changed, and of these how many have what was another's."""
    row = content([column.name for column in question.content])
    old = f"(SELECT {RECORD_ID} AS record_id, {row} AS content FROM {question.base})"
    new = f"(SELECT {POSITION} AS position, {row} AS content FROM {question.new})"
    table(
        run,
        "match_changed",
        f"SELECT record_id, n.content FROM match_sample AS s JOIN {old} AS o USING (record_id) "
        f"JOIN {new} AS n USING (position) WHERE o.content <> n.content",
    )
    changed = rows_of(run, "match_changed")
    moved = (
        f"SELECT c.record_id FROM match_changed AS c JOIN {old} AS o ON o.content = c.content "
        "GROUP BY c.record_id HAVING count(*) = 1"
    )
    counted = rows_of(run, f"({moved})") if changed >= LEAST_PAIRS else 0
    drop(run, "match_changed")
    return changed, counted


def _draw(run: Run, question: Question, pairs: str) -> None:
    order = "hash(record_id), record_id"
    sample = f"SELECT position, record_id FROM {pairs} ORDER BY {order} LIMIT {SAMPLE}"
    table(
        run, "match_sample", f"SELECT *, row_number() OVER (ORDER BY {order}) AS i FROM ({sample})"
    )
    sides = [
        ("old", question.base, RECORD_ID, "record_id"),
        ("new", question.new, POSITION, "position"),
    ]
    for side, relation, handle, given in sides:
        drawn = (
            f"(SELECT x.*, s.i AS _ploti_i FROM {relation} AS x "
            f"JOIN match_sample AS s ON x.{handle} = s.{given})"
        )
        rows = prepared(question.content, drawn, handle="_ploti_i", name="NULL")
        table(run, f"match_sample_{side}", rows)


def _informative(run: Run, columns: tuple[MatchColumn, ...]) -> list[int]:
    """The columns with many values on both sides: one that was emptied tells nothing of the key."""
    counts = ", ".join(f"count(DISTINCT t{i})" for i in range(len(columns)))
    sides = [run(f"SELECT {counts} FROM match_sample_{side}")[0] for side in ("old", "new")]
    fewer = [min(map(whole, values)) for values in zip(*sides, strict=True)]
    return [i for i, number in enumerate(fewer) if number > INFORMATIVE]


def _is_told(run: Run, informative: list[int]) -> bool:
    """Whether a column that tells rows apart is equal in half of the pairs: no chance does that."""
    counts = ", ".join(
        f"count(DISTINCT o.t{i}), count(o.t{i}), count(*) FILTER (o.t{i} = n.t{i})"
        for i in informative
    )
    (found,) = run(
        f"SELECT {counts} FROM match_sample_old AS o JOIN match_sample_new AS n ON n.r = o.r"
    )
    numbers = list(map(whole, found))
    columns = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return any(
        values >= _APART * filled and equal * 2 >= filled for values, filled, equal in columns
    )


def _comparison(informative: list[int]) -> str:
    """A query of how many pairs agree, of how many with a value; then the same at random."""
    equal = " + ".join(f"coalesce((o.t{i} = n.t{i})::INTEGER, 0)" for i in informative)
    known = " + ".join(f"(coalesce(o.t{i}, n.t{i}) IS NOT NULL)::INTEGER" for i in informative)
    sample = "(SELECT count(*) FROM match_sample)"
    agreeing = ", ".join(
        "(SELECT count(*) FILTER (known > 0 AND equal * 2 >= known), count(*) FILTER (known > 0) "
        f"FROM (SELECT {equal} AS equal, {known} AS known "
        f"FROM (SELECT *, {partner} AS partner FROM match_sample_old) AS o "
        "JOIN match_sample_new AS n ON n.r = o.partner))"
        for partner in ("r", f"r % {sample} + 1")
    )
    return f"FROM {agreeing}"
