"""Stage 2: rows that share a key are told apart, one to one, by what else they have.

Within a key equal rows first (by count, ids in order); then the most alike pair, again and again;
ties by id, then by content. A key with so many rows that their pairs cannot all be looked at goes
by the rows' order.
"""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.sql import listed
from ploti.server.build.matching.expressions import content, same
from ploti.server.build.matching.links import (
    POSITION,
    count,
    drop,
    link,
    new_left,
    old_left,
    rows_of,
    table,
)
from ploti.server.build.matching.question import Question, Run, Stage
from ploti.server.build.matching.scoring import MOST_COLUMNS, compare, first_rates, score
from ploti.server.build.matching.values import prepared
from ploti.server.build.matching.weights import weigh

MOST_PAIRS = 10_000
"""Pairs of one key that are looked at: 100 rows on either side."""


def link_repeated_keys(run: Run, question: Question, *, stage: Stage = Stage.REPEATED_KEY) -> None:
    """Link the left-over rows whose key is on both sides, as many as the smaller side has."""
    key = listed(question.key_now)
    shared = (
        f"SELECT {key} FROM {old_left(question)} INTERSECT SELECT {key} FROM {new_left(question)}"
    )
    table(run, "match_keys", f"SELECT *, row_number() OVER () AS _ploti_group FROM ({shared})")
    if rows_of(run, "match_keys"):
        _twins(run, question)
        _link_equal(run, question, stage)
        _link_alike(run, question, stage)
        _link_in_order(run, stage)
        drop(run, "match_old_twins", "match_new_twins")
    drop(run, "match_keys")


def _twins(run: Run, question: Question) -> None:
    """Make the tables of such rows: `_ploti_r` orders them by id or content, `_ploti_place` sorts.

    Neither depends on the order of the source's rows, but among rows that are equal throughout.
    """
    shared = listed([column.name for column in question.columns])
    by_content = f"{listed(question.tie_break)}, {POSITION}"
    sides = (
        ("old", old_left(question), RECORD_ID, RECORD_ID, f"{shared}, {RECORD_ID}"),
        ("new", new_left(question), POSITION, by_content, by_content),
    )
    for side, left, handle, order, place in sides:
        rows = (
            f"SELECT x.*, g._ploti_group FROM {left} AS x "
            f"JOIN match_keys AS g ON {same('x', 'g', question.key_now)}"
        )
        table(
            run,
            f"match_{side}_twins",
            f"SELECT *, {handle} AS _ploti_handle, "
            f"row_number() OVER (ORDER BY {order}) AS _ploti_r, "
            f"row_number() OVER (PARTITION BY _ploti_group ORDER BY {place}) AS _ploti_place "
            f"FROM ({rows})",
        )


def _link_equal(run: Run, question: Question, stage: Stage) -> None:
    compared = [column.name for column in question.columns if column.compared]
    row = f"struct_pack(g := _ploti_group, c := {content(compared)})"
    old, new = (
        f"(SELECT _ploti_handle AS handle, {row} AS content, "
        f"row_number() OVER (PARTITION BY {row} ORDER BY _ploti_r) AS place "
        f"FROM match_{side}_twins)"
        for side in ("old", "new")
    )
    pairs = (
        f"SELECT n.handle AS position, o.handle AS record_id FROM {old} AS o "
        f"JOIN {new} AS n ON o.content = n.content AND o.place = n.place"
    )
    link(run, pairs, stage=stage)
    _let_go(run)


def _link_alike(run: Run, question: Question, stage: Stage) -> None:
    keys = set(question.key_now)
    columns = [column for column in question.columns if column.name not in keys][:MOST_COLUMNS]
    if not columns:
        return
    for side in ("old", "new"):
        twins = f"match_{side}_twins"
        rows = prepared(columns, twins, handle="_ploti_r", name="_ploti_group")
        table(run, f"match_{side}", rows)
    weigh(run, columns, old="match_old", new="match_new")
    sizes = "SELECT name, count(*) AS rows FROM match_{} GROUP BY name"
    pairs = (
        "(SELECT a.r AS o, b.r AS n FROM match_old AS a JOIN match_new AS b USING (name) "
        f"SEMI JOIN (SELECT name FROM ({sizes.format('old')}) AS x "
        f"JOIN ({sizes.format('new')}) AS y USING (name) "
        f"WHERE x.rows * y.rows <= {MOST_PAIRS}) AS s USING (name))"
    )
    table(run, "match_likened", compare(columns, pairs, old="match_old", new="match_new"))
    scored = f"SELECT o, n, {score(first_rates(columns))} AS score FROM match_likened"
    table(run, "match_alike", scored)
    drop(run, "match_likened")
    while _link_best(run, stage):
        pass
    drop(run, "match_alike", "match_old", "match_new")
    _let_go(run)


def _link_best(run: Run, stage: Stage) -> bool:
    """Link the pairs that are the best of both their rows; whether there were any."""
    best = "row_number() OVER (PARTITION BY {} ORDER BY score DESC, o, n) = 1"
    chosen = f"SELECT o, n FROM match_alike QUALIFY {best.format('o')} AND {best.format('n')}"
    table(run, "match_chosen", chosen)
    pairs = (
        "SELECT b._ploti_handle AS position, a._ploti_handle AS record_id FROM match_chosen AS c "
        "JOIN match_old_twins AS a ON a._ploti_r = c.o "
        "JOIN match_new_twins AS b ON b._ploti_r = c.n"
    )
    link(run, pairs, stage=stage)
    for side in ("o", "n"):
        run(f"DELETE FROM match_alike WHERE {side} IN (SELECT {side} FROM match_chosen)")
    found = count(run, "SELECT count(*) FROM match_chosen") > 0
    drop(run, "match_chosen")
    return found


def _link_in_order(run: Run, stage: Stage) -> None:
    old, new = (
        f"(SELECT _ploti_handle AS handle, _ploti_group AS g, row_number() OVER "
        f"(PARTITION BY _ploti_group ORDER BY _ploti_place) AS place FROM match_{side}_twins)"
        for side in ("old", "new")
    )
    pairs = (
        f"SELECT n.handle AS position, o.handle AS record_id FROM {old} AS o "
        f"JOIN {new} AS n USING (g, place)"
    )
    link(run, pairs, stage=stage)


def _let_go(run: Run) -> None:
    for side, linked in (("old", "record_id"), ("new", "position")):
        run(
            f"DELETE FROM match_{side}_twins "
            f"WHERE _ploti_handle IN (SELECT {linked} FROM match_links)"
        )
