"""`ploti admin audit`: what staff did."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from cyclopts import Parameter, validators

from ploti.cli.output import Json, print_json, print_table
from ploti.client.connection import Client
from ploti.model.account import AuditPage

_MOST_PAGES = 500


def audit(
    *,
    subject: Annotated[
        str | None, Parameter(help="Only what was done to this: an id, such as ds_… or hold_….")
    ] = None,
    limit: Annotated[
        int, Parameter(help="At most so many entries.", validator=validators.Number(gte=1))
    ] = 100,
    json: Json = False,
) -> None:
    """List what staff did, newest first."""
    with Client() as client:
        listed = client.admin.audit(subject=subject, limit=min(limit, _MOST_PAGES))
        found = [*islice(listed, limit)]
    if json:
        print_json(AuditPage(entries=found, next_cursor=None))
        return
    print_table(
        ["at", "who", "did", "to", "with"],
        [
            [
                each.at,
                each.member_name,
                each.action.replace("_", " "),
                each.subject,
                _with(each.query),
            ]
            for each in found
        ],
        empty="Nothing was done yet.",
    )


def _with(query: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in query.items())
