"""`ploti admin keys`: members' API keys."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.output import Json, print_fields, print_json, print_table
from ploti.client.connection import Client
from ploti.errors import ConfigError
from ploti.model.account import Key, KeyPage, KeyWithSecret
from ploti.model.wire import Instant

app = App(
    name="keys",
    help="Members' API keys.",
    help_epilogue="Next: create MEMBER; a key is shown once, when it is made",
)


@app.command
def create(
    member: Annotated[str, Parameter(help="A member's id: mem_…")],
    /,
    *,
    name: Annotated[str, Parameter(help="What it is for.")] = "",
    permissions: Annotated[
        list[str] | None,
        Parameter(
            name="--permission",
            negative=(),
            help="feeds, webhooks or admin; feeds and webhooks unless given.",
        ),
    ] = None,
    expires_at: Annotated[
        str | None, Parameter(help="When it ends: 2027-01-31T00:00:00Z. Never unless given.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a key, and show it this once."""
    end = _read_time(expires_at)
    with Client() as client:
        made = client.admin.keys.create(member, name=name, permissions=permissions, expires_at=end)
    _print(made, json=json)


@app.command(name="list")
def list_keys(
    *,
    workspace: Annotated[str | None, Parameter(help="Only those of this one.")] = None,
    json: Json = False,
) -> None:
    """List keys by their first letters, newest first."""
    with Client() as client:
        found = [*client.admin.keys.list(workspace=workspace, limit=500)]
    if json:
        print_json(KeyPage(keys=found, next_cursor=None))
        return
    print_table(
        ["id", "key", "member", "name", "permissions", "last used", "expires", "revoked"],
        [
            [
                *(each.id, f"{each.prefix}…", each.member_name, each.name, each.permissions),
                *(each.last_used_at, each.expires_at, each.revoked_at),
            ]
            for each in found
        ],
        empty="No keys.",
    )


@app.command
def revoke(
    key: Annotated[str, Parameter(help="A key's id: key_…")], /, *, json: Json = False
) -> None:
    """Revoke a key at once."""
    with Client() as client:
        ended = client.admin.keys.revoke(key)
    _print(ended, json=json)


@app.command
def lost(
    *,
    data: Annotated[Path, Parameter(help="The folder of a server that is stopped.")],
    json: Json = False,
) -> None:
    """Make a staff's key without one, for who lost it; not over REST, but in the server's folder.

    Its settings are read from the variables that the server has (PLOTI_DATABASE_URL, say).
    """
    from ploti.server.app.lost_keys import make_lost_key
    from ploti.server.settings import read_settings

    made = make_lost_key(read_settings(os.environ, {}, data=str(data)))
    _print(made, json=json)


def _read_time(text: str | None) -> datetime | None:
    try:
        return None if text is None else Instant.parse(text)
    except ValueError as error:
        raise ConfigError(f"--expires-at: {error}") from None


def _print(key: Key, *, json: bool) -> None:
    if json:
        print_json(key)
        return
    print_fields(
        {
            "id": key.id,
            "key": key.secret if isinstance(key, KeyWithSecret) else f"{key.prefix}…",
            "member": f"{key.member_name} ({key.member_id})",
            "workspace": key.workspace_id,
            "name": key.name or None,
            "permissions": key.permissions,
            "created": key.created_at,
            "expires": key.expires_at,
            "revoked": key.revoked_at,
            "last used": key.last_used_at,
        }
    )
