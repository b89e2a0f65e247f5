"""`ploti demo`: the whole way on real data, in a folder of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ploti.cli.stopping import stopped_while_waiting
from ploti.errors import ConfigError


def demo(*, data: Path | None = None) -> None:
    """Play eight real versions of the world's airports through a server and into a database.

    It takes about a minute, tells each step, and stops at the first number that is not the true
    one. Nothing leaves this machine.

    Parameters
    ----------
    data
        The folder for it, which must be empty or not there yet; a temporary one unless given.
    """
    from ploti.demo.story import tell

    folder = _make_folder(data)
    with stopped_while_waiting():
        tell(folder, _say)


def _make_folder(data: Path | None) -> Path:
    if data is None:
        return Path(tempfile.mkdtemp(prefix="ploti-demo-"))
    folder = data.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"{data} is not empty: give --data a folder that is new")
    return folder


def _say(line: str) -> None:
    print(line, flush=True)
