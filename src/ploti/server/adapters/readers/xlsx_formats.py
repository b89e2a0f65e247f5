"""Which of a workbook's numbers are days and times, and their texts."""

from __future__ import annotations

import datetime as dt
import re
from enum import Enum

_BUILT_IN_DATES = {*range(14, 18), *range(27, 37), *range(50, 59)}
_BUILT_IN_TIMES = {18, 19, 20, 21}
_BUILT_IN_BOTH = {22}
# Literals and colours are no codes; [h], [mm] and [ss] count hours on beyond a day.
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_MILLISECONDS_A_DAY = 86_400_000
_NO_DAY = 60
_LAST_DAY = 2_958_465


class Shown(Enum):
    """How a number format shows a number."""

    NUMBER = "number"
    DATE = "date"
    TIME = "time"
    BOTH = "both"


def shown_by(number: int, code: str | None) -> Shown:
    """How the format of this number shows values; `code` is its text where the workbook has it."""
    if code is None:
        if number in _BUILT_IN_DATES:
            return Shown.DATE
        if number in _BUILT_IN_TIMES:
            return Shown.TIME
        return Shown.BOTH if number in _BUILT_IN_BOTH else Shown.NUMBER
    plain = _LITERAL.sub("", code).split(";")[0].lower()
    if "general" in plain or _ELAPSED.search(plain):
        return Shown.NUMBER
    day = any(letter in plain for letter in "yd") or ("m" in plain and not set("hs") & set(plain))
    time = any(letter in plain for letter in "hs")
    if day:
        return Shown.BOTH if time else Shown.DATE
    return Shown.TIME if time else Shown.NUMBER


def day_text(serial: str, shown: Shown, *, from_1904: bool) -> tuple[str, Shown]:
    """The text of a number that is shown as a day or a time, and what it says.

    Days are `2024-02-29`, times of day `13:30:00`, both `2024-02-29T13:30:00`, to the millisecond,
    which is as exact as workbooks are. What is no day stays the number: below 0, beyond the year
    9999, and the 29 February 1900, which some workbooks have and no calendar.
    """
    days = float(serial)
    if not 0 <= days < _LAST_DAY + 1:
        return serial, Shown.NUMBER
    whole, part = divmod(round(days * _MILLISECONDS_A_DAY), _MILLISECONDS_A_DAY)
    if whole == _NO_DAY and not from_1904:
        return serial, Shown.NUMBER
    if whole == 0 and shown is Shown.TIME:
        return _time(part), Shown.TIME
    try:
        day = _epoch(whole, from_1904=from_1904) + dt.timedelta(days=whole)
    except OverflowError:
        return serial, Shown.NUMBER
    if shown is Shown.DATE and not part:
        return day.isoformat(), Shown.DATE
    return f"{day.isoformat()}T{_time(part)}", Shown.BOTH


def _epoch(whole: int, *, from_1904: bool) -> dt.date:
    if from_1904:
        return dt.date(1904, 1, 1)
    return dt.date(1899, 12, 31) if whole < _NO_DAY else dt.date(1899, 12, 30)


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:03d}" if rest else text
