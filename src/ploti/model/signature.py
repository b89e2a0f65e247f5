"""Signatures of webhooks by Standard Webhooks, checked with its own package."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache

import msgspec
from standardwebhooks import Webhook as Signer
from standardwebhooks import WebhookVerificationError

from ploti.errors import InvalidSignature
from ploti.model.webhook import Message, read_message

_REMEMBERED = 1024
"""Secrets of which the key is not read anew for each body."""

_PREFIX = "whsec_"
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def sign(body: bytes, *, id: str, at: datetime, secrets: Iterable[str]) -> dict[str, str]:  # noqa: A002  the header's own name
    """The three headers of a body sent at this moment; each secret adds a signature."""
    moment = str(int(at.timestamp()))
    signed = f"{id}.{moment}.".encode() + body
    return {
        ID: id,
        TIMESTAMP: moment,
        SIGNATURE: " ".join([_signature(signed, each) for each in secrets]),
    }


def _signature(signed: bytes, secret: str) -> str:
    # Not `hmac.digest`, after which each time the thread has to wait for the interpreter
    made = _begun(secret).copy()
    made.update(signed)
    return f"v1,{b64encode(made.digest()).decode()}"


@lru_cache(_REMEMBERED)
def _begun(secret: str) -> hmac.HMAC:
    """The signature of nothing by a secret's key: base64, with or without padding."""
    return hmac.new(b64decode(f"{secret.removeprefix(_PREFIX)}=="), digestmod="sha256")


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
