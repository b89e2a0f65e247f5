"""The demo's two processes, a server and a sync that follows, started and ended like a user's."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from ploti.errors import PlotiError

_Find = Callable[[str], str | None]
"""Gives what is wanted out of a line, or None."""

_PATIENCE = 60.0
"""Seconds to wait for a process to say what is awaited."""


class Served(NamedTuple):
    """A running server: its address, and its staff's and its subscriber's key."""

    url: str
    staff_key: str
    subscriber_key: str


@contextmanager
def serving(data: Path) -> Iterator[Served]:
    """A server over the folder `data`, ended when the context closes; it may send to loopback.

    Raises:
        PlotiError: It does not come up; the text is what it said.
    """
    command = ["serve", "--data", str(data), "--port", "0", "--allow-networks", "127.0.0.0/8"]
    with _running(command, folder=data.parent, name="server", environment={}) as lines:
        url = lines.await_line(lambda line: _after(line, "ploti serves "))
        staff_key, subscriber_key = (data / "keys").read_text("utf-8").split()
        yield Served(url=url, staff_key=staff_key, subscriber_key=subscriber_key)


class Follower:
    """A sync that follows; it tells each version that it has committed."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines

    def wait_for(self, version: int) -> None:
        """Wait until this version is in the destination.

        Raises:
            PlotiError: It does not get there; the text is what it said.
        """

        def arrived(line: str) -> str | None:
            told = json.loads(line)
            there = told.get("moment") == "committed" and (told.get("version") or 0) >= version
            return line if there else None

        self._lines.await_line(arrived)


@contextmanager
def following(
    subscription: str, *, destination: str, served: Served, folder: Path
) -> Iterator[Follower]:
    """`ploti feeds sync … --follow`, ended when the context closes."""
    command = ["feeds", "sync", subscription, "--to", destination, "--follow", "--json"]
    with _running(command, folder=folder, name="sync", environment=_of_subscriber(served)) as lines:
        yield Follower(lines)


def ask(command: list[str], *, served: Served, folder: Path) -> str:
    """What a command of the subscriber's prints.

    Raises:
        PlotiError: It ends with another status than 0; the text is what it said.
    """
    done = subprocess.run(
        [sys.executable, "-m", "ploti", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=_environment(_of_subscriber(served)),
    )
    if done.returncode != 0:
        raise PlotiError(f"`ploti {' '.join(command)}` failed: {done.stderr or done.stdout}")
    return done.stdout


def _of_subscriber(served: Served) -> dict[str, str]:
    return {"PLOTI_API_URL": served.url, "PLOTI_API_KEY": served.subscriber_key}


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings of ploti, but for one's own."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PLOTI_")}
    return {**inherited, **own}


def _after(line: str, beginning: str) -> str | None:
    return line.removeprefix(beginning).strip() if line.startswith(beginning) else None


class _Lines:
    """The lines of a process as they come; None is its end."""

    def __init__(self, name: str, output: IO[str], complaints: Path) -> None:
        self._name = name
        self._complaints = complaints
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(output,), daemon=True).start()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._queue.put(line)
        self._queue.put(None)

    def await_line(self, find: _Find) -> str:
        try:
            while (line := self._queue.get(timeout=_PATIENCE)) is not None:
                found = find(line)
                if found is not None:
                    return found
        except queue.Empty:
            raise PlotiError(f"the {self._name} said nothing for {_PATIENCE:.0f} s") from None
        said = self._complaints.read_text("utf-8").strip() or "it said nothing"
        raise PlotiError(f"the {self._name} ended: {said}")


@contextmanager
def _running(
    command: list[str], *, folder: Path, name: str, environment: Mapping[str, str]
) -> Iterator[_Lines]:
    complaints = folder / f"{name}.log"
    with (
        complaints.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "ploti", *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env=_environment(environment),
        ) as process,
    ):
        output = cast("IO[str]", process.stdout)  # a pipe, since one was asked for
        try:
            yield _Lines(name, output, complaints)
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE)
