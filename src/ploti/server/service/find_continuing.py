"""The child's use case: which records added lately go on from ones that were removed before."""

from __future__ import annotations

from ploti.errors import SourceError
from ploti.server.build import look_back
from ploti.server.build.candidate import Broken, FileRole, Looked, LookOrder
from ploti.server.build.matching.links import begin
from ploti.server.build.matching.match import match_rest
from ploti.server.build.matching.proposals import LINKS_FILE, examples_sql
from ploti.server.build.matching.question import Gate, OverBudget
from ploti.server.ports.building import Engine, Kept
from ploti.server.service.propose_links import show_pairs

_REMOVED = "removed"


def find_continuing(order: LookOrder, *, engine: Engine) -> Looked | Broken:
    """Match what was removed to what was added since; all that is linked is proposed.

    What the gate keeps out is not, and neither is anything where a limit is reached.
    """
    removed = engine.keep(look_back.removed_sql(order), name=_REMOVED)
    if not removed.rows:
        return Looked(files=[], proposed=None)
    try:
        gate = _match(order, removed, engine)
    except (OverBudget, SourceError) as error:
        return Broken(detail=str(error))
    return _tell(order, removed, gate, engine)


def _match(order: LookOrder, removed: Kept, engine: Engine) -> Gate | None:
    with engine.matching() as run:
        begin(run)
        run(look_back.link_known_sql(order))
        _, gate, _ = match_rest(run, look_back.question_of(order, removed.relation))
    return gate


def _tell(order: LookOrder, removed: Kept, gate: Gate | None, engine: Engine) -> Looked:
    sql = look_back.links_sql(order, removed.relation)
    file = engine.write_table(sql, role=FileRole.LINKS, name=LINKS_FILE)
    if not file.rows:
        return Looked(files=[], proposed=None)
    schema = order.current.schema
    sql = examples_sql(
        f"{engine.folder}/{file.name}",
        old=f"{engine.folder}/{_REMOVED}.parquet",
        before=schema,
        new=order.current.snapshot,
        after=schema,
    )
    proposed = show_pairs(
        engine.rows(sql), records=file.rows, estimate=gate.estimate if gate else None
    )
    return Looked(files=[file], proposed=proposed)
