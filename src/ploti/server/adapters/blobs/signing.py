"""Signs links to files and checks them, with a key derived from the server's secret."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, urlencode

from ploti.errors import Forbidden
from ploti.model.wire import Instant
from ploti.server.ports.links import LINK_FIELDS, Link

_PURPOSE = b"ploti file links"
_NUMBERING = b"ploti number of a key"
_ASK_AGAIN = "ask for the version again: its answer has fresh links"


def derive(secret: bytes, purpose: bytes) -> bytes:
    """A key of 32 bytes for one purpose, by HKDF with SHA-256 (RFC 5869) without a salt."""
    extracted = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(extracted, purpose + b"\x01", hashlib.sha256)


def _number(secret: bytes) -> str:
    """Which key signed a link: a number that follows from the secret and tells nothing of it."""
    return str(int.from_bytes(derive(secret, _NUMBERING)[:4]))


class LinkSigner:
    """Makes and checks links below `base`, which is the server's public address.

    `older` are secrets whose links are still good: links live for an hour after a new one came.
    """

    def __init__(
        self,
        secret: bytes,
        *,
        base: str,
        now: Callable[[], Instant],
        older: Sequence[bytes] = (),
    ) -> None:
        self._keys = {_number(each): derive(each, _PURPOSE) for each in (*older, secret)}
        self._current = _number(secret)
        self._base = base.rstrip("/")
        self._now = now

    def link(self, blob: str, *, file_name: str, sha256: str, expires_at: Instant) -> str:
        """An address of the blob that can be had without a key until `expires_at`."""
        said = {
            "expires": str(int(expires_at.timestamp())),
            "file": file_name,
            "key": self._current,
            "sha256": sha256,
        }
        query = urlencode(said | {"signature": self._sign(blob, said)})
        return f"{self._base}/files/{quote(blob)}?{query}"

    def check(self, blob: str, query: Mapping[str, str]) -> Link:
        """What the link says; raises Forbidden where it is expired or was changed."""
        if sorted(query) != sorted(LINK_FIELDS):
            raise Forbidden(f"This is not a whole link to a file: {_ASK_AGAIN}")
        said = {name: query[name] for name in LINK_FIELDS if name != "signature"}
        if said["key"] not in self._keys or not hmac.compare_digest(
            self._sign(blob, said).encode(), query["signature"].encode("utf-8", "replace")
        ):
            raise Forbidden(f"This link was changed: {_ASK_AGAIN}")
        if int(said["expires"]) <= self._now().timestamp():
            raise Forbidden(f"This link has expired: {_ASK_AGAIN}")
        return Link(blob=blob, file_name=said["file"], sha256=said["sha256"])

    def _sign(self, blob: str, said: Mapping[str, str]) -> str:
        fields = [blob, *(said[name] for name in sorted(said))]
        text = "".join(f"{len(field)}:{field}" for field in fields)
        return hmac.digest(
            self._keys[said["key"]], text.encode("utf-8", "replace"), hashlib.sha256
        ).hex()
