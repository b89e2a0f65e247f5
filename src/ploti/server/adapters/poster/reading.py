"""What answers one request, read as its bytes come; httptools, uvicorn's parser, takes it apart."""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_HEAD = 64 << 10
"""Bytes up to an answer's body, with all that is said ahead of it."""

LONGEST = 128 << 10
"""Bytes of an answer that are read: a body in chunks has more of them than it says, without end."""

_READ = 16 << 10
_KEPT = 2 << 10
_SWITCHING = 101
_TOLD = {b"retry-after", b"location"}


class NoAnswer(Exception):
    """Nothing that can be taken for an answer; the text says why."""


class Reading:
    """An answer under way; its `status` is None until its whole head is there.

    The head decides. What is wrong with a body only ends the connection: then the answer is over,
    and `is_clean` is False. So it is where anything comes after it.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.heard = 0
        self.is_over = False
        self.is_clean = True
        self._headers: dict[bytes, bytes] = {}
        self._body_read = 0
        self._excerpt = bytearray()
        self._parser = HttpResponseParser(self)
        # Whoever answers so means well, and nothing is at stake: a connection holds our POSTs alone
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> None:
        """Read on; raises NoAnswer where this is no HTTP, or where a head has no end."""
        heard, self.heard = self.heard, self.heard + len(data)
        if self.heard <= LONGEST_HEAD:
            self._parse(data)
            return
        of_head, in_all = max(LONGEST_HEAD - heard, 0), max(LONGEST - heard, 0)
        self._parse(data[:of_head])
        if self.status is None:
            raise NoAnswer(f"no answer: its head is longer than {LONGEST_HEAD >> 10} KiB")
        self._parse(data[of_head:in_all])
        if self.heard > LONGEST:
            self._spoil()

    @property
    def retry_after(self) -> float | None:
        """The seconds of a `Retry-After`; one that names a date is passed over."""
        text = self._headers.get(b"retry-after", b"").strip()
        return float(text[:12]) if text.isdigit() else None

    @property
    def location(self) -> str | None:
        """Where it would have gone on."""
        return _cut(self._headers.get(b"location"))

    @property
    def excerpt(self) -> str | None:
        """The beginning of the body, as far as it came."""
        return _cut(self._excerpt)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which says nothing; of two alike the first counts."""
        name = name.lower()
        if name in _TOLD and self.status is None:
            self._headers.setdefault(name, value)

    def on_headers_complete(self) -> None:
        """The end of a head: of the answer's, or of what is said ahead of it."""
        status = self._parser.get_status_code()
        if status == _SWITCHING or not 100 <= status < 200:
            self.status = status
        else:
            self._headers.clear()

    def on_body(self, data: bytes) -> None:
        """Some of the body; one that is long is not read to its end."""
        self._body_read += len(data)
        self._excerpt += data[: _KEPT - len(self._excerpt)]
        if self._body_read >= _READ:
            self._spoil()

    def on_message_begin(self) -> None:
        """The beginning of an answer; raises NoAnswer at one too many, where the parser stops."""
        if self.is_over:
            raise NoAnswer("no answer: nobody asked for another")

    def on_message_complete(self) -> None:
        """The end of the answer, or of what is said ahead of it."""
        if self.status is not None:
            self.is_over = True
            self.is_clean = self.is_clean and self._parser.should_keep_alive()

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._spoil()
        except HttpParserError:
            if self.status is None:
                raise NoAnswer("no answer: what came is not HTTP") from None
            self._spoil()

    def _spoil(self) -> None:
        self.is_over, self.is_clean = True, False


def _cut(text: bytes | bytearray | None) -> str | None:
    return text[:_KEPT].decode("utf-8", "replace").replace("\x00", "") or None if text else None
