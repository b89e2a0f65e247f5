"""What is alike in all POSTs to an address: where connections lead, and most of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from yarl import URL


class Origin(NamedTuple):
    """Where connections lead: a host as names are asked for, by one scheme, at one port."""

    scheme: str
    host: str
    port: int


class Target:
    """An address that is posted to; raises ValueError for one that is not of http or https."""

    def __init__(self, url: str, *, headers: Mapping[str, str]) -> None:
        parsed = URL(url)
        if parsed.scheme not in {"http", "https"} or not parsed.raw_host or not parsed.port:
            raise ValueError(f"'{url}' is no address of http or https")
        self.origin = Origin(parsed.scheme, parsed.raw_host, parsed.port)
        host = {"Host": str(parsed.host_port_subcomponent)}
        sent = {**host, **headers, "Accept": "*/*"}
        self._head = f"POST {parsed.raw_path_qs} HTTP/1.1\r\n{_lines(sent)}"

    def message(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """A whole request, with these headers beside those of all."""
        return f"{self._head}{_lines(headers)}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _lines(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
