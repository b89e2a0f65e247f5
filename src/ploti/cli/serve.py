"""`ploti serve`: API, checks and builds over one folder, in one process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

Flag = Annotated[bool, Parameter(negative=())]
Setting = Annotated[str | None, Parameter(show_default=False)]
Database = Annotated[
    str | None,
    Parameter(
        show_default=False,
        help="A database of PostgreSQL 15 or newer, postgresql://user@host/database, in place of "
        "the one in the folder. Better as a variable, since flags can be seen; needs "
        "--secret-keys.",
    ),
]
SecretKeys = Annotated[
    str | None,
    Parameter(
        show_default=False,
        help="Secrets of 32 characters or more that webhooks' secrets and links are kept with, "
        "with commas between: the first writes, all read. Unless given, one that is kept in the "
        "folder.",
    ),
]
Port = Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65_535))]


def serve(
    *,
    data: Path,
    host: str = "127.0.0.1",
    port: Port = 8080,
    behind_proxy: Flag = False,
    insecure: Flag = False,
    public_url: Setting = None,
    database_url: Database = None,
    file_roots: Setting = None,
    allow_networks: Setting = None,
    build_memory: Setting = None,
    build_seconds: Setting = None,
    max_source: Setting = None,
    max_waits: Setting = None,
    rate_limit: Setting = None,
    public_rate_limit: Setting = None,
    secret_keys: SecretKeys = None,
    alert_url: Setting = None,
    alert_secret: Setting = None,
    min_free: Setting = None,
) -> None:
    """Serve feeds from a folder until Ctrl-C or SIGTERM.

    A new folder is set up with a workspace and two keys. A setting that is not given as a flag is
    read from the variable of the same name: --max-waits from PLOTI_MAX_WAITS.

    Parameters
    ----------
    data
        The folder that holds everything; made where there is none.
    host
        The address to listen on. All but loopback needs --public-url.
    port
        The port to listen on; 0 takes a free one.
    behind_proxy
        TLS is in front of this server.
    insecure
        Accept that keys can be overheard on the way to this server.
    public_url
        The address at which clients reach this server, for the links in its answers.
    file_roots
        Folders below which file sources may lie, with colons between.
    allow_networks
        Private networks that sources and webhooks may be in, with commas between: 127.0.0.0/8.
    build_memory
        How much memory a build may take: 2GiB.
    build_seconds
        How long a build may run: 3600. Its matching may take half of that.
    max_source
        How large a source may be: 8GiB.
    max_waits
        How many requests of a key may wait on the log at once: 8.
    rate_limit
        How many requests a second a key may send: 50; twice as many may come at once.
    public_rate_limit
        How many an address may send without a key, or with one that is not known: 10.
    alert_url
        Where alerts to the operator are sent.
    alert_secret
        The secret that signs alerts, by Standard Webhooks: whsec_ and base64.
    min_free
        How much of the disk stays free: checks wait for it, and no state takes of it: 1GiB.
    """
    flags = {
        "database_url": database_url,
        "public_url": public_url,
        "file_roots": file_roots,
        "allow_networks": allow_networks,
        "build_memory": build_memory,
        "build_seconds": build_seconds,
        "max_source": max_source,
        "max_waits": max_waits,
        "rate_limit": rate_limit,
        "public_rate_limit": public_rate_limit,
        "secret_keys": secret_keys,
        "alert_url": alert_url,
        "alert_secret": alert_secret,
        "min_free": min_free,
    }
    from ploti.server.app.serve import serve as run
    from ploti.server.settings import read_settings

    settings = read_settings(
        os.environ,
        flags,
        data=str(data),
        host=host,
        port=port,
        behind_proxy=behind_proxy,
        insecure=insecure,
    )
    run(settings, say=_say, to_a_terminal=sys.stdout.isatty())


def _say(line: str) -> None:
    print(line, flush=True)
