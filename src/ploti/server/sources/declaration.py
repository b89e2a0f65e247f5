"""A dataset's declaration: what it is, where it comes from and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ploti.errors import Fault, InvalidInput, SourceError
from ploti.model.ids import DatasetId, dataset_id
from ploti.model.schema import TYPES, is_type
from ploti.model.wire import Value
from ploti.server.sources import fields
from ploti.server.sources.fields import Fields, Wrong
from ploti.server.sources.formats import SPATIAL
from ploti.server.sources.interval import interval
from ploti.server.sources.reference_systems import DEGREES, dataset_system, usual_precision
from ploti.server.sources.source import Source, gives_rows, read_source, unfit_options

T = TypeVar("T")

REPEATED_KEYS = "hold"
CONTINUATION = "review"
BAD_ROWS = "fail"
"""Of keys, records that go on and rows that cannot be read, where the declaration says nothing."""

MIN_ROW_RATIO = 0.7
MAX_ID_TURNOVER = 0.5
MIN_FILLED_RATIO = 0.5
MAX_EXTENT_SHIFT = 1.0
"""The thresholds of `holds`, where they are left out."""

_SETTINGS = (
    *("id", "title", "place", "topic", "license", "attribution", "source"),
    *("key", "geometry", "columns", "holds", "check_every", "paused"),
    *("repeated_keys", "continuation", "rename", "null_values", "trim", "timezone"),
    *("ignore_changes", "compare", "bad_rows"),
)
_TABLES = ("csv", "tsv")
_NO_TABLE = f"is not for {{}}, but for {', '.join(_TABLES)}"
_GEOMETRY = ("longitude", "latitude", "crs", "precision")
_PRECISIONS = tuple(float(f"1e-{digits}") for digits in range(16))
_TYPES = ", ".join(sorted(TYPES - {"geometry"})) + " or decimal(p,s)"
_continuation = fields.choice("review", "auto", "off", kind="way of continuation")
_bad_rows = fields.choice("fail", "set_aside", kind="treatment of rows that cannot be read")
_repeated_keys = fields.choice("hold", "number", kind="treatment of keys that repeat")


class Points(Value, kw_only=True):
    """Geometry made of two columns."""

    longitude: str
    latitude: str


class Holds(Value, kw_only=True):
    """The thresholds of review, None for `off`; a MAJOR change and a bad key hold all the same."""

    min_row_ratio: float | None = MIN_ROW_RATIO
    max_id_turnover: float | None = MAX_ID_TURNOVER
    min_filled_ratio: float | None = MIN_FILLED_RATIO
    max_extent_shift: float | None = MAX_EXTENT_SHIFT


class Declaration(Value, kw_only=True):
    """A declaration, checked.

    `crs` is the system that the geometry is in, from columns or brought to it from the source's
    own, None where the declaration does not say; `precision` is in its units and a power of ten,
    None is `off`. `repeated_keys` is `hold` or `number`, `continuation` `review`,
    `auto` or `off`. `rename` gives the dataset's name for a source's; all other settings name
    columns as the dataset does. `compare` has the difference, by column, up to which two numbers
    are the same. `check_every` is in seconds, None where no check is ever due; `paused` is None
    where the declaration does not say, so that declaring a dataset anew does not resume it.
    """

    id: DatasetId
    title: str
    place: str
    topic: str
    license: str | None = None
    attribution: str | None = None
    source: Source = Source()
    key: list[str] = []
    geometry: Points | None = None
    crs: str | None = None
    precision: float | None = usual_precision(DEGREES)
    columns: dict[str, str] = {}
    holds: Holds = Holds()
    repeated_keys: str = REPEATED_KEYS
    continuation: str = CONTINUATION
    rename: dict[str, str] = {}
    null_values: list[str] = []
    trim: bool = False
    timezone: str | None = None
    ignore_changes: list[str] = []
    compare: dict[str, float] = {}
    bad_rows: str = BAD_ROWS
    check_every: int | None = None
    paused: bool | None = None

    @property
    def system(self) -> str:
        """The reference system of the dataset's geometry."""
        return self.crs or DEGREES


def parse_declaration(raw: Mapping[str, object]) -> Declaration:
    """The declaration as `operator.md` writes it, typed.

    Raises InvalidInput with a Fault for each wrong setting: one that is missing, unknown, not
    built yet, or has a value that cannot be meant.
    """
    faults: list[Fault] = []
    top = Fields(raw, faults=faults)
    top.expect(_SETTINGS, required=("id", "title", "place", "topic"))
    points, crs, precision = _geometry(top)
    declaration = Declaration(
        id=top.take("id", _id, default=DatasetId("")),
        title=top.take("title", fields.text, default=""),
        place=top.take("place", fields.path, default=""),
        topic=top.take("topic", fields.path, default=""),
        license=top.take("license", fields.text, default=None),
        attribution=top.take("attribution", fields.text, default=None),
        source=read_source(top),
        key=top.take("key", fields.texts, default=[]),
        geometry=points,
        crs=crs,
        precision=precision,
        columns=_named(top, "columns", _type),
        holds=_holds(top),
        continuation=top.take("continuation", _continuation, default=CONTINUATION),
        repeated_keys=top.take("repeated_keys", _repeated_keys, default=REPEATED_KEYS),
        rename=_named(top, "rename", fields.text),
        null_values=top.take("null_values", fields.any_texts, default=[]),
        trim=top.take("trim", fields.switch, default=False),
        timezone=top.take("timezone", _timezone, default=None),
        ignore_changes=top.take("ignore_changes", fields.texts, default=[]),
        compare=_named(top, "compare", _tolerance),
        bad_rows=top.take("bad_rows", _bad_rows, default=BAD_ROWS),
        check_every=top.take("check_every", interval, default=None),
        paused=top.take("paused", fields.switch, default=None),
    )
    if points and declaration.source.format in SPATIAL:
        name = declaration.source.format
        top.fault("geometry", f"{name} brings its own geometry: leave longitude and latitude out")
    _check_compared(top, declaration)
    _check_bad_rows(top, declaration)
    if faults:
        raise InvalidInput(_summary(faults), errors=tuple(faults))
    return declaration


