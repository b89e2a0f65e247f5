"""Names by which the server knows a request that is sent again."""

from __future__ import annotations

import secrets


def request_name() -> str:
    """A new name, of 128 bits of chance."""
    return secrets.token_hex(16)
