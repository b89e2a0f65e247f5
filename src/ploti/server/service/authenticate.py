"""Who calls, by the key of the request."""

from __future__ import annotations

import hashlib

from ploti.errors import Unauthenticated
from ploti.model.wire import Instant
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Transaction


def authenticate(tx: Transaction, key: str, *, now: Instant) -> Principal:
    """The member behind a key; raises Unauthenticated for one that is not known, or has ended."""
    return authenticate_digest(tx, key_digest(key), now=now)


def authenticate_digest(tx: Transaction, digest: str, *, now: Instant) -> Principal:
    """The same by what is stored of the key."""
    principal = tx.keys.principal(digest, now=now)
    if principal is None:
        raise Unauthenticated(
            "This key is not known here, was revoked or has expired: check that it is whole, "
            "or get another"
        )
    return principal


def key_digest(key: str) -> str:
    """What is stored of a key: it has 256 bits of chance, so that one plain hash is enough."""
    return hashlib.sha256(key.encode()).hexdigest()
