"""Who calls: the key of a request, admitted in the very transaction that does its work."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from ploti.errors import Fault, NotSubscribed, TooLarge, Unauthenticated
from ploti.model.ids import WorkspaceId
from ploti.model.wire import Instant, convert
from ploti.server.api.backend import Backend
from ploti.server.api.patience import Patience
from ploti.server.api.problems import ClientGone, explain, refuse
from ploti.server.api.repeats import read_again
from ploti.server.membership.principal import ADMIN, Principal, Reader, require
from ploti.server.membership.rights import PlanReading
from ploti.server.ports.rows import AuditRow
from ploti.server.ports.store import Transaction
from ploti.server.service.authenticate import authenticate_digest, key_digest
from ploti.server.service.read_plans import read_all_plans, read_plans, with_plans

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
HttpRequest = Request[object, object, State]

PERMISSION = "permission"
"""In a router's `opt`: what a key needs for its routes."""

OPEN = "open"
"""In a router's `opt`: it answers without a key too, where a workspace is public."""

COUNTED = "ploti.counted"
"""In a request's scope: it was counted against its key's limit already."""

LONGEST_BODY = 1 << 20

_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL as JSON writes it, and not a backslash before the same letters."""

_SEND_A_KEY = "Send a key as 'Authorization: Bearer ploti_…'"
_AT = re.compile(r"(.*) - at `\$\.?(.*)`")


@dataclass(slots=True)
class Caller:
    """One request's key: nothing is read, written or received for it before it is admitted.

    `key` is None for a request without one, which only the routes open to it have.
    """

    request: HttpRequest
    backend: Backend
    key: str | None
    permission: str
    text: bytes = b""

    async def read(
        self, work: Callable[[Transaction, Principal], T], *, briefly: bool = False
    ) -> T:
        """Admit the key and do work that only reads, over one consistent moment."""
        return await self.backend.store.read(lambda tx: work(tx, self._admit(tx)), briefly=briefly)

    async def write(self, work: Callable[[Transaction, Principal], T]) -> T:
        """Admit the key and do work in one transaction, which keeps the staff's audit too.

        A POST that comes again under one `Idempotency-Key` is done once.
        """
        again, now = read_again(self.request, self.text), self.backend.clock.now()

        def do(tx: Transaction) -> T:
            who = self._admit(tx)
            if again is not None:
                tx.keys.lock(who.key_id)
                self.backend.repeats.check(tx, who, again, now=now)
            result = work(tx, who)
            self._record(tx, who, result, now=now)
            if again is not None:
                self.backend.repeats.keep(tx, who, again, result, now=now)
            return result

        return await self.backend.store.write(do)

    async def change(self, work: Callable[[Transaction, Principal, PlanReading], T]) -> T:
        """Write what changes the membership of one of the caller's subscriptions."""
        who, backend = await self.admit(), self.backend
        return await with_plans(
            lambda: read_plans(backend.store, backend.plans, [who.workspace_id]),
            lambda plans: self.write(lambda tx, who: work(tx, who, plans)),
        )

    async def change_all(self, work: Callable[[Transaction, PlanReading], T]) -> T:
        """Write what may change the membership of every subscription, for staff."""
        await self.admit()
        backend = self.backend
        return await with_plans(
            lambda: read_all_plans(backend.store, backend.plans),
            lambda plans: self.write(lambda tx, _: work(tx, plans)),
        )

    async def once(self, work: Callable[[], Awaitable[T]]) -> T:
        """Admit the key and do work that takes more than one transaction.

        What staff begin so is in the audit before it begins. As with `write`, a POST that comes
        again is done once; while it is under way its answer is waited for.
        """
        again, now = read_again(self.request, self.text), self.backend.clock.now()
        who = await self.admit()
        if again is None:
            return await self._begin(work)
        name, repeats, store = again, self.backend.repeats, self.backend.store

        async def do() -> T:
            # Here, where it is known to be under way: looked for before, it may end in between
            await self._check_repeated(who)
            answer = await self._begin(work)
            await store.write(lambda tx: repeats.keep(tx, who, name, answer, now=now))
            return answer

        return await repeats.join(who, name, do)

    async def admit(self) -> Principal:
        """Who calls; raises Unauthenticated, or Forbidden where the permission is lacking."""
        return await self.backend.store.read(self._admit, briefly=True)

    async def look(self, work: Callable[[Transaction, Reader], T]) -> T:
        """Read what coverage and plan open; without a key what they open to public workspaces.

        Raises Unauthenticated where there is no key and no public workspace.
        """
        workspaces = await self.backend.store.read(self._workspaces)
        plans = PlanReading(revision=-1, plans=await self.backend.plans.read(workspaces))
        reader = Reader(workspaces=workspaces, plans=plans)
        return await self.backend.store.read(lambda tx: work(tx, reader))

    async def fetch(self, work: Callable[[Transaction, Reader], T]) -> T:
        """Read what recorded membership opens; the plan is asked only why it does not (S-32).

        Raises Unauthenticated where there is no key and no public workspace.
        """
        try:
            return await self.backend.store.read(
                lambda tx: work(tx, Reader(workspaces=self._workspaces(tx)))
            )
        except NotSubscribed:
            return await self.look(work)

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
        who = await self.admit()
        self.text = b"".join([chunk async for chunk in self._limited()])
        await self._check_repeated(who)
        try:
            raw = msgspec.json.decode(self.text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise refuse(Fault("body", f"is no JSON: {error}")) from None
        if _NUL.search(self.text):
            raise refuse(Fault("body", "has a NUL in a text, which no database keeps"))
        if not isinstance(raw, dict):
            raise refuse(Fault("body", "is no JSON object"))
        return raw

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, nothing of it kept.

        Raises ClientGone where it breaks off, and TooSlow where it does not go on.
        """
        patience = Patience()
        more = True
        while more:
            message = await patience.wait(self.request.receive)
            if message["type"] != "http.request":
                raise ClientGone("The body broke off")
            patience.earn(len(message["body"]))
            more = message["more_body"]
            yield message["body"]

    async def gone(self) -> None:
        """Return once the client has gone away; the body must have been read before."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def _check_repeated(self, who: Principal) -> None:
        """Raise Repeated where this was done before, whatever became of what it names since."""
        again, now = read_again(self.request, self.text), self.backend.clock.now()
        if again is not None:
            await self.backend.store.read(
                lambda tx: self.backend.repeats.check(tx, who, again, now=now)
            )

    async def _limited(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > LONGEST_BODY:
                raise TooLarge(f"The body is over {LONGEST_BODY} bytes")
            yield chunk

    def _admit(self, tx: Transaction) -> Principal:
        if self.key is None:
            raise Unauthenticated(_SEND_A_KEY)
        return admit(tx, self.backend, key_digest(self.key), permission=self.permission)

    def _workspaces(self, tx: Transaction) -> tuple[WorkspaceId, ...]:
        if self.key is not None:
            return (self._admit(tx).workspace_id,)
        public = tx.workspaces.public()
        if not public:
            raise Unauthenticated(_SEND_A_KEY)
        return tuple(public)

    async def _begin(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._is_audited():
            now = self.backend.clock.now()
            await self.backend.store.write(
                lambda tx: self._record(tx, self._admit(tx), None, now=now)
            )
        return await work()

    def _record(self, tx: Transaction, who: Principal, result: object, *, now: Instant) -> None:
        if self._is_audited():
            entry = describe_call(self.request, who, result, now=now)
            tx.audit.add(entry)

    def _is_audited(self) -> bool:
        """Whether this is something that one of the staff does; a dry run does nothing."""
        is_dry = self.request.query_params.get("dryRun") == "true"
        return self.permission == ADMIN and self.request.method != "GET" and not is_dry


async def find_caller(request: HttpRequest, backend: NamedDependency[Backend]) -> Caller:
    """The caller of a request, counted against its limit.

    Raises Unauthenticated where it carries no key and the route is not open without one.
    """
    key = _read_key(request)
    digest = None if key is None else key_digest(key)
    address = backend.limits.address(
        request.client.host if request.client else "",
        forwarded=",".join(request.headers.getall("x-forwarded-for", [])),  # proxies may add a line
    )
    if COUNTED not in request.scope:
        backend.limits.take(digest, address=address)
    return Caller(request, backend, key, permission_of(request.route_handler))


def _read_key(request: HttpRequest) -> str | None:
    header = request.headers.get("authorization")
    if header is None and OPEN in request.route_handler.opt:
        return None
    key = key_in(header or "")
    if key is None:
        raise Unauthenticated(_SEND_A_KEY)
    return key


def key_in(header: str) -> str | None:
    """The key in an `Authorization`; None where there is none."""
    found = _BEARER.fullmatch(header)
    return None if found is None else found[1]


def admit(tx: Transaction, backend: Backend, digest: str, *, permission: str) -> Principal:
    """Who calls with the key of this digest, in the transaction that does its work.

    Raises Unauthenticated, or Forbidden where the permission is lacking.
    """
    now = backend.clock.now()
    principal = authenticate_digest(tx, digest, now=now)
    let_in(backend, principal, digest, permission=permission, now=now)
    return principal


def let_in(
    backend: Backend, principal: Principal, digest: str, *, permission: str, now: Instant
) -> None:
    """Note that a key is known and was used; raises Forbidden where the permission is lacking."""
    backend.limits.admitted(digest)
    backend.uses.note(principal.key_id, at=now)
    require(principal, permission)


def describe_call(
    request: HttpRequest, who: Principal, result: object, *, now: Instant
) -> AuditRow:
    """What the audit keeps of a call: what is in its path, or the id of what it made."""
    subject = "/".join(map(str, request.path_params.values())) or str(getattr(result, "id", ""))
    return AuditRow(
        at=now,
        member_id=who.member_id,
        key_id=who.key_id,
        action=request.route_handler.handler_name,
        subject=subject,
        query=dict(request.query_params.items()),
    )


def permission_of(handler: HTTPRouteHandler) -> str:
    """What a key needs for this route."""
    return str(handler.opt[PERMISSION])


def _fault(message: str) -> Fault:
    found = _AT.fullmatch(message)
    said, field = (found[1], found[2]) if found else (message, "")
    return Fault(field or "body", explain(said))
