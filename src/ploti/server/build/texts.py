"""Stage: which type holds a text exactly, and the value it has then, as SQL.

Two readings. `found` decides what a column is: only what cannot be meant otherwise is a number or
a date (an identifier with leading zeros and a code such as 12E4 stay text). `kept` reads a column
whose type is settled: the same value may be written otherwise (12.0 as int64).
"""

from __future__ import annotations

_NUMBER = "-?(0|[1-9][0-9]*)([.][0-9]+)?"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6}0*)?"
MOMENT = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}"
"""What a local date-time looks like."""

_ZONE = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"

_SQL_TYPES = {
    "string": "VARCHAR",
    "json": "VARCHAR",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "datetime": "TIMESTAMP",
    "geometry": "BLOB",
}


def sql_type(type_: str) -> str:
    """DuckDB's type for a column type."""
    return _SQL_TYPES.get(type_) or type_.upper()


def value(type_: str, text: str) -> str:
    """SQL of the canonical value of a text; null where it has none in this type."""
    match type_:
        case "string":
            return text
        case "json":
            return f"ploti_json({text})"
        case "float64":
            return f"(TRY_CAST({text} AS DOUBLE) + 0.0)"
        case _:
            return f"TRY_CAST({text} AS {sql_type(type_)})"


def found(type_: str, text: str) -> str:
    """SQL of whether a text, which is not null, can only be meant as a value of this type."""
    typed = value(type_, text)
    match type_:
        case "int64":
            return f"coalesce({typed}::VARCHAR = {text}, false)"
        case "float64":
            # The shortest form of a double, or a plain decimal that every double tells apart.
            digits = f"length(replace(ltrim({text}, '-0.'), '.', ''))"
            plain = f"regexp_full_match({text}, '{_NUMBER}')"
            exact = _finite(typed, f"{typed}::VARCHAR = {text} OR ({plain} AND {digits} <= 15)")
            return f"CASE WHEN strlen({text}) <= 15 AND {plain} THEN true ELSE {exact} END"
        case "boolean":
            return f"({text} IN ('true', 'false'))"
        case _:
            return kept(type_, text)


def kept(type_: str, text: str) -> str:
    """SQL of whether a text, which is not null, has a value of this settled type."""
    typed = value(type_, text)
    match type_:
        case "string":
            return "true"
        case "json":
            return f"({typed} IS NOT NULL)"
        case "int64":
            whole = f"regexp_full_match({text}, '-?(0|[1-9][0-9]*)([.]0+)?')"
            otherwise = f"coalesce({typed} IS NOT NULL AND {whole}, false)"
            return f"CASE WHEN {typed}::VARCHAR = {text} THEN true ELSE {otherwise} END"
        case "float64":
            number = f"regexp_full_match({text}, '{_NUMBER}([eE][+-]?[0-9]+)?')"
            short = f"strlen({text}) <= 15 OR (strlen({text}) <= 17 AND contains({text}, '.'))"
            few = (
                f"CASE WHEN {short} THEN true"
                f" WHEN regexp_full_match({text}, '-?[0-9]+') THEN {_same_whole(text, typed)}"
                f" ELSE length({_digits(text)}) <= 17 END"
            )
            return _finite(typed, f"{number} AND {few}")
        case "boolean":
            return f"(lower({text}) IN ('true', 'false'))"
        case "date":
            return f"coalesce({typed}::VARCHAR = {text} AND length({text}) = 10, false)"
        case "timestamp" | "datetime":
            return _moment(type_, text, typed)
        case _:
            return _decimal(type_, text, typed)


def _finite(typed: str, condition: str) -> str:
    return f"coalesce(isfinite({typed}) AND ({condition}), false)"


def _same_whole(text: str, typed: str) -> str:
    """SQL of whether a double is the whole number of a text, or would be written with its digits.

    A long serial number between two doubles is bent by either, unlike a fraction's 17th digit.
    """
    equal = f"TRY_CAST({text} AS HUGEINT) = TRY_CAST({typed} AS HUGEINT)"
    return f"(coalesce({equal}, false) OR {_digits(text)} = {_digits(f'{typed}::VARCHAR')})"


def _digits(text: str) -> str:
    """Significant digits: without sign, exponent, and zeros before and after."""
    mantissa = f"replace(regexp_replace({text}, '[eE].*', ''), '.', '')"
    return f"rtrim(ltrim({mantissa}, '-0'), '0')"


def _moment(type_: str, text: str, typed: str) -> str:
    form = MOMENT + (_ZONE if type_ == "timestamp" else "")
    within = f"year({typed}) BETWEEN 1 AND 9999"
    return f"coalesce(regexp_full_match({text}, '{form}') AND {within}, false)"


def _decimal(type_: str, text: str, typed: str) -> str:
    scale = type_.removesuffix(")").partition(",")[2]
    fraction = f"[0-9]{{1,{scale}}}0*" if scale != "0" else "0+"
    form = f"-?(0|[1-9][0-9]*)([.]{fraction})?"
    return f"coalesce(regexp_full_match({text}, '{form}') AND {typed} IS NOT NULL, false)"


def text_of(type_: str, column: str) -> str:
    """SQL of a value's text, as a column has it that is retyped to `string`."""
    if type_ in {"timestamp", "datetime"}:
        return moment_text(type_, column)
    return decimal_text(column) if type_.startswith("decimal") else f"{column}::VARCHAR"


def decimal_text(column: str) -> str:
    """SQL of a decimal's text; DuckDB leaves out the 0 before the point where all digits follow."""
    return rf"regexp_replace({column}::VARCHAR, '^(-?)[.]', '\10.')"


def moment_text(type_: str, column: str) -> str:
    """SQL of an instant or a local date-time as RFC 3339 writes it: three decimals, or six."""
    micros = f"(epoch_us({column}) % 1000 <> 0)"
    local = f"({column} AT TIME ZONE 'UTC')" if type_ == "timestamp" else column
    zone = "Z" if type_ == "timestamp" else ""
    # strftime writes years below 1000 without their zeros.
    year = f"lpad(year({local})::VARCHAR, 4, '0')"
    rest = (
        f"CASE WHEN {micros} THEN strftime({local}, '-%m-%dT%H:%M:%S.%f{zone}')"
        f" ELSE strftime({local}, '-%m-%dT%H:%M:%S.%g{zone}') END"
    )
    return f"({year} || {rest})"
