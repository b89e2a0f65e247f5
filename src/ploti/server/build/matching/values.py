"""What stands for a value in the comparison of two rows, as SQL.

A prepared row has a handle `r BIGINT` and, for column number i, `t<i> UBIGINT`, a token that is
equal where the values count as equal (null where there is none), and `v<i>`, what closeness is
measured by: canonical text (VARCHAR), a number (DOUBLE) or nothing (a null BOOLEAN).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from ploti.model.sql import identifier
from ploti.server.build.matching.question import MatchColumn

BEGINNING = 256


class Kind(Enum):
    """How the values of a column are compared."""

    TEXT = auto()
    NUMBER = auto()
    OTHER = auto()


def kind(type_: str) -> Kind:
    """The kind of a type of the schema."""
    if type_ in {"string", "json"}:
        return Kind.TEXT
    if type_ in {"int64", "float64"} or type_.startswith("decimal"):
        return Kind.NUMBER
    return Kind.OTHER


def prepared(columns: Sequence[MatchColumn], relation: str, *, handle: str, name: str) -> str:
    """A query of the relation's prepared rows: r (the SQL `handle`), name (the SQL `name`), v, t.

    Values are made in an inner query, since a name made in one means the source's column there.
    """
    inner = [f"{handle} AS r", f"{name} AS name"]
    inner += [f"{_value(column)} AS v{i}" for i, column in enumerate(columns)]
    outer = ["r", "name"]
    for i, column in enumerate(columns):
        outer += [f"{_kept(i, column)} AS v{i}", f"{_token(i, column)} AS t{i}"]
    return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {relation})"


def close(column: MatchColumn, a: str, b: str) -> str:
    """A condition: two values that are not equal, yet nearly so."""
    match kind(column.type):
        case Kind.TEXT:
            return f"{_of_like_length(a, b)} AND {_alike(a, b)}"
        case Kind.NUMBER:
            return f"abs({a} - {b}) <= 0.001 * greatest(abs({a}), abs({b}))"
        case Kind.OTHER:
            return "false"


def _of_like_length(a: str, b: str) -> str:
    """What a similarity of 0.92 asks of the lengths, at far less cost."""
    return f"5 * least(length({a}), length({b})) >= 3 * greatest(length({a}), length({b}))"


def _alike(a: str, b: str) -> str:
    """Of long texts the beginnings are compared: the cost grows with the square of the length."""
    return f"jaro_winkler_similarity({a}[:{BEGINNING}], {b}[:{BEGINNING}]) >= 0.92"


def plain_text(text: str) -> str:
    """Letters and digits only, in lower case without accents, words apart; null if none is left."""
    words = rf"regexp_replace(strip_accents(lower({text})), '[^\p{{L}}\p{{N}}]+', ' ', 'g')"
    return f"nullif(trim({words}), '')"


def five_digits(number: str) -> str:
    """A DOUBLE rounded to 5 significant digits; what is not finite stays as it is."""
    place = f"4 - floor(log10(abs({number})))::INTEGER"
    return (
        f"CASE WHEN {number} = 0 OR NOT isfinite({number}) THEN {number} "
        f"ELSE round({number}, {place}) END"
    )


def _value(column: MatchColumn) -> str:
    name = identifier(column.name)
    match kind(column.type):
        case Kind.TEXT:
            return plain_text(f"{name}::VARCHAR")
        case Kind.NUMBER:
            return f"{name}::DOUBLE + 0"
        case Kind.OTHER:
            return name


def _kept(i: int, column: MatchColumn) -> str:
    return "NULL::BOOLEAN" if kind(column.type) is Kind.OTHER else f"v{i}"


def _token(i: int, column: MatchColumn) -> str:
    value = five_digits(f"v{i}") if kind(column.type) is Kind.NUMBER else f"v{i}"
    return f"CASE WHEN v{i} IS NOT NULL THEN hash({i}, {value}) END"
