"""JSON text in canonical form: keys sorted, no blanks, numbers as they were written."""

from __future__ import annotations

import json

_Value = object


class _Number(str):
    """A number's own text, so that no digit goes through a double."""

    __slots__ = ()


class _Members(list[tuple[str, "_Value"]]):
    """An object's members, also those of equal names."""


def canonical_json(text: str) -> str | None:
    """The canonical form of a JSON text; None where it is none, or nested too deep to read."""
    try:
        return _write(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> _Value:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(
    parse_float=_Number, parse_int=_Number, parse_constant=_refuse, object_pairs_hook=_Members
)


def _write(value: _Value) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, _Members):
        members = sorted(value, key=lambda member: member[0])
        return "{" + ",".join(f"{_text(name)}:{_write(item)}" for name, item in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return _text(value)


def _text(value: _Value) -> str:
    return json.dumps(value, ensure_ascii=False)
