"""The views over a table: which depend on it, and how they are made again over a new one."""

from __future__ import annotations

from dataclasses import dataclass

from ploti.model.sql import literal
from ploti.sync.destination import TableError
from ploti.sync.destinations.postgres.wire import Wire

_DEPENDENT = """
    WITH RECURSIVE dependent (oid, depth) AS (
        SELECT r.ev_class, 1 FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid
        WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
            AND d.refobjid = to_regclass(%s) AND r.ev_class <> d.refobjid
        UNION
        SELECT r.ev_class, depth + 1 FROM dependent
        JOIN pg_depend AS d ON d.refobjid = dependent.oid JOIN pg_rewrite AS r ON r.oid = d.objid
        WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
            AND r.ev_class <> d.refobjid
    )
    SELECT c.oid::regclass::text, c.relkind::text, pg_get_viewdef(c.oid), c.reloptions,
        c.relowner::regrole::text, obj_description(c.oid, 'pg_class'), c.relispopulated,
        ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = c.oid ORDER BY 1)
    FROM dependent JOIN pg_class AS c USING (oid)
    GROUP BY c.oid ORDER BY max(depth), c.oid
"""
_KINDS = {"v": "VIEW", "m": "MATERIALIZED VIEW"}
"""What can be made again, by PostgreSQL's letter for it, and how it is called in SQL."""

_GRANTS = """
    SELECT privilege_type, is_grantable,
        CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view with all that makes it what it is; `indexes` and `grants` are statements.

    `kind` is what SQL calls it, None where it is no view; a materialized one may have no rows yet.
    """

    name: str
    kind: str | None
    definition: str
    is_filled: bool
    options: list[str]
    owner: str
    comment: str | None
    indexes: list[str]
    grants: list[str]


def find_views(wire: Wire, place: str) -> list[View]:
    """Every view over a table or over another of these, none before those that it is made of."""
    return [
        View(
            name=name,
            kind=_KINDS.get(kind),
            definition=(definition or "").strip().removesuffix(";"),
            is_filled=is_filled,
            options=options or [],
            owner=owner,
            comment=comment,
            indexes=indexes,
            grants=find_grants(wire, name),
        )
        for name, kind, definition, options, owner, comment, is_filled, indexes in wire.rows(
            _DEPENDENT, place
        )
    ]


def find_grants(wire: Wire, place: str) -> list[str]:
    """The statements that grant again what is granted on a table or view."""
    return [
        f"GRANT {privilege} ON {place} TO {grantee}{' WITH GRANT OPTION' if grantable else ''}"
        for privilege, grantable, grantee in wire.rows(_GRANTS, place)
    ]


def check_replaceable(views: list[View], table: str, *, replace: bool) -> None:
    """Raise TableError unless the views may and can be made again."""
    if not replace and views:
        raise TableError(
            f"views depend on table {table}: {_listed(views)}; sync with --replace-views, or drop"
            " them"
        )
    others = [each for each in views if each.kind is None]
    if others:
        raise TableError(
            f"{_listed(others)} cannot be made again over the new table {table}: drop what is no"
            " view, and sync again"
        )


def drop_views(wire: Wire, views: list[View]) -> None:
    """Drop them, each before those that it is made of."""
    for view in reversed(views):
        wire.run(f"DROP {view.kind} {view.name}")


def make_views(wire: Wire, views: list[View]) -> None:
    """Make them again as they were, over the columns that there are now."""
    for view in views:
        options = f" WITH ({', '.join(view.options)})" if view.options else ""
        rows = "" if view.is_filled else " WITH NO DATA"
        wire.run(f"CREATE {view.kind} {view.name}{options} AS {view.definition}{rows}")
        if view.comment is not None:
            wire.run(f"COMMENT ON {view.kind} {view.name} IS {literal(view.comment)}")
        for statement in (*view.indexes, *view.grants):
            wire.run(statement)
        wire.run(f"ALTER {view.kind} {view.name} OWNER TO {view.owner}")


def _listed(views: list[View]) -> str:
    return ", ".join(each.name for each in views)
