"""Stage 1: equal keys, those of records removed lately, and the proof that keys still mean it."""

from __future__ import annotations

from msgspec import structs

from ploti.model.columns import RECORD_ID
from ploti.model.sql import listed
from ploti.server.build.matching.expressions import same
from ploti.server.build.matching.links import POSITION, count, link, new_left
from ploti.server.build.matching.question import Question, Run, Stage
from ploti.server.build.matching.repeated_keys import link_repeated_keys


def link_equal_keys(run: Run, question: Question) -> None:
    """Link the rows whose key is there once on both sides; null is a key's value like another."""
    key = question.key_now
    old = _single(question.base, key, RECORD_ID)
    new = _single(question.new, key, POSITION)
    link(run, _joined(old, new, key), stage=Stage.KEY)


def link_returned(run: Run, question: Question) -> None:
    """Give records their ids back that were removed lately and whose key came again.

    Those of one key are told apart as the rows of a repeated key are.
    """
    key = question.key_now
    gone = f"(FROM {question.gone} AS x ANTI JOIN {question.base} AS b USING ({RECORD_ID}))"
    old = _single(gone, key, RECORD_ID)
    new = _single(new_left(question), key, POSITION)
    link(run, _joined(old, new, key), stage=Stage.RETURNED)
    link_repeated_keys(run, structs.replace(question, base=gone), stage=Stage.RETURNED)


def count_null_keys(run: Run, question: Question) -> int:
    """How many new rows have no value in a column of their key."""
    nulls = " OR ".join(f"{listed([column])} IS NULL" for column in question.key_now)
    return count(run, f"SELECT count(*) FROM {question.new} WHERE {nulls}")


def count_repeated_keys(run: Run, question: Question) -> int:
    """How many keys are in more than one new row."""
    key = listed(question.key_now)
    repeated = f"SELECT {key} FROM {question.new} GROUP BY {key} HAVING count(*) > 1"
    return count(run, f"SELECT count(*) FROM ({repeated})")


def _single(relation: str, key: tuple[str, ...], handle: str) -> str:
    names = listed(key)
    return (
        f"(SELECT {names}, any_value({handle}) AS {handle} FROM {relation} "
        f"GROUP BY {names} HAVING count(*) = 1)"
    )


def _joined(old: str, new: str, key: tuple[str, ...]) -> str:
    return (
        f"SELECT n.{POSITION} AS position, o.{RECORD_ID} AS record_id "
        f"FROM {old} AS o JOIN {new} AS n ON {same('o', 'n', key)}"
    )
