"""How values become JSON and come back: camelCase names and RFC 3339 times in milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self, TypeVar, dataclass_transform

import msgspec

T = TypeVar("T")

UNSET = msgspec.UNSET
Unset = msgspec.UnsetType


class Instant(datetime):
    """A moment in UTC, written as `2026-10-18T06:13:02.000Z` (R-015)."""

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """The same moment in UTC; a time without a zone is refused."""
        if moment.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        utc = moment.astimezone(UTC)
        return cls.combine(utc.date(), utc.timetz())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an RFC 3339 text; raises ValueError where it is none."""
        try:
            return cls.of(msgspec.convert(text, datetime, strict=False))
        except msgspec.ValidationError as error:
            raise ValueError(f"'{text}' is not an RFC 3339 time with a zone") from error

    def __str__(self) -> str:
        return f"{self.isoformat(timespec='milliseconds')[: -len('+00:00')]}Z"


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, rename="camel"):
    """The base of every value that travels: snake_case here, camelCase on the wire.

    Its classes say `kw_only=True` themselves, since msgspec does not hand it down. Unknown fields
    are passed over, so that an older client reads a newer server.
    """


def _encode_hook(value: object) -> object:
    if isinstance(value, Instant):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no form on the wire")


def _decode_hook(kind: type, value: object) -> object:
    if kind is Instant:
        return Instant.parse(str(value))
    if kind is object:
        return value
    raise NotImplementedError(f"{kind.__name__} has no form on the wire")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook)


def encode(value: object) -> bytes:
    """Compact JSON of a value, with the fields in the order of their definition."""
    return _ENCODER.encode(value)


def decode(text: bytes | str, kind: type[T]) -> T:
    """A typed value out of JSON; raises msgspec.ValidationError naming the path of the fault."""
    return msgspec.json.decode(text, type=kind, dec_hook=_decode_hook)


def convert(value: object, kind: type[T]) -> T:
    """A typed value out of plain dicts and lists, by the same rules as `decode`."""
    return msgspec.convert(value, type=kind, dec_hook=_decode_hook)


def plain(value: object) -> object:
    """Dicts, lists, texts and numbers, as they stand in the JSON."""
    return msgspec.to_builtins(value, enc_hook=_encode_hook)
