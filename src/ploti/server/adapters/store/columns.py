"""Column types of our own, and rows as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Column, Dialect, FromClause, String, Text, func, or_
from sqlalchemy.sql import ColumnElement
from sqlalchemy.types import TypeDecorator

from ploti.model import wire
from ploti.model.wire import Instant, Value

V = TypeVar("V", bound=Value)


class At(TypeDecorator[Instant]):
    """A moment as its text on the wire, which sorts as time does."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: Instant | None, dialect: Dialect) -> str | None:
        """To the text."""
        del dialect
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Instant | None:
        """From the text."""
        del dialect
        return None if value is None else Instant.parse(value)


class Word(TypeDecorator[StrEnum]):
    """One of a few words."""

    impl = String
    cache_ok = True

    def __init__(self, words: type[StrEnum]) -> None:
        super().__init__()
        self.words = words

    def process_bind_param(self, value: StrEnum | None, dialect: Dialect) -> str | None:
        """To the text."""
        del dialect
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        """From the text."""
        del dialect
        return None if value is None else self.words(value)


class Json(TypeDecorator[Any]):
    """A typed value as JSON text."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:  # noqa: ANN401  a type, or a form such as list[str]
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        """To JSON."""
        del dialect
        return None if value is None else wire.encode(value).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """From JSON."""
        del dialect
        return None if value is None else wire.decode(value, self.kind)


def columns_of(
    table: FromClause, kind: type[Value], *, prefix: str = ""
) -> Iterable[Column[Any] | Any]:
    """The columns that make a value of this kind; a prefix keeps joined tables apart."""
    for name in kind.__struct_fields__:
        yield table.c[name].label(prefix + name)


def value_of(kind: type[V], row: Mapping[Any, Any], *, prefix: str = "") -> V:
    """The value out of a row that has the columns of `columns_of`."""
    return kind(**{name: row[prefix + name] for name in kind.__struct_fields__})


def fields_of(value: Value) -> dict[str, Any]:
    """A value's fields by the names of their columns."""
    return msgspec.structs.asdict(value)


def takes_in(listed: str, path: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a listed path takes in the path of a column: itself, and all below it."""
    below = f"{listed}/"
    return or_(path == listed, func.substr(path, 1, len(below)) == below)
