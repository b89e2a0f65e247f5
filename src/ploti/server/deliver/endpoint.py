"""Which addresses a webhook may have: https, and http in networks that were opened."""

from __future__ import annotations

from urllib.parse import urlsplit

LONGEST_URL = 2048


def check_url(url: str) -> tuple[str, int, str]:
    """The host, the port and the scheme of an address; raises ValueError saying what is wrong."""
    if len(url) > LONGEST_URL or not url.isprintable() or " " in url:
        raise ValueError(f"must have no blank and {LONGEST_URL} characters at most")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"'{url}' is no address: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError("must be an address such as https://example.org/webhook")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or a password")
    if parts.fragment or port == 0:
        raise ValueError("must have no fragment, and a port from 1 on")
    return host, port or (443 if parts.scheme == "https" else 80), parts.scheme
