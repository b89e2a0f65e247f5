"""Signatures of webhooks by Standard Webhooks, made and checked with its own package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from standardwebhooks import Webhook as Signer
from standardwebhooks import WebhookVerificationError

from ploti.errors import InvalidSignature
from ploti.model.webhook import Message, read_message

_REMEMBERED = 1024
"""Secrets that are not decoded anew for each body."""

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def sign(body: bytes, *, id: str, at: datetime, secrets: Iterable[str]) -> dict[str, str]:  # noqa: A002  the header's own name
    """The three headers of a body sent at this moment; each secret adds a signature."""
    moment = datetime.fromtimestamp(int(at.timestamp()), UTC)  # the package keeps no other zone
    text = body.decode()
    signatures = [_signer(each).sign(id, moment, text) for each in secrets]
    return {
        ID: id,
        TIMESTAMP: str(int(moment.timestamp())),
        SIGNATURE: " ".join(signatures),
    }


@lru_cache(_REMEMBERED)
def _signer(secret: str) -> Signer:
    return Signer(secret)


def verify(body: bytes, headers: Mapping[str, str], secret: str) -> Message:
    """The event, or the ping, that a body is; the bytes must be those that were received.

    Raises:
        InvalidSignature: The secret's holder did not sign this body, not within five minutes of
            now, or a header or the body has no such form.
    """
    if not headers_in(headers).get(TIMESTAMP, "").isdecimal():
        raise InvalidSignature(f"{TIMESTAMP} is missing, or is no whole number of seconds")
    try:
        Signer(secret).verify(body, dict(headers), json_parse=False)
    except WebhookVerificationError as error:
        raise InvalidSignature(f"The webhook's signature is refused: {error}") from None
    except Exception:  # noqa: BLE001  the package raises half a dozen kinds on malformed input
        raise InvalidSignature(
            "The webhook's headers, its body or the secret are malformed"
        ) from None
    try:
        return read_message(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidSignature(f"The body is no message of a webhook: {error}") from None


def headers_in(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in small letters."""
    return {name.lower(): value for name, value in headers.items()}
