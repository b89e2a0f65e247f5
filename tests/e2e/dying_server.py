"""`ploti`, whose server is killed within a release: at a named step, once a file is there.

`python dying_server.py STEP FILE serve ...`: at the step `appended` the release and its events are
written and nothing is committed; at `committed` all is durable, and nobody was told.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from ploti.cli import main
from ploti.server.adapters.store import PostgresStore, SqliteStore, SqlStore
from ploti.server.adapters.store.log import SqlLog
from ploti.server.adapters.store.store import Topic


def die_if(armed: Path) -> None:
    if armed.exists():
        os.kill(os.getpid(), signal.SIGKILL)


def die_once_appended(armed: Path) -> None:
    append = SqlLog.append_to_members

    def appending(self: SqlLog, *args: Any, **kwargs: Any) -> None:
        append(self, *args, **kwargs)
        die_if(armed)

    SqlLog.append_to_members = appending  # type: ignore[method-assign]


def die_once_committed(armed: Path, kind: type[SqlStore]) -> None:
    committed = kind._committed

    def dying(self: SqlStore, topics: list[Topic]) -> None:
        if Topic.LOG in topics:
            die_if(armed)
        committed(self, topics)

    kind._committed = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    step, file = sys.argv[1], Path(sys.argv[2])
    del sys.argv[1:3]
    if step == "appended":
        die_once_appended(file)
    else:
        die_once_committed(file, SqliteStore)
        die_once_committed(file, PostgresStore)
    main()
