"""Processes forked off one that has done the imports, so that a start costs none of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from multiprocessing import reduction
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, Protocol, Self, TextIO, cast

from ploti import cli

_IMPORTED = [
    "__main__",
    "ploti.server.app.serve",
    "ploti.cli.sync",
    "ploti.sync.calls",
    "pyarrow.parquet",
    "duckdb",
]


def context() -> ForkServerContext:
    """Processes are forked off one that has all that is heavy imported, and no thread."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(_IMPORTED)
    return forking


class Process(Protocol):
    """What tests do with a process, whether it was forked or is a `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    @property
    def stdout(self) -> TextIO | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """`ploti` with these arguments, as `subprocess.Popen` starts it; there is nothing to read."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        stdout: TextIO | int,
        stderr: TextIO | int,
    ) -> None:
        self.stdout, out = _ends(stdout)
        self.stderr, err = _ends(stderr)
        given = (list(arguments), dict(env), _Handed(out), _Handed(err), str(Path.cwd()))
        self._process = context().Process(target=_run, args=given, daemon=True)
        self._process.start()
        for ours, theirs in ((stdout, out), (stderr, err)):
            if theirs is not ours:
                theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()

    @property
    def pid(self) -> int:
        return cast("int", self._process.pid)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired("ploti", timeout or 0)
        return status

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end; of what it says, no stream may be more than a pipe holds."""
        self.wait(timeout)
        said, why = (stream.read() if stream else "" for stream in (self.stdout, self.stderr))
        self._close()
        return said, why

    def send_signal(self, sig: int, /) -> None:
        with suppress(ProcessLookupError):  # it has ended, and is not yet told to have
            if self.poll() is None:
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _close(self) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def run(*arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `ploti` to its end, as `subprocess.run` does that captures what it says."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = Forked(arguments, env=env, stdout=out, stderr=err)
        try:
            status = process.wait(120)
        finally:
            process.kill()
        said = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(list(arguments), status, *said)


def _ends(wanted: TextIO | int) -> tuple[TextIO | None, TextIO]:
    """Where it is read what the process says, and what the process writes to."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        return os.fdopen(reading, encoding="utf-8"), os.fdopen(writing, "w")
    if wanted == subprocess.DEVNULL:
        return None, Path(os.devnull).open("w")
    assert not isinstance(wanted, int)
    return None, wanted


class _Handed:
    """A file that the process gets as a descriptor of its own."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._file.fileno()),)


def _received(handed: Any) -> int:
    descriptor: int = handed.detach()
    return descriptor


def _run(arguments: list[str], env: dict[str, str], out: int, err: int, folder: str) -> None:
    """Become what the shell would have started, and end as it does."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    cast("TextIOWrapper", sys.stdout).reconfigure(write_through=False, line_buffering=False)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = ["ploti", *arguments]
    raise SystemExit(cli.run(arguments))
