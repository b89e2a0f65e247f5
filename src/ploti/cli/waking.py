"""Webhooks as the signal to read the log: `ploti feeds sync --listen`, and where the secret is."""

from __future__ import annotations

import base64
import binascii
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ploti.client.alarm import Alarm
from ploti.client.receiver import Receiver
from ploti.errors import ConfigError
from ploti.model.webhook import Message, Ping

SECRET_VARIABLE = "PLOTI_WEBHOOK_SECRET"  # noqa: S105  the variable's name
HOST = "127.0.0.1"

SecretFile = Annotated[
    Path | None,
    Parameter(help=f"A file with the webhook's secret; else {SECRET_VARIABLE} has it."),
]
"""The flag of commands that receive webhooks."""


def read_secret(file: Path | None) -> str:
    """The secret that webhooks are verified with; raises ConfigError where there is none."""
    secret = (
        os.environ.get(SECRET_VARIABLE, "") if file is None else file.read_text("utf-8", "replace")
    )
    if not secret.strip():
        raise ConfigError(
            f"no secret to verify with: set {SECRET_VARIABLE} to the whsec_… that `ploti webhooks "
            "create` showed, or name a file with --secret-file"
        )
    if not _is_secret(secret.strip()):
        raise ConfigError(
            "the secret to verify with is not one that `ploti webhooks create` showed: those are"
            " whsec_ and base64"
        )
    return secret.strip()


def _is_secret(text: str) -> bool:
    try:
        return bool(base64.b64decode(text.removeprefix("whsec_"), validate=True))
    except binascii.Error:
        return False


@contextmanager
def waking(port: int, *, secret: str, subscription: str, alarm: Alarm) -> Iterator[None]:
    """Ring the alarm for each verified event of the subscription that comes to the port.

    Every message is answered at once; what it says is not acted on, since the log is the record
    (R-005). Pings and other subscriptions' events wake nobody.

    Raises:
        PlotiError: The port cannot be listened on.
    """

    def take(_body: bytes, message: Message) -> None:
        if not isinstance(message, Ping) and message.subscription_id == subscription:
            alarm.ring()

    with Receiver(HOST, port, secret=secret, take=take, refused=_say) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, daemon=True, name="webhooks")
        thread.start()
        _say(f"listening on {receiver.url}")
        try:
            yield
        finally:
            receiver.shutdown()


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
