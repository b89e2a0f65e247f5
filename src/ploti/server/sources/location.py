"""Where a source's bytes are: the addresses and paths that a declaration may name."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from ploti.server.sources import fields
from ploti.server.sources.fields import Wrong

_LONGEST = 2048


def web_address(raw: object) -> str:
    """An http or https address with a host; raises Wrong for anything else.

    User and password in it are refused, since declarations are shown; so is a fragment, which
    no server gets.
    """
    url = fields.text(raw)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Wrong(f"'{url}' is not an address: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise Wrong(f"'{url}' must be an address such as https://example.org/permits.csv")
    if parts.username is not None or parts.password is not None:
        raise Wrong("must not hold a user or a password")
    if parts.fragment or len(url) > _LONGEST or " " in url:
        raise Wrong(f"must have no fragment and no blank, and {_LONGEST} characters at most")
    return url


def file_path(raw: object) -> str:
    """An absolute path, from one or from a `file:///` address; raises Wrong for others."""
    written = fields.text(raw)
    path = written
    if written.startswith("file:"):
        parts = urlsplit(written)
        if parts.netloc not in {"", "localhost"}:
            raise Wrong(f"'{written}' is on another machine: the server reads its own disk")
        path = unquote(parts.path)
    if not path.startswith("/"):
        raise Wrong(f"'{written}' must be an absolute path such as /srv/data/permits.csv")
    return path
