"""Keeps webhooks' secrets unreadable in the database: sealed with the first key, opened by any."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from ploti.errors import PlotiError

_REMEMBERED = 1024
"""Secrets that are not opened anew for each attempt."""


class Sealer:
    """The Sealer port; `keys` are of 32 bytes, derived for this purpose alone."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._fernet = MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
        self._opened = lru_cache(_REMEMBERED)(self._open)

    def seal(self, secret: str) -> str:
        """A text out of which only a holder of the key gets the secret."""
        return self._fernet.encrypt(secret.encode()).decode()

    def open(self, sealed: str) -> str:
        """The secret again; raises PlotiError where no key opens it."""
        return self._opened(sealed)

    def _open(self, sealed: str) -> str:
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            raise PlotiError(
                "A webhook's secret was sealed with another key: add it to PLOTI_SECRET_KEYS"
            ) from None
