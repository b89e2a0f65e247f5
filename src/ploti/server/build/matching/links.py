"""The table of links, and what the stages before have left."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.columns import RECORD_ID
from ploti.model.sql import literal
from ploti.server.build.matching.question import Question, Row, Run, Stage

POSITION = "_ploti_position"
# No source column begins with _ploti_, so that this clashes with none.

_FORM = "(position BIGINT, record_id VARCHAR, stage VARCHAR, evidence VARCHAR)"


def begin(run: Run) -> None:
    """Make the tables of links and of proposals, empty."""
    run(f"CREATE OR REPLACE TEMP TABLE match_links {_FORM}")
    run(f"CREATE OR REPLACE TEMP TABLE match_proposals {_FORM}")


def table(run: Run, name: str, select: str) -> None:
    """Make a temporary table of a query's rows."""
    run(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}")


def drop(run: Run, *names: str) -> None:
    """Free the room of tables that are done with."""
    for name in names:
        run(f"DROP TABLE IF EXISTS {name}")


def link(run: Run, pairs: str, *, stage: Stage, evidence: str = "NULL") -> None:
    """Write the links of a query that gives position, record_id and what `evidence` (SQL) uses."""
    _insert(run, "match_links", pairs, stage=stage, evidence=evidence)


def propose(run: Run, pairs: str, *, stage: Stage, evidence: str = "NULL") -> None:
    """Write proposals, of a query as `link` takes one."""
    _insert(run, "match_proposals", pairs, stage=stage, evidence=evidence)


def _insert(run: Run, target: str, pairs: str, *, stage: Stage, evidence: str) -> None:
    run(
        f"INSERT INTO {target} SELECT position, record_id, {literal(stage)}, {evidence} "
        f"FROM ({pairs})"
    )


def old_left(question: Question) -> str:
    """The base's rows without a link, as a relation."""
    return _left(question.base, RECORD_ID, "record_id")


def new_left(question: Question) -> str:
    """The new rows without a link, as a relation."""
    return _left(question.new, POSITION, "position")


def _left(relation: str, handle: str, linked: str) -> str:
    return f"(FROM {relation} AS x ANTI JOIN match_links AS l ON x.{handle} = l.{linked})"


def count(run: Run, query: str) -> int:
    """The one whole number that a query gives."""
    return whole(run(query)[0][0])


def rows_of(run: Run, relation: str) -> int:
    """How many rows a relation has."""
    return count(run, f"SELECT count(*) FROM {relation}")


def whole(value: object) -> int:
    """A value of a result that is a whole number; raises TypeError for another."""
    if not isinstance(value, int):
        raise TypeError(f"a whole number was expected, not {value!r}")
    return value


def by_stage(run: Run) -> dict[Stage, int]:
    """How many links each stage found, in the order of the stages."""
    found: Sequence[Row] = run("SELECT stage, count(*) FROM match_links GROUP BY stage")
    counts = {Stage(str(stage)): whole(links) for stage, links in found}
    return {stage: counts[stage] for stage in Stage if stage in counts}
