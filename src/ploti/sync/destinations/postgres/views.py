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
        c.relowner::regrole::text, obj_description(c.oid, 'pg_class')
    FROM dependent JOIN pg_class AS c USING (oid)
    GROUP BY c.oid ORDER BY max(depth), c.oid
"""
_GRANTS = """
    SELECT privilege_type, is_grantable,
        CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view with all that makes it what it is; `grants` are statements."""

    name: str
    is_plain: bool
    definition: str
    options: list[str]
    owner: str
    comment: str | None
    grants: list[str]


def find_views(wire: Wire, place: str) -> list[View]:
    """Every view over a table or over another of these, none before those that it is made of."""
    return [
        View(
            name=name,
            is_plain=kind == "v",
            definition=definition,
            options=options or [],
            owner=owner,
            comment=comment,
            grants=find_grants(wire, name),
        )
        for name, kind, definition, options, owner, comment in wire.rows(_DEPENDENT, place)
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
    others = [each for each in views if not each.is_plain]
    if others:
        raise TableError(
            f"{_listed(others)} cannot be made again over the new table {table}: drop what is no"
            " plain view, and sync again"
        )


def drop_views(wire: Wire, views: list[View]) -> None:
    """Drop them, each before those that it is made of."""
    for view in reversed(views):
        wire.run(f"DROP VIEW {view.name}")


def make_views(wire: Wire, views: list[View]) -> None:
    """Make them again as they were, over the columns that there are now."""
    for view in views:
        options = f" WITH ({', '.join(view.options)})" if view.options else ""
        wire.run(f"CREATE VIEW {view.name}{options} AS {view.definition}")
        if view.comment is not None:
            wire.run(f"COMMENT ON VIEW {view.name} IS {literal(view.comment)}")
        for grant in view.grants:
            wire.run(grant)
        wire.run(f"ALTER VIEW {view.name} OWNER TO {view.owner}")


def _listed(views: list[View]) -> str:
    return ", ".join(each.name for each in views)
