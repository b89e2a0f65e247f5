"""What answers a POST is read as its bytes come, however they come."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ploti.server.adapters.poster.reading import LONGEST, LONGEST_HEAD, NoAnswer, Reading

NOT_HTTP = "no answer: what came is not HTTP"
OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def read(*parts: bytes) -> Reading:
    reading = Reading()
    for part in parts:
        reading.feed(part)
    return reading


def in_bytes(text: bytes) -> list[bytes]:
    return [bytes([each]) for each in text]


def seen(reading: Reading) -> tuple[int | None, bool, bool, str | None]:
    return reading.status, reading.is_over, reading.is_clean, reading.excerpt


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (EMPTY, (200, True, True, None)),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", (200, True, True, "ok")),
        (OK + b"Content-Length: 5\r\n\r\nok", (200, False, True, "ok")),
        (OK + b"\r\nuntil the end", (200, False, True, "until the end")),
        (CHUNKED + b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", (200, True, True, "abc")),
        (CHUNKED + b"2\r\nab\r\n0\r\nRetry-After: 7\r\n\r\n", (200, True, True, "ab")),
        (b"HTTP/1.1 204 .\r\nContent-Length: 9\r\n\r\n", (204, True, True, None)),
        (b"HTTP/1.1 304 .\r\n\r\n", (304, True, True, None)),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", (200, True, False, "ok")),
        (OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n", (200, True, False, None)),
        (
            b"HTTP/1.1 101 .\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
            (101, True, False, None),
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + EMPTY, (200, True, True, None)),
        (b"HTTP/1.1 103 .\r\nLocation: /a\r\n\r\n" * 3 + EMPTY, (200, True, True, None)),
        (OK.replace(b"\r", b"") + b"Content-Length: 2\n\nok", (200, True, True, "ok")),
        (OK + b"A: b\r\n folded\r\nContent-Length: 0\r\n\r\n", (200, True, True, None)),
        (OK + b"A: \x00\r\nContent-Length: 3\r\n\r\na\x00b", (200, True, True, "ab")),
        (OK + b"Content-Length: 2\r\n\r\n\xc3\xff", (200, True, True, "\ufffd\ufffd")),
    ],
)
def test_an_answer_is_the_same_whole_and_byte_by_byte(
    text: bytes, told: tuple[int, bool, bool, str | None]
) -> None:
    for parts in ([text], in_bytes(text)):
        reading = read(*parts)
        assert seen(reading) == told
        assert (reading.retry_after, reading.location) == (None, None)
        assert reading.heard == len(text)


@pytest.mark.parametrize(
    "text",
    [
        b"220 mail.example ESMTP\r\n",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 twohundred\r\n\r\n",
        OK + b"no header at all\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + b"220 mail.example ESMTP\r\n",
    ],
)
def test_what_is_no_http_is_no_answer(text: bytes) -> None:
    for parts in ([text], in_bytes(text)):
        with pytest.raises(NoAnswer, match=NOT_HTTP):
            read(*parts)


def heard(parts: list[bytes]) -> tuple[object, ...]:
    """What is known once its connection is ended, or nothing more comes."""
    reading = Reading()
    try:
        for part in parts:
            if reading.is_clean:
                reading.feed(part)
    except NoAnswer as error:
        return (str(error),)
    return (*seen(reading), reading.retry_after, reading.location)


PIECES = [
    *(OK, EMPTY, CHUNKED, b"HTTP/1.1 100 .\r\n\r\n", b"HTTP/1.0 500 .\r\n", b"HTTP/1.1 302\n"),
    *(
        b"Content-Length: 3\r\n",
        b"Location: /a\r\n",
        b"Retry-After: 5\r\n",
        b"Connection: close\r\n",
    ),
    *(b"\r\n", b"\n", b" x", b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n", b"\x00", b"\xff"),
]


@given(
    pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=12),
    cuts=st.sets(st.integers(1, 200), max_size=6),
)
@example(pieces=[EMPTY, b"HTTP/1.0 500 .\r\n", b"Location: /a\r\n", b"\r\n", b"abc"], cuts=set())
def test_an_answer_says_the_same_wherever_its_bytes_are_cut(
    pieces: list[bytes], cuts: set[int]
) -> None:
    text = b"".join(pieces)
    ends = [0, *sorted(cuts), len(text)]
    whole = heard([text])
    assert heard([text[start:end] for start, end in pairwise(ends)]) == whole
    assert heard(in_bytes(text)) == whole


@pytest.mark.parametrize("more", [EMPTY, EMPTY.replace(b"200", b"500"), b"junk", b"HTTP", b"\x00"])
@pytest.mark.parametrize("first", [EMPTY, CHUNKED + b"0\r\n\r\n"])
def test_after_more_than_an_answer_nothing_is_asked_there_again(first: bytes, more: bytes) -> None:
    assert seen(read(first + more)) == (200, True, False, None)
    assert seen(read(first)) == (200, True, True, None)


@pytest.mark.parametrize("body", [b"zz\r\nab", b"2\r\nabc\r\n"])
def test_the_head_decides_and_what_is_wrong_with_the_body_ends_it(body: bytes) -> None:
    for parts in ([CHUNKED + body], in_bytes(CHUNKED + body)):
        reading = Reading()
        for part in parts:
            if not reading.is_over:
                reading.feed(part)
        assert (reading.status, reading.is_over, reading.is_clean) == (200, True, False)


def test_a_long_body_is_not_read_to_its_end() -> None:
    head = OK + b"Content-Length: 1000000\r\n\r\n"
    reading = read(head, b"x" * 16_383)
    assert not reading.is_over
    reading.feed(b"x")
    assert seen(reading) == (200, True, False, "x" * 2048)


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"0\r\nX: ", b"x"),
        (b"0\r\n", b"x"),
        (b"0\r\n", b"A: b\r\n"),
        (b"2;x=", b"x"),
        (b"", b"1;" + b"x" * 100 + b"\r\nx\r\n"),
    ],
)
def test_what_frames_a_body_is_not_read_without_end_either(begin: bytes, more: bytes) -> None:
    endless = CHUNKED + begin + more * (LONGEST // len(more) + 1)
    for parts in ([endless[:LONGEST]], in_bytes(endless[:LONGEST])):
        reading = read(*parts)
        assert not reading.is_over
        reading.feed(endless[LONGEST : LONGEST + 1])
        assert seen(reading)[:3] == (200, True, False)
    assert seen(read(endless)) == seen(reading)


HEADED = b"HTTP/1.1 503 .\r\nX: "


def headed(size: int) -> bytes:
    """An answer with a head of so many bytes."""
    end = b"\r\nContent-Length: 0\r\n\r\n"
    return HEADED + b"x" * (size - len(HEADED) - len(end)) + end


def test_a_head_has_an_end_before_it_is_too_long() -> None:
    assert read(headed(LONGEST_HEAD)).status == 503
    long = headed(LONGEST_HEAD + 1)
    for parts in ([long], [long[:-1], long[-1:]], [HEADED, b"x" * (1 << 20)]):
        with pytest.raises(NoAnswer, match="no answer: its head is longer than 64 KiB"):
            read(*parts)


def test_what_is_said_ahead_of_an_answer_counts_as_its_head() -> None:
    early = b"HTTP/1.1 102 Processing\r\n\r\n"
    count = LONGEST_HEAD // len(early)
    with pytest.raises(NoAnswer, match="its head is longer"):
        read(*[early] * (count + 1))
    with pytest.raises(NoAnswer, match="its head is longer"):
        read(b"\r\n" * LONGEST_HEAD)
    body = b"x" * LONGEST_HEAD
    assert read(OK + b"\r\n" + body).is_over


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"120", 120),
        (b" 7 ", 7),
        (b"9" * 400, 999_999_999_999),
        (b"\x0c" * 12 + b"7", 7),
        (b"-1", None),
        (b"1.5", None),
        (b"", None),
        ("٣".encode(), None),
        (b"Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_a_retry_after_in_seconds_is_told(value: bytes, seconds: float | None) -> None:
    head = b"HTTP/1.1 503 .\r\nretry-AFTER: " + value + b"\r\nRetry-After: 5\r\n"
    assert read(head + b"Content-Length: 0\r\n\r\n").retry_after == seconds


def test_a_location_is_told_as_text_of_some_length() -> None:
    for value, told in ((b"/a\x00b", "/ab"), (b"/\xff", "/\ufffd"), (b"/" * 9999, "/" * 2048)):
        head = b"HTTP/1.1 302 .\r\nLocation: " + value + b"\r\nContent-Length: 0\r\n\r\n"
        assert read(head).location == told
