"""`ploti backup`, `migrate`, `doctor` and `admin recover`: done to a server's data, not by REST."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ploti.errors import ExitStatus

if TYPE_CHECKING:
    from ploti.server.settings import Settings

Flag = Annotated[bool, Parameter(negative=())]


def backup(file: Path, /, *, data: Path) -> None:
    """Write a consistent copy of all that a server keeps into one archive, while it runs.

    The archive has the database, as SQLite also where it is PostgreSQL, every file that it knows
    of, and the secret in the folder. To restore, unpack it into a new folder, and run
    ploti admin recover on that.

    Parameters
    ----------
    file
        The archive; there must be none of that name yet.
    data
        The server's folder.
    """
    settings = _settings(data)
    from ploti.server.app import offline

    offline.backup(settings, file, say=_say)


def recover(*, data: Path) -> None:
    """Make a restored server's data ready, the last step of a restore.

    Numbers given since the backup are not known any more: all are raised over them, so that none is
    given twice. Subscribers are told that their cursors have expired, and load once.

    Parameters
    ----------
    data
        The server's folder; no server may run on it.
    """
    settings = _settings(data)
    from ploti.server.app import offline

    offline.recover(settings, say=_say)


def migrate(*, data: Path, dry_run: Flag = False) -> None:
    """Bring the database to this release's form, as a start of the server does too.

    Parameters
    ----------
    data
        The server's folder; no server may run on it.
    dry_run
        Say what would be done, and do nothing.
    """
    settings = _settings(data)
    from ploti.server.app import offline

    offline.migrate(settings, dry_run=dry_run, say=_say)


def doctor(*, data: Path) -> ExitStatus:
    """Say what is wrong with a set-up, and what to do about it; nothing is changed.

    The variables are those that the server is to run with. The status is 1 where it would not serve
    as it should.

    Parameters
    ----------
    data
        The server's folder; a server may run on it.
    """
    settings = _settings(data)
    from ploti.server.app.doctor import examine

    return ExitStatus.DONE if examine(settings, say=_say) else ExitStatus.FAILED


def _say(line: str) -> None:
    print(line, flush=True)


def _settings(data: Path) -> Settings:
    from ploti.server.settings import read_settings

    return read_settings(os.environ, {}, data=str(data))
