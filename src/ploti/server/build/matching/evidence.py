"""Why two rows are one record, as staff read it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from ploti.model.columns import RECORD_ID
from ploti.model.sql import literal
from ploti.server.build.matching.expressions import key_text
from ploti.server.build.matching.links import POSITION
from ploti.server.build.matching.question import MatchColumn, Question, Run, Stage

_EXAMPLES = 3


def evidence_of(columns: Sequence[MatchColumn], rates: Sequence[float]) -> str:
    """A query of position, record_id and evidence (JSON) of the rows of `match_found`.

    The columns by how they compare, each with its bits; score and share; the second best and the
    nearest sibling of either side, null where there was none.
    """
    kinds = ", ".join(
        f"'{kind}': {_columns(columns, rates, kind)}"
        for kind in ("equal", "close", "different", "missing")
    )
    numbers = ", ".join(
        f"'{name}': round({value}, 2)"
        for name, value in (
            ("score", "f.score"),
            ("share", "f.score / f.heaviest"),
            ("oldSecond", "f.old_second"),
            ("newSecond", "f.new_second"),
            ("oldSibling", "f.old_sibling"),
            ("newSibling", "f.new_sibling"),
        )
    )
    return (
        f"SELECT f.n AS position, a.name AS record_id, "
        f"to_json({{{kinds}, {numbers}}})::VARCHAR AS evidence FROM match_found AS f "
        "JOIN match_old_left AS a ON a.r = f.o JOIN match_new_left AS b ON b.r = f.n"
    )


def find_continued(run: Run, question: Question) -> tuple[tuple[str, str, str], ...]:
    """Examples of what the scorer linked in a dataset with a key; without one there is none."""
    if not question.key_before or not question.key_now:
        return ()
    return find_examples(run, question, stage=Stage.CONTINUATION)


def find_examples(
    run: Run, question: Question, *, stage: Stage
) -> tuple[tuple[str, str, str], ...]:
    """A few links of a stage: the old key, the new one, and the columns said to be different."""
    old, new = (
        f"(SELECT {handle} AS handle, replace({key_text(key)}, chr(31), ' ') AS key "
        f"FROM {relation})"
        for relation, key, handle in (
            (question.base, question.key_before, RECORD_ID),
            (question.new, question.key_now, POSITION),
        )
    )
    different = "array_to_string(json_extract_string(l.evidence, '$.different[*].column'), ', ')"
    rows = run(
        f"SELECT o.key, n.key, coalesce({different}, '') FROM match_links AS l "
        f"JOIN {old} AS o ON o.handle = l.record_id JOIN {new} AS n ON n.handle = l.position "
        f"WHERE l.stage = {literal(stage)} ORDER BY l.record_id LIMIT {_EXAMPLES}"
    )
    return tuple((str(before), str(after), str(columns)) for before, after, columns in rows)


def _columns(columns: Sequence[MatchColumn], rates: Sequence[float], kind: str) -> str:
    given = ", ".join(
        f"CASE WHEN f.{kind} & {1 << i} <> 0 THEN {{'column': {literal(column.name)}, "
        f"'bits': round({_bits(i, rates[i], kind)}, 2)}} END"
        for i, column in enumerate(columns)
    )
    return f"list_filter([{given}], lambda x: x IS NOT NULL)"


def _bits(i: int, rate: float, kind: str) -> str:
    weight = f"least(a.w{i}, b.w{i})::DOUBLE"
    match kind:
        case "equal":
            return f"{weight} + {log2(rate)!r}"
        case "close":
            return f"{weight} / 2"
        case "different":
            return f"{log2(1 - rate)!r}"
        case _:
            return f"{log2(1 - rate) / 2!r}"
