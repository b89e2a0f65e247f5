"""Ports to the clock, to chance, to files, to sources and to the child that builds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ploti.model.account import PlanTerms
from ploti.model.ids import HoldId, SubscriptionId, WebhookId, WorkspaceId
from ploti.model.wire import Instant, Value
from ploti.server.build.candidate import (
    Broken,
    BuildOrder,
    BuildResult,
    Exported,
    ExportOrder,
    Looked,
    LookOrder,
)
from ploti.server.build.progress import Tell, ignore
from ploti.server.deliver.answers import Answer
from ploti.server.sources.source import Source
from ploti.server.sources.validators import Validators


class Clock(Protocol):
    """The wall clock."""

    def now(self) -> Instant:
        """This moment, in UTC."""
        ...


class Timer(Protocol):
    """The time that is waited: nobody sets it back or forward, as the wall clock is."""

    def time(self) -> float:
        """Seconds since some moment."""
        ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Raise TimeoutError where what is done within takes longer."""
        ...


class Ids(Protocol):
    """Chance: new ids and secrets."""

    def subscription(self) -> SubscriptionId:
        """A new subscription's id."""
        ...

    def hold(self) -> HoldId:
        """A new hold's id."""
        ...

    def webhook(self) -> WebhookId:
        """A new webhook's id."""
        ...

    def token(self, prefix: str) -> str:
        """A new id of another kind: the prefix and enough chance that it never repeats."""
        ...

    def secret(self, prefix: str) -> str:
        """A new secret: the prefix and 256 bits as text."""
        ...

    def signing_secret(self) -> str:
        """A new secret of Standard Webhooks: `whsec_` and 256 bits in base64."""
        ...

    def chance(self) -> float:
        """A number from 0 to 1, to spread what would come at once."""
        ...


class StoredBlob(Value, kw_only=True):
    """What a blob turned out to be once its last byte was kept: size in bytes, and sha256."""

    name: str
    bytes: int
    sha256: str


class Blobs(Protocol):
    """Files under names that are never shared and never written twice."""

    async def receive(self, name: str, chunks: AsyncIterator[bytes], *, limit: int) -> StoredBlob:
        """Keep a stream; raises SourceError where it is longer than `limit` bytes."""
        ...

    async def adopt(self, name: str, path: str) -> None:
        """Keep the file at `path`, which is gone afterwards; durable once this returns."""
        ...

    async def copy(self, name: str, to: str) -> None:
        """Keep the same bytes under another name too; durable once this returns."""
        ...

    def local(self, name: str) -> AbstractAsyncContextManager[str]:
        """A path at which the blob can be read while the context is open."""
        ...

    async def lines(self, name: str, *, start: int, count: int) -> list[bytes]:
        """Lines of a text from number `start` on, counted from 0: so many at most, as they end."""
        ...

    async def delete(self, name: str) -> None:
        """Remove a blob; nothing happens where there is none."""
        ...

    async def try_out(self) -> None:
        """Keep a few bytes for a moment; raises OSError where nothing can be kept."""
        ...

    async def free(self) -> int:
        """The bytes that there is room for."""
        ...

    async def names(self, prefix: str) -> list[str]:
        """All names below a prefix."""
        ...

    def link(self, name: str, *, file_name: str, sha256: str, expires_at: Instant) -> str:
        """An address at which the blob can be had without a key until `expires_at`."""
        ...


class Fetched(Value, kw_only=True):
    """The bytes of a source's state; `name` is what the source calls them (`permits.csv`)."""

    blob: StoredBlob
    name: str
    validators: Validators | None = None


class NotModified(Value):
    """The source says that what it sent before still stands; nothing was brought."""


class Fetcher(Protocol):
    """Reads a declared source, guarded: only allowed addresses and folders, with limits."""

    async def fetch(
        self, source: Source, *, into: str, known: Validators | None = None, tell: Tell = ignore
    ) -> Fetched | NotModified:
        """Bring the source's bytes into the blob `into`; raises SourceError with a reason.

        With `known` the source may say instead that they are as it said then. `tell` gets word of
        how far it is.
        """
        ...


class Builder(Protocol):
    """Runs one order at a time in a process of its own, with limits."""

    def folder(self) -> AbstractAsyncContextManager[str]:
        """An empty folder for one build, gone with all it holds when the context closes."""
        ...

    async def build(self, order: BuildOrder, *, tell: Tell = ignore) -> BuildResult:
        """Run the order and wait; a child that dies gives `Broken` with its reason.

        `tell` gets word of how far the build is.
        """
        ...

    async def export(self, order: ExportOrder) -> Exported | Broken:
        """Run the order as a build is run."""
        ...

    async def look(self, order: LookOrder) -> Looked | Broken:
        """Run the order as a build is run."""
        ...


class Given(Value, kw_only=True):
    """How far numbers were given when it was last written down; `restored` of a backup's copy."""

    number: int
    restored: bool = False


class Mark(Protocol):
    """Where it is written down how far numbers were given, beside the blobs."""

    def read(self) -> Given:
        """What stands there; nothing given where nothing does."""
        ...

    async def write(self, given: Given) -> None:
        """Write it down durably, in place of what stood there."""
        ...


class Poster(Protocol):
    """Sends to webhooks, guarded: only allowed addresses are dialled, each POST has a deadline."""

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send the body once; whatever goes wrong is an answer with an error."""
        ...

    async def refuse(self, url: str) -> str | None:
        """Why an address may not be a webhook's, as its name is answered now; None where it may."""
        ...


class Plans(Protocol):
    """Tells what workspaces' plans open; asked before a transaction begins."""

    async def read(self, workspaces: Collection[WorkspaceId]) -> Mapping[WorkspaceId, PlanTerms]:
        """The plan of each of these; one that cannot be read now is left out."""
        ...


class Sealer(Protocol):
    """Keeps secrets unreadable in the database."""

    def seal(self, secret: str) -> str:
        """A text out of which only a holder of the key gets the secret."""
        ...

    def open(self, sealed: str) -> str:
        """The secret again; raises PlotiError where no key opens it."""
        ...
