"""The server composed: one folder, one process, builds in children."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

import uvloop

from ploti.errors import PlotiError
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner, derive
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.adapters.data_folder import DataFolder, FolderMark
from ploti.server.adapters.fetcher import SourceFetcher
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.meters import PrometheusMeters
from ploti.server.adapters.plans import LocalPlans
from ploti.server.adapters.poster import WebhookPoster
from ploti.server.adapters.sealer import Sealer
from ploti.server.adapters.store import SqlStore
from ploti.server.api.application import make_application
from ploti.server.api.backend import Backend
from ploti.server.api.limits import RateLimits
from ploti.server.api.repeats import Repeats
from ploti.server.api.waiters import Waiters
from ploti.server.app.listening import address_of, bind, listen
from ploti.server.app.logs import configure_logs
from ploti.server.app.stores import OF_WEBHOOKS, clock_of, open_store, secrets_of, timer_of
from ploti.server.ports.store import Transaction
from ploti.server.service.check_source import Parts, end_left_attempts
from ploti.server.service.deliver_due import Delivering
from ploti.server.service.note_use import KeyUses
from ploti.server.service.recover_numbers import refuse_older
from ploti.server.service.send_alert import Alerting
from ploti.server.service.set_up import NewKeys, set_up
from ploti.server.settings import Settings
from ploti.server.sources.credentials import read_credentials
from ploti.server.worker.deliveries import DeliveryWorker
from ploti.server.worker.jobs import Jobs
from ploti.server.worker.mark import keeping_mark
from ploti.server.worker.uses import keeping_uses

CHILD = ("-m", "ploti.server.app.child")

_OF_ANSWERS = b"ploti kept answers"

_NO_ROOM = (
    *map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
    "database or disk is full",
)

_LARGEST_FILE = 16
"""How many times as large as the largest source a file of a build may be.

