"""`ploti backup`, `migrate`, `doctor` and `admin recover`: done to a server's data, not by REST."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ploti.cli.output import Json, print_json
from ploti.errors import ExitStatus

if TYPE_CHECKING:
    from ploti.server.app.offline import Restored
    from ploti.server.settings import Settings

Flag = Annotated[bool, Parameter(negative=())]

_TOLD = 10
"""Missing files that are named to people."""


def backup(file: Path, /, *, data: Path, json: Json = False) -> None:
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

    files = offline.backup(settings, file)
    if json:
        print_json({"file": str(file), "files": files})
        return
    _say(f"{file} has the database and {_count(files, 'file')}")
    _say("Keep it as a secret: it opens what the server keeps sealed")
    _say("To restore: unpack it into a new folder, then ploti admin recover --data FOLDER")


def recover(*, data: Path, json: Json = False) -> None:
    """Make a restored server's data ready, the last step of a restore.

    Numbers given since the backup are not known any more: all are raised over them, so that none is
    given twice. Subscribers are told that their cursors have expired, and load once. With
    PLOTI_DATABASE_URL an empty database gets the rows of the unpacked archive first.

    Parameters
    ----------
    data
        The server's folder; no server may run on it.
    """
    settings = _settings(data)
    from ploti.server.app import offline

    restored = offline.recover(settings)
    if json:
        print_json(restored)
    else:
        _say_restored(restored)


def migrate(*, data: Path, dry_run: Flag = False, json: Json = False) -> None:
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

    steps = offline.migrate(settings, dry_run=dry_run, say=_say_nothing if json else _say)
    if json:
        print_json({"steps": steps, "dryRun": dry_run})
    else:
        _say("Nothing was done" if steps and dry_run else "The database is of this release")


def doctor(*, data: Path, json: Json = False) -> ExitStatus:
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

    wrong = examine(settings)
    if json:
        print_json({"wrong": wrong})
    else:
        for finding in wrong:
            _say(f"wrong: {finding}")
        if not wrong:
            _say(
                "Nothing is wrong: folder, disk, memory, addresses, database, clock, secrets, files"
            )
    return ExitStatus.FAILED if wrong else ExitStatus.DONE


def _say_restored(restored: Restored) -> None:
    from ploti.server.service.recover_numbers import EVENTS, VERSIONS

    if restored.filled:
        _say("The database, which was empty, has the rows of the folder's ploti.db now")
    logs, datasets = _were(restored.logs, "log"), _were(restored.datasets, "dataset")
    _say(f"{logs} raised by {EVENTS}: every older cursor has expired")
    _say(f"{datasets} raised by {VERSIONS}: the next version of each is loaded")
    for name in restored.missing[:_TOLD]:
        _say(f"missing: {name}")
    match len(restored.missing):
        case 0:
            pass
        case 1:
            _say("1 file that the database knows is missing: put it back")
        case many:
            _say(f"{many} files that the database knows are missing: put them back")


def _were(number: int, thing: str) -> str:
    return f"{_count(number, thing)} {'was' if number == 1 else 'were'}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _say_nothing(_: str) -> None:
    pass


def _say(line: str) -> None:
    print(line, flush=True)


def _settings(data: Path) -> Settings:
    from ploti.server.settings import read_settings

    return read_settings(os.environ, {}, data=str(data))
