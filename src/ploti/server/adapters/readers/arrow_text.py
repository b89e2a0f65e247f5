"""Arrow columns as text that says each value exactly, and what Arrow says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ploti.errors import SourceError
from ploti.server.sources.raw import RawKind

AnyArray: TypeAlias = "pa.Array[Any]"

_MOST_DIGITS = 38
_json = msgspec.json.Encoder(decimal_format="number")


def kind(of: pa.DataType) -> RawKind:
    """What a column of this type holds."""
    of = _plain_type(of)
    if types.is_boolean(of):
        return RawKind.BOOLEAN
    if types.is_integer(of):
        return RawKind.INTEGER
    if types.is_floating(of) or types.is_decimal(of):
        return RawKind.NUMBER
    return RawKind.JSON if types.is_nested(of) or isinstance(of, pa.JsonType) else RawKind.STRING


def stated_type(of: pa.DataType) -> str | None:
    """The column type that this one is, where `kind` leaves it open."""
    of = _plain_type(of)
    if types.is_floating(of):
        return "float64"
    if types.is_date(of):
        return "date"
    if types.is_timestamp(of):
        return "timestamp" if of.tz else "datetime"
    if types.is_decimal(of) and 0 <= of.scale <= of.precision <= _MOST_DIGITS:
        return f"decimal({of.precision},{of.scale})"
    return None


def texts(column: AnyArray, *, name: str) -> AnyArray:
    """The values of a column as texts, of which each gives back its value.

    Floats are their shortest text as a double, decimals plain, instants end in `Z`, bytes are hex,
    nested values JSON. Raises SourceError where a type has no such text.
    """
    try:
        return _texts(column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, TypeError) as error:
        raise SourceError(
            f"column '{name}' ({column.type}) cannot be read: {str(error).splitlines()[0]}"
        ) from None


def _texts(column: AnyArray) -> AnyArray:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if isinstance(column.type, pa.UuidType):
        return _each(column, str)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    for applies, convert in _FORMS:
        if applies(column.type):
            return convert(column)
    return column.cast(pa.string())


def _plain_type(of: pa.DataType) -> pa.DataType:
    if isinstance(of, pa.JsonType | pa.UuidType):
        return of
    if isinstance(of, pa.BaseExtensionType):
        return _plain_type(of.storage_type)
    return of.value_type if types.is_dictionary(of) else of


def _string(column: AnyArray) -> AnyArray:
    whole = column.cast(pa.string())
    whole.validate(full=True)
    return whole


def _float(column: AnyArray) -> AnyArray:
    return (
        column.cast(pa.float32() if types.is_float16(column.type) else column.type)
        .cast(pa.float64())
        .cast(pa.string())
    )


def _decimal(column: AnyArray) -> AnyArray:
    written = column.cast(pa.string())
    if pc.any(pc.match_substring(written, "E")).as_py():
        return _each(column, "{:f}".format)
    return written


def _timestamp(column: AnyArray) -> AnyArray:
    zone = "UTC" if column.type.tz else None
    exact = column.cast(pa.timestamp(column.type.unit, zone))
    if column.type.unit == "ns":
        exact = _microseconds(exact, zone)
    return pc.replace_substring(exact.cast(pa.string()), " ", "T", max_replacements=1)


def _microseconds(column: AnyArray, zone: str | None) -> AnyArray:
    try:
        return column.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return column


def _hex(column: AnyArray) -> AnyArray:
    return _each(column, bytes.hex)


def _nested(column: AnyArray) -> AnyArray:
    return _each(column, lambda value: _json.encode(value).decode())


def _each(column: AnyArray, write: Callable[..., str]) -> AnyArray:
    return pa.array(
        [None if value is None else write(value) for value in column.to_pylist()], pa.string()
    )


def _is_text(of: pa.DataType) -> bool:
    return types.is_string(of) or types.is_large_string(of) or types.is_string_view(of)


def _is_bytes(of: pa.DataType) -> bool:
    return (
        types.is_binary(of)
        or types.is_large_binary(of)
        or types.is_binary_view(of)
        or types.is_fixed_size_binary(of)
    )


_FORMS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[AnyArray], AnyArray]], ...] = (
    (_is_text, _string),
    (types.is_floating, _float),
    (types.is_decimal, _decimal),
    (types.is_timestamp, _timestamp),
    (_is_bytes, _hex),
    (types.is_nested, _nested),
)
