"""Stage 4: rows that are equal in every compared column, the key's apart."""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.sql import listed
from ploti.server.build.matching.expressions import content, sort_key
from ploti.server.build.matching.links import (
    POSITION,
    drop,
    link,
    new_left,
    old_left,
    propose,
    table,
)
from ploti.server.build.matching.question import Question, Run, Stage


def link_equal_content(run: Run, question: Question) -> None:
    """Link what is equal in all columns of `question.content`, if there are any.

    Without a key duplicates are paired by count, ids in order. With one only groups as large on
    both sides, in the order of their keys; the others become proposals.
    """
    if not question.content:
        return
    keyed = bool(question.key_before or question.key_now)
    _group(run, "match_old_groups", question, old=True)
    _group(run, "match_new_groups", question, old=False)
    pairs = (
        "SELECT n.position, o.record_id FROM match_old_groups AS o JOIN match_new_groups AS n "
        "ON o.content = n.content AND o.place = n.place"
    )
    if keyed:
        link(run, f"{pairs} AND o.copies = n.copies", stage=Stage.CONTENT)
        propose(run, f"{pairs} AND o.copies <> n.copies", stage=Stage.CONTENT)
    else:
        link(run, pairs, stage=Stage.CONTENT)
    drop(run, "match_old_groups", "match_new_groups")


def _group(run: Run, name: str, question: Question, *, old: bool) -> None:
    handle, given = (RECORD_ID, "record_id") if old else (POSITION, "position")
    left = old_left(question) if old else new_left(question)
    key = question.key_before if old else question.key_now
    ties = handle if old else f"{listed(question.tie_break)}, {handle}"
    order = f"{sort_key(key)}, {ties}" if key else ties
    table(
        run,
        name,
        f"SELECT {handle} AS {given}, _ploti_content AS content, "
        f"row_number() OVER (PARTITION BY _ploti_content ORDER BY {order}) AS place, "
        f"count(*) OVER (PARTITION BY _ploti_content) AS copies FROM ("
        f"SELECT *, {content([c.name for c in question.content])} AS _ploti_content FROM {left})",
    )
