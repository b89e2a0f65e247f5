"""A real `ploti serve` in a process of its own, for tests to use, signal and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
from tests.fakes.forked import Forked, Process

PLOTI = [sys.executable, "-m", "ploti"]
UNLIMITED = {"PLOTI_RATE_LIMIT": "1000000", "PLOTI_PUBLIC_RATE_LIMIT": "1000000"}
"""Tests ask as fast as they can."""
KEEPS = {"PATH", "HOME", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"}


def environment(**settings: str) -> dict[str, str]:
    """What a server inherits: nothing of this process's own settings."""
    return {name: value for name, value in os.environ.items() if name in KEEPS} | settings


def until(true: Callable[[], Any], *, within: float = 60.0) -> Any:
    """Wait for something that comes by itself."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come")


class Server:
    """A server over `data`, started on a free port unless `flags` say another.

    One whose own costs are measured is started `anew`: nothing of it is done before; so is one
    that another `program` runs.
    """

    def __init__(
        self,
        data: Path,
        *flags: str,
        settings: Mapping[str, str] | None = None,
        anew: bool = False,
        program: Sequence[str] | None = None,
    ) -> None:
        self.data = data
        self.log_file = data.parent / f"{data.name}.log"
        free = [] if "--port" in flags else ["--port", "0"]
        arguments = ["serve", "--data", str(data), *free, *flags]
        env = environment(**(UNLIMITED | dict(settings or {})))
        self.process: Process
        with self.log_file.open("a") as log:
            if anew or program:
                self.process = subprocess.Popen(
                    [*(program or PLOTI), *arguments],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=env,
                )
            else:
                self.process = Forked(arguments, env=env, stdout=subprocess.PIPE, stderr=log)
        self.said: list[str] = []
        self.url = self._wait_until_it_serves()
        keys = data / "keys"
        self.staff_key, self.key = keys.read_text().split() if keys.exists() else ("", "")
        self.http = httpx2.Client(base_url=self.url, timeout=120)

    def _wait_until_it_serves(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith("ploti serves "):
                return line.split()[-1]
        self.process.stdout.close()
        raise AssertionError(f"it ended with {self.process.wait()}: {self.said}, {self.log()}")

    def log(self) -> str:
        return self.log_file.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, by: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and give its status."""
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(by)
        status = self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.request("GET", path, **options)

    def staff(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self.request(method, path, key=self.staff_key, **options)

    def request(
        self, method: str, path: str, *, key: str | None = None, **options: Any
    ) -> httpx2.Response:
        headers = {"authorization": f"Bearer {key or self.key}", **options.pop("headers", {})}
        return self.http.request(method, path, headers=headers, **options)

    def declare(self, dataset: str, **settings: object) -> None:
        raw = {"id": dataset, "title": "T", "place": "us/fl", "topic": "t", **settings}
        response = self.staff("PUT", f"/v1/admin/datasets/{dataset}", json=raw)
        assert response.status_code == 200, response.text

    def push(self, dataset: str, content: bytes, *, name: str = "a.csv") -> dict[str, Any]:
        path = f"/v1/admin/datasets/{dataset}/push"
        response = self.staff("POST", path, params={"name": name}, content=content)
        assert response.status_code == 200, response.text + self.log()
        outcome: dict[str, Any] = response.json()
        return outcome

    def subscribe(self, *datasets: str) -> str:
        body = {"datasets": list(datasets)}
        response = self.request("POST", "/v1/feeds/subscriptions", json=body)
        assert response.status_code == 201, response.text
        return f"/v1/feeds/subscriptions/{response.json()['id']}"


@contextmanager
def served(folder: Path, *flags: str, anew: bool = False, **settings: str) -> Iterator[Server]:
    server = Server(folder / "data", *flags, settings=settings, anew=anew)
    try:
        yield server
    finally:
        server.stop()
