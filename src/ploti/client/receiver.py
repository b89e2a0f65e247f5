"""Receives webhooks on an address of this machine, verifies each and hands it on once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from ploti.errors import InvalidSignature, PlotiError
from ploti.model.signature import verify
from ploti.model.webhook import Message, Ping

_LONGEST_BODY = 1 << 20
_REMEMBERED = 10_000
_PATIENCE = 15.0

Take = Callable[[bytes, Message], None]


class Receiver(ThreadingHTTPServer):
    """Has `take` note a verified POST, and answers it with 204.

    `take` must be quick: what it has noted is answered, and not sent again. An event that came
    before is answered and not handed on again: `(subscriptionId, id)` tells (S-51). `take` is
    called from several threads, `refused` with the reason of a refusal.
    """

    daemon_threads = True

    def __init__(
        self, host: str, port: int, *, secret: str, take: Take, refused: Callable[[str], None]
    ) -> None:
        self.secret, self.take, self.refused = secret, take, refused
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            reason = error.strerror or "no such address"
            raise PlotiError(f"Cannot listen on {host}, port {port}: {reason}") from None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def is_new(self, message: Message) -> bool:
        """Whether a message was not handed on before; from now on it counts as handed on."""
        subscription = "" if isinstance(message, Ping) else message.subscription_id
        known = (subscription, message.id)
        with self._lock:
            new = known not in self._seen
            self._seen[known] = None
            self._seen.move_to_end(known)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return new


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE

    def do_POST(self) -> None:
        """Verify the body and answer."""
        receiver = cast("Receiver", self.server)
        try:
            body = self._body()
            message = verify(body, dict(self.headers.items()), receiver.secret)
        except InvalidSignature as error:
            receiver.refused(error.detail)
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        if receiver.is_new(message):
            receiver.take(body, message)
        self._answer(HTTPStatus.NO_CONTENT)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what is received is told by `take`."""

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST_BODY:
            raise InvalidSignature(f"The body has no length, or one over {_LONGEST_BODY} bytes")
        return self.rfile.read(int(length))

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.wfile.flush()