Rows on their way into order take as many bytes where a source has but a comma.
"""

_OF_MATCHING = 2
"""A matching may take the seconds of a build divided by this: reading and writing need some too."""

Say = Callable[[str], None]


def serve(settings: Settings, *, say: Say, to_a_terminal: bool) -> None:
    """Serve until SIGINT or SIGTERM; `say` tells the operator a line.

    The keys of a new folder are said where that goes to a terminal, else kept in a file. Raises
    PlotiError where the folder is locked or the address taken.
    """
    configure_logs()
    try:
        _serve(settings, say=say, to_a_terminal=to_a_terminal)
    except Exception as error:
        if not any(said in str(error) for said in _NO_ROOM):
            raise
        raise PlotiError(
            f"--data {settings.data}: its disk is full: make room on it, then start again"
        ) from error


def _serve(settings: Settings, *, say: Say, to_a_terminal: bool) -> None:
    folder = DataFolder(settings.data)
    with folder.locked(), bind(settings.host, settings.port) as listener:
        address = address_of(listener, settings.host)

        async def run() -> None:
            async with compose(settings, folder, base=settings.public_url or address) as backend:
                await _set_up(
                    backend, lambda keys: _hand_over(keys, folder, say, to_a_terminal=to_a_terminal)
                )
                jobs = Jobs(backend.parts)
                backend.store.on_jobs(jobs.ring)
                async with jobs.running():
                    await listen(
                        make_application(backend, version=version("ploti")),
                        listener,
                        started=lambda: _say_where(say, address),
                        ending=backend.waiters.close,
                    )

        if settings.test_clock is not None:
            say(f"PLOTI_TEST_CLOCK: this server's clock is moved by {settings.test_clock}")
        uvloop.run(run())


@asynccontextmanager
async def compose(settings: Settings, folder: DataFolder, *, base: str) -> AsyncIterator[Backend]:
    """The backend over a folder that is locked; what an earlier process left open is ended."""
    secrets = secrets_of(settings, folder)
    store = open_store(settings, folder)
    mark = FolderMark(folder)
    try:
        given = mark.read()
        await store.read(lambda tx: refuse_older(tx, given))
        async with (
            keeping_mark(mark, store),
            _composed(settings, folder, store, secrets=secrets, base=base) as backend,
        ):
            yield backend
    finally:
        await store.close()
        mark.close()


@asynccontextmanager
async def _composed(
    settings: Settings, folder: DataFolder, store: SqlStore, *, secrets: list[bytes], base: str
) -> AsyncIterator[Backend]:
    clock, ids, meters = clock_of(settings, store), RandomIds(), PrometheusMeters()
    signer = LinkSigner(secrets[0], base=base, now=clock.now, older=secrets[1:])
    blobs = FolderBlobs(folder.blobs, signer=signer, spare=settings.min_free)
    fetcher = _fetcher(settings, blobs)
    poster = WebhookPoster(
        allow_networks=settings.allow_networks,
        user_agent=f"ploti/{version('ploti')}",
        timer=timer_of(settings),
    )
    builder = ProcessBuilder(
        folder.work, entry=CHILD, limits=_limits(settings), spare=settings.min_free
    )
    try:
        parts = Parts(
            store=store,
            blobs=blobs,
            fetcher=fetcher,
            builder=builder,
            clock=clock,
            ids=ids,
            plans=LocalPlans(store),
            meters=meters,
            max_source=settings.max_source,
            min_free=settings.min_free,
            alerting=_alerting(settings, poster),
        )
        await end_left_attempts(parts)
        waiters = Waiters(
            lambda logs: store.read(lambda tx: tx.log.last_numbers(logs)), most=settings.max_waits
        )
        store.on_log(waiters.ring)
        delivering = Delivering(
            store=store,
            poster=poster,
            sealer=_sealer(secrets, of=OF_WEBHOOKS),
            clock=clock,
            ids=ids,
            meters=meters,
            base=base,
        )
        uses = KeyUses()
        async with _deliveries(delivering), keeping_uses(uses, store):
            yield Backend(
                parts=parts,
                delivering=delivering,
                files=blobs,
                waiters=waiters,
                limits=_rate_limits(settings),
                repeats=Repeats(_sealer(secrets, of=_OF_ANSWERS)),
                uses=uses,
                base=base,
            )
    finally:
        fetcher.close()
        await poster.close()
        builder.close()
        blobs.close()


def _limits(settings: Settings) -> Limits:
    return Limits(
        memory=settings.build_memory,
        seconds=settings.build_seconds,
        match_seconds=settings.build_seconds / _OF_MATCHING,
        file_size=_LARGEST_FILE * settings.max_source,
    )


def _rate_limits(settings: Settings) -> RateLimits:
    return RateLimits(
        rate=settings.rate_limit,
        public_rate=settings.public_rate_limit,
        behind_proxy=settings.behind_proxy,
    )


def _sealer(secrets: list[bytes], *, of: bytes) -> Sealer:
    return Sealer([derive(each, of) for each in secrets])


def _fetcher(settings: Settings, blobs: FolderBlobs) -> SourceFetcher:
    return SourceFetcher(
        blobs,
        file_roots=settings.file_roots,
        allow_networks=settings.allow_networks,
        max_source=settings.max_source,
        credentials=read_credentials(settings.sources),
        user_agent=f"ploti/{version('ploti')}",
    )


def _alerting(settings: Settings, poster: WebhookPoster) -> Alerting | None:
    if settings.alert_url is None or settings.alert_secret is None:
        return None
    return Alerting(poster=poster, url=settings.alert_url, secret=settings.alert_secret)


@asynccontextmanager
async def _deliveries(delivering: Delivering) -> AsyncIterator[None]:
    """The worker of deliveries, which is the only one on this database, at work."""
    store = delivering.store
    await store.write(lambda tx: tx.webhooks.end_leases())
    worker = DeliveryWorker(delivering)
    store.on_log(worker.ring)
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await worker.finish()


async def _set_up(backend: Backend, hand_over: Callable[[NewKeys], None]) -> None:
    """Set up an empty database; the keys are out before the transaction makes them count."""

    def work(tx: Transaction) -> None:
        keys = set_up(tx, ids=backend.ids, now=backend.clock.now())
        if keys is not None:
            hand_over(keys)

    await backend.store.write(work)


def _hand_over(keys: NewKeys, folder: DataFolder, say: Say, *, to_a_terminal: bool) -> None:
    if to_a_terminal:
        say(f"The staff's key:     {keys.staff}")
        say(f"A subscriber's key:  {keys.subscriber}")
        say("Keep both: they are shown this once. ploti admin keys create makes others.")
    else:
        folder.keep_keys([keys.staff, keys.subscriber])
        say(f"The staff's key and a subscriber's are in {folder.keys}, a line each")


def _say_where(say: Say, address: str) -> None:
    say(f"ploti serves {address}")
    say(f"Next, in a second terminal: export PLOTI_API_KEY=KEY PLOTI_API_URL={address}")
    say("Next: ploti admin datasets list")
