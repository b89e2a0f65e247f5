"""What a POST to an address begins with, byte by byte."""

import pytest

from ploti.server.adapters.poster.target import Origin, Target

SENT = {"User-Agent": "ploti/0", "Content-Type": "application/json"}


def test_a_request_is_its_line_its_headers_and_the_body() -> None:
    target = Target("http://receiver.example:8080/a%20b?c=d", headers=SENT)
    assert target.message(b'{"a":1}', {"webhook-id": "msg_1", "webhook-timestamp": "7"}) == (
        b"POST /a%20b?c=d HTTP/1.1\r\n"
        b"Host: receiver.example:8080\r\n"
        b"User-Agent: ploti/0\r\n"
        b"Content-Type: application/json\r\n"
        b"Accept: */*\r\n"
        b"webhook-id: msg_1\r\n"
        b"webhook-timestamp: 7\r\n"
        b"Content-Length: 7\r\n"
        b"\r\n"
        b'{"a":1}'
    )


@pytest.mark.parametrize(
    ("url", "origin", "path", "host"),
    [
        ("http://h.example", ("http", "h.example", 80), "/", "h.example"),
        ("https://h.example:443/", ("https", "h.example", 443), "/", "h.example"),
        ("https://h.example:80/x", ("https", "h.example", 80), "/x", "h.example:80"),
        ("http://[::1]:81/x?", ("http", "::1", 81), "/x", "[::1]:81"),
        ("http://H.Example/a b?c=é", ("http", "h.example", 80), "/a%20b?c=%C3%A9", "h.example"),
        ("http://h.example./x", ("http", "h.example.", 80), "/x", "h.example"),
        ("http://h.example?q=1", ("http", "h.example", 80), "/?q=1", "h.example"),
        (
            *("https://bücher.example/ü", ("https", "xn--bcher-kva.example", 443)),
            *("/%C3%BC", "xn--bcher-kva.example"),
        ),
    ],
)
def test_an_address_says_where_to_connect_and_what_to_ask_for(
    url: str, origin: tuple[str, str, int], path: str, host: str
) -> None:
    target = Target(url, headers={})
    assert target.origin == Origin(*origin)
    asked = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n"
    assert target.message(b"", {}) == asked.encode()


@pytest.mark.parametrize("url", ["ftp://h.example/", "/h", "", "http:///h", "mailto:a@h.example"])
def test_what_is_no_address_of_http_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"address|URL|host"):
        Target(url, headers={})