def _geometry(top: Fields) -> tuple[Points | None, str | None, float | None]:
    """The columns of points, the reference system and the precision."""
    found = top.nested("geometry")
    if found is None:
        return None, None, usual_precision(DEGREES)
    found.expect(_GEOMETRY)
    found.expect_together("longitude", "latitude")
    crs = found.take("crs", _crs, default=None)
    precision = found.take("precision", _precision, default=usual_precision(crs or DEGREES))
    longitude = found.take("longitude", fields.text, default=None)
    latitude = found.take("latitude", fields.text, default=None)
    if longitude is None or latitude is None:
        return None, crs, precision
    if longitude == latitude:
        found.fault("latitude", f"is the column {latitude}, and so is longitude")
    return Points(longitude=longitude, latitude=latitude), crs, precision


def _named(top: Fields, setting: str, read: Callable[[object], T]) -> dict[str, T]:
    """A setting that says something of columns, by their names."""
    found = top.nested(setting)
    if found is None:
        return {}
    named: dict[str, T] = {}
    for name in found.names():
        if name != name.strip() or not name:
            found.fault(name, "is not a name of a column: it has outer blanks or is empty")
        value = found.take(name, read, default=None)
        if value is not None:
            named[name] = value
    return named


def _check_compared(top: Fields, declaration: Declaration) -> None:
    """The key tells records apart, so that its changes are none of theirs."""
    for setting in ("ignore_changes", "compare"):
        for name in getattr(declaration, setting):
            if name in declaration.key:
                top.fault(setting, f"names {name}, which is in the key: its changes always count")


def _holds(top: Fields) -> Holds:
    if top.take("holds", fields.is_off, default=False):
        return Holds(**dict.fromkeys(Holds.__struct_fields__))
    found = top.nested("holds")
    if found is None:
        return Holds()
    found.expect(Holds.__struct_fields__)
    return Holds(
        min_row_ratio=found.take("min_row_ratio", _ratio, default=MIN_ROW_RATIO),
        max_id_turnover=found.take("max_id_turnover", _ratio, default=MAX_ID_TURNOVER),
        min_filled_ratio=found.take("min_filled_ratio", _ratio, default=MIN_FILLED_RATIO),
        max_extent_shift=found.take("max_extent_shift", _shift, default=MAX_EXTENT_SHIFT),
    )


def _id(raw: object) -> DatasetId:
    return dataset_id(fields.text(raw))


def _type(raw: object) -> str:
    name = fields.text(raw)
    if name == "geometry" or not is_type(name):
        raise Wrong(f"'{name}' is not a type of column: {_TYPES}")
    return name


def _crs(raw: object) -> str:
    try:
        return dataset_system(fields.text(raw))
    except ValueError as error:
        raise Wrong(str(error)) from None


def _precision(raw: object) -> float | None:
    if fields.is_off(raw):
        return None
    precision = fields.number(raw)
    if precision not in _PRECISIONS:
        raise Wrong("must be off or a power of ten from 1 to 1e-15, such as 1e-9")
    return precision


def check_format(declaration: Declaration, format_: str) -> None:
    """Raise SourceError where a setting is declared that the format told has no use for."""
    unfit = [
        (f"source.{name}", reason) for name, reason in unfit_options(declaration.source, format_)
    ]
    if declaration.bad_rows != BAD_ROWS and format_ not in _TABLES:
        unfit.append(("bad_rows", _NO_TABLE.format(format_)))
    for name, reason in unfit:
        raise SourceError(f"{name} {reason}: the source is {format_}")


def _check_bad_rows(top: Fields, declaration: Declaration) -> None:
    """Only text tables have rows that can be left out without doubt of the others."""
    source = declaration.source
    told = source.kind if gives_rows(source.kind, source.url) else source.format
    if declaration.bad_rows != BAD_ROWS and told not in {None, *_TABLES}:
        top.fault("bad_rows", _NO_TABLE.format(told))


def _timezone(raw: object) -> str:
    name = fields.text(raw)
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise Wrong(f"'{name}' is not a time zone: America/New_York, for example") from None
    return name


def _tolerance(raw: object) -> float:
    found = fields.number(raw)
    if found <= 0:
        raise Wrong("must be a number above 0, such as 1e-6")
    return found


def _ratio(raw: object) -> float | None:
    if fields.is_off(raw):
        return None
    ratio = fields.number(raw)
    if not 0 <= ratio <= 1:
        raise Wrong("must be off or a number from 0 to 1, such as 0.7")
    return ratio


def _shift(raw: object) -> float | None:
    if fields.is_off(raw):
        return None
    shift = fields.number(raw)
    if shift < 0:
        raise Wrong("must be off or a number from 0 on, such as 1")
    return shift


def _summary(faults: list[Fault]) -> str:
    first = f"The declaration cannot be taken: {faults[0].field} {faults[0].message}"
    more = len(faults) - 1
    return f"{first} (and {more} more)" if more else first
