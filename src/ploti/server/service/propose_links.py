"""Part of a build: the records that may go on under new ids, kept for staff to decide."""

from __future__ import annotations

from ploti.server.build import diff
from ploti.server.build.candidate import Base, BuildOrder, BuiltFile, FileRole, Proposed
from ploti.server.build.matching.proposals import LINKS_FILE, examples_sql, links_sql
from ploti.server.ports.building import Engine
from ploti.server.service.match_state import Matched
from ploti.server.service.shape_state import State


def write_links(
    order: BuildOrder, state: State, engine: Engine, *, matched: Matched, unique: bool
) -> list[BuiltFile]:
    """Write what the matching proposes, if anything, with the ids that the new records have now."""
    if not matched.proposals:
        return []
    rows = diff.added_rows(state.kept.relation)
    box = engine.box(diff.geometries_sql(rows)) if state.shape.geometry else None
    numbered = diff.numbered_sql(rows, state.shape, box=box, unique=unique)
    sql = links_sql(numbered, version=order.version)
    file = engine.write_table(sql, role=FileRole.LINKS, name=LINKS_FILE)
    return [file] if file.rows else []


def show_links(
    state: State,
    start: Base,
    snapshot: str,
    engine: Engine,
    *,
    matched: Matched,
    links: list[BuiltFile],
) -> Proposed | None:
    """How many proposals there are, how good they are likely to be, and a few of them."""
    if not links:
        return None
    sql = examples_sql(
        f"{engine.folder}/{links[0].name}",
        old=start.snapshot,
        before=start.schema,
        new=snapshot,
        after=state.schema,
    )
    return show_pairs(engine.rows(sql), records=links[0].rows, estimate=matched.estimate)


def show_pairs(
    pairs: list[tuple[object, ...]], *, records: int, estimate: float | None
) -> Proposed:
    """What staff are told: how many go on, the share of false ones, rows as they were and are."""
    return Proposed(
        records=records,
        estimate=None if estimate is None else min(estimate, 1.0),
        examples=[f"was {was}; is {now}" for was, now in pairs],
    )
