"""The API over a real store and real blobs, in this process, for tests that build nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from ploti.model.ids import DatasetId
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.meters import PrometheusMeters
from ploti.server.adapters.plans import LocalPlans
from ploti.server.adapters.poster import WebhookPoster
from ploti.server.adapters.sealer import Sealer
from ploti.server.adapters.store import SqliteStore
from ploti.server.api.application import make_application
from ploti.server.api.backend import Backend
from ploti.server.api.limits import RateLimits
from ploti.server.api.repeats import Repeats
from ploti.server.api.waiters import Waiters
from ploti.server.ports.store import Transaction
from ploti.server.service.apply_dataset import apply_dataset
from ploti.server.service.check_source import Parts
from ploti.server.service.deliver_due import Delivering
from ploti.server.service.note_use import KeyUses
from ploti.server.service.read_plans import read_all_plans
from ploti.server.service.set_up import NewKeys, set_up

T = TypeVar("T")
BASE = "http://ploti.test"
NOTHING: Any = None
QUICK = 1_000_000
"""Requests a second of a key, and of an address: more than any test sends."""


class Running:
    """A server without a socket: requests go straight to the application, in its own loop."""

    def __init__(self, folder: Path, *, most_waits: int = 8, rate: int = QUICK) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        try:
            self.call(self._start(folder, most_waits, rate))
        except BaseException:
            self._end_loop()
            raise

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return self.begin(work).result(timeout=60)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self.call(self.store.write(work))

    def declare(self, dataset: str, **settings: object) -> None:
        raw = {"id": dataset, "title": "T", "place": "us/fl", "topic": "permits", **settings}
        now, plans = self.clock.now(), self.call(read_all_plans(self.store, self.backend.plans))
        self.write(
            lambda tx: apply_dataset(
                tx, DatasetId(dataset), raw, plans=plans, dry_run=False, now=now
            )
        )

    def start(
        self, method: str, path: str, *, key: str | None = "", **options: Any
    ) -> Future[httpx2.Response]:
        """Begin a request; the subscriber's key unless another or none (None) is given."""
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["authorization"] = f"Bearer {key or self.keys.subscriber}"
        return self.begin(self.http.request(method, path, headers=headers, **options))

    def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self.start(method, path, **options).result(timeout=60)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.send("GET", path, **options)

    def staff(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self.send(method, path, key=self.keys.staff, **options)

    def stop(self) -> None:
        self.call(self._stop())
        self._end_loop()

    def _end_loop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _start(self, folder: Path, most_waits: int, rate: int) -> None:
        self.clock, ids, meters = SystemClock(), RandomIds(), PrometheusMeters()
        self.store = SqliteStore(str(folder / "ploti.db"))
        signer = LinkSigner(b"s" * 32, base=BASE, now=self.clock.now)
        self.blobs = FolderBlobs(folder / "blobs", signer=signer)
        parts = Parts(
            store=self.store,
            blobs=self.blobs,
            fetcher=NOTHING,
            builder=NOTHING,
            clock=self.clock,
            ids=ids,
            plans=LocalPlans(self.store),
            meters=meters,
            max_source=1 << 20,
        )
        waiters = Waiters(
            lambda logs: self.store.read(lambda tx: tx.log.last_numbers(logs)), most=most_waits
        )
        self.store.on_log(waiters.ring)
        self.poster = WebhookPoster(allow_networks=["127.0.0.0/8"], user_agent="ploti/0")
        delivering = Delivering(
            store=self.store,
            poster=self.poster,
            sealer=Sealer([b"k" * 32]),
            clock=self.clock,
            ids=ids,
            meters=meters,
            base=BASE,
        )
        self.backend = Backend(
            parts=parts,
            delivering=delivering,
            files=self.blobs,
            waiters=waiters,
            limits=RateLimits(rate=rate, public_rate=rate),
            repeats=Repeats(Sealer([b"a" * 32])),
            uses=KeyUses(),
            base=BASE,
        )
        self.keys: NewKeys = await self.store.write(
            lambda tx: set_up(tx, ids=ids, now=self.clock.now()) or NOTHING
        )
        self.application = make_application(self.backend, version="0")
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.application, raise_app_exceptions=False),
            base_url=BASE,
        )

    async def _stop(self) -> None:
        self.backend.waiters.close()
        await self.http.aclose()
        await self.store.close()
        await self.poster.close()
        self.blobs.close()


@contextmanager
def running(folder: Path, *, most_waits: int = 8, rate: int = QUICK) -> Iterator[Running]:
    server = Running(folder, most_waits=most_waits, rate=rate)
    try:
        yield server
    finally:
        server.stop()


def problem(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem that an answer is, with all that every problem has."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body.keys() - {"errors"} == {"type", "title", "status", "detail", "code"}
    assert (body["status"], body["code"]) == (status, code)
    assert "\n" not in body["detail"]
    assert "Traceback" not in response.text
    return body
