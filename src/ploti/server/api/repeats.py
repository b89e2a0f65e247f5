"""Requests that come again under one `Idempotency-Key`: done once, answered the same each time."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from litestar import Request, Response
from litestar.datastructures import State

from ploti.errors import Conflict, Fault
from ploti.model.ids import KeyId
from ploti.model.wire import Instant, encode
from ploti.server.api.problems import refuse
from ploti.server.membership.principal import Principal
from ploti.server.ports.outside import Sealer
from ploti.server.ports.rows import AnswerRow
from ploti.server.ports.store import Transaction
from ploti.server.service.prune_old import ANSWERS_KEPT

T = TypeVar("T")

HEADER = "idempotency-key"
_NAME = re.compile(r"[\x21-\x7e]{1,255}")


class Repeated(Exception):
    """The request was done before; `answer` is the JSON that it was answered then."""

    def __init__(self, answer: str) -> None:
        super().__init__("done before")
        self.answer = answer


def answer_again(request: Request[object, object, State], repeated: Repeated) -> Response[bytes]:
    """The response that the request got when it was done."""
    return Response(
        repeated.answer.encode(),
        status_code=request.route_handler.status_code,
        media_type="application/json",
    )


@dataclass(frozen=True, slots=True)
class Again:
    """A request's name out of its header, and a digest of what it asks for."""

    name: str
    request: str


def read_again(request: Request[object, object, State], body: bytes) -> Again | None:
    """The name under which a POST may come again; None where it has none.

    Of a file that is uploaded the bytes are not compared. Raises InvalidInput for a name that is
    none.
    """
    name = request.headers.get(HEADER)
    if name is None or request.method != "POST":
        return None
    if _NAME.fullmatch(name) is None:
        raise refuse(Fault("Idempotency-Key", "is 1 to 255 visible ASCII characters"))
    asked = (request.url.path, request.scope["query_string"].decode("latin-1"))
    digest = hashlib.sha256("\0".join(asked).encode() + b"\0" + body)
    return Again(name, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Repeats:
    """Keeps answers, sealed since some hold a secret, and knows what is under way here."""

    sealer: Sealer
    under_way: dict[tuple[KeyId, str], tuple[str, asyncio.Future[Any]]] = field(
        default_factory=dict
    )

    def check(self, tx: Transaction, who: Principal, again: Again, *, now: Instant) -> None:
        """Raise Repeated where this was done; Conflict where the name was another request's."""
        kept = tx.answers.find(who.key_id, again.name, since=Instant.of(now - ANSWERS_KEPT))
        if kept is not None:
            _check_same(again, kept.request)
            raise Repeated(self.sealer.open(kept.answer))

    def keep(
        self, tx: Transaction, who: Principal, again: Again, answer: object, *, now: Instant
    ) -> None:
        """Keep what a request was answered."""
        tx.answers.add(
            AnswerRow(
                key_id=who.key_id,
                name=again.name,
                request=again.request,
                answer=self.sealer.seal(encode(answer).decode()),
                at=now,
            )
        )

    async def join(self, who: Principal, again: Again, work: Callable[[], Awaitable[T]]) -> T:
        """Do work that is not one transaction, or wait for it where it is under way here."""
        place = (who.key_id, again.name)
        if place in self.under_way:
            request, doing = self.under_way[place]
            _check_same(again, request)
            joined: T = await asyncio.shield(doing)  # the same request has the same type
            return joined
        task: asyncio.Future[T] = asyncio.ensure_future(work())
        self.under_way[place] = (again.request, task)
        try:
            return await task
        finally:
            del self.under_way[place]


def _check_same(again: Again, request: str) -> None:
    if again.request != request:
        raise Conflict(
            f"The Idempotency-Key {again.name} was sent with another request: take a new one"
        )
