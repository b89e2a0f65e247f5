"""Who calls: the key of a request, admitted in the very transaction that does its work."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from ploti.errors import Fault, TooLarge, Unauthenticated
from ploti.model.wire import convert
from ploti.server.api.backend import Backend
from ploti.server.api.problems import ClientGone, explain, refuse
from ploti.server.membership.principal import Principal, require
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.authenticate import authenticate

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
HttpRequest = Request[object, object, State]

PERMISSION = "permission"
"""In a router's `opt`: what a key needs for its routes."""

LONGEST_BODY = 1 << 20

_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
_AT = re.compile(r"(.*) - at `\$\.?(.*)`")


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's key: nothing is read, written or received for it before it is admitted."""

    request: HttpRequest
    store: Store
    key: str
    permission: str

    async def read(self, work: Callable[[Transaction, Principal], T]) -> T:
        """Admit the key and do work that only reads, over one consistent moment."""
        return await self.store.read(lambda tx: work(tx, self._admit(tx)))

    async def write(self, work: Callable[[Transaction, Principal], T]) -> T:
        """Admit the key and do work in one transaction."""
        return await self.store.write(lambda tx: work(tx, self._admit(tx)))

    async def admit(self) -> Principal:
        """Who calls; raises Unauthenticated, or Forbidden where the permission is lacking."""
        return await self.store.read(self._admit)

    async def body(self, kind: type[S]) -> S:
        """The JSON body as a value, strictly: a field that it does not know is an error."""
        raw = await self.json()
        unknown = sorted(raw.keys() - {field.encode_name for field in msgspec.structs.fields(kind)})
        if unknown:
            raise refuse(*(Fault(name, "no such field") for name in unknown))
        try:
            return convert(raw, kind)
        except msgspec.ValidationError as error:
            raise refuse(_fault(str(error))) from None

    async def json(self) -> dict[str, object]:
        """The JSON body as an object with whatever is in it."""
        await self.admit()
        text = b"".join([chunk async for chunk in self._limited()])
        try:
            raw = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise refuse(Fault("body", f"is no JSON: {error}")) from None
        if not isinstance(raw, dict):
            raise refuse(Fault("body", "is no JSON object"))
        return raw

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, nothing of it kept; raises ClientGone where it breaks off."""
        more = True
        while more:
            message = await self.request.receive()
            if message["type"] != "http.request":
                raise ClientGone("The body broke off")
            more = message["more_body"]
            yield message["body"]

    async def gone(self) -> None:
        """Return once the client has gone away; the body must have been read before."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def _limited(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > LONGEST_BODY:
                raise TooLarge(f"The body is over {LONGEST_BODY} bytes")
            yield chunk

    def _admit(self, tx: Transaction) -> Principal:
        principal = authenticate(tx, self.key)
        require(principal, self.permission)
        return principal


async def find_caller(request: HttpRequest, backend: NamedDependency[Backend]) -> Caller:
    """The caller of a request; raises Unauthenticated where it carries no key at all."""
    found = _BEARER.fullmatch(request.headers.get("authorization", ""))
    if found is None:
        raise Unauthenticated("Send a key as 'Authorization: Bearer ploti_…'")
    return Caller(request, backend.store, found[1], permission_of(request.route_handler))


def permission_of(handler: HTTPRouteHandler) -> str:
    """What a key needs for this route."""
    return str(handler.opt[PERMISSION])


def _fault(message: str) -> Fault:
    found = _AT.fullmatch(message)
    said, field = (found[1], found[2]) if found else (message, "")
    return Fault(field or "body", explain(said))
