"""What a matching found but did not link, for staff: as a map from new ids back to the old ones."""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.server.build.id_map import PREVIOUS, new_id

LINKS_FILE = "links.parquet"
_EXAMPLES = 3
_SHOWN = 300


def links_sql(numbered: str, *, version: int) -> str:
    """SQL of the proposals, one to one: the new record's id, the old one, stage and evidence.

    `numbered` is SQL of the `position` of each new record and its `ordinal`. What was linked after
    all, or came back, is none.
    """
    by = "row_number() OVER (PARTITION BY {} ORDER BY stage, record_id, position) = 1"
    return (
        f"SELECT {new_id(version, 'ordinal')} AS {PREVIOUS}, record_id AS {RECORD_ID}, stage,"
        f" evidence FROM match_proposals JOIN ({numbered}) USING (position)"
        " WHERE record_id NOT IN (SELECT record_id FROM match_links)"
        f" QUALIFY {by.format('position')} AND {by.format('record_id')} ORDER BY 1"
    )


def examples_sql(links: str, *, old: str, before: Schema, new: str, after: Schema) -> str:
    """SQL of a few proposals: the row as it was and as it is, as JSON without geometry.

    `links`, `old` and `new` are paths of the proposals and of both snapshots.
    """
    return (
        f"SELECT {_shown('o', before)}, {_shown('n', after)}"
        f" FROM read_parquet({literal(links)}) AS l"
        f" JOIN read_parquet({literal(old)}) AS o ON o.{RECORD_ID} = l.{RECORD_ID}"
        f" JOIN read_parquet({literal(new)}) AS n ON n.{RECORD_ID} = l.{PREVIOUS}"
        f" ORDER BY l.{PREVIOUS} LIMIT {_EXAMPLES}"
    )


def _shown(side: str, schema: Schema) -> str:
    fields = ", ".join(
        f"{identifier(column.name)} := {side}.{identifier(column.name)}"
        for column in schema.columns
        if column.type != "geometry"
    )
    row = f"to_json(struct_pack({fields}))::VARCHAR" if fields else "'{}'"
    return f"left({row}, {_SHOWN})"
