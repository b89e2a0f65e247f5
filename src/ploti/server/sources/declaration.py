"""A dataset's declaration: what it is, where it comes from and how it is read."""

from __future__ import annotations

from ploti.model.ids import DatasetId
from ploti.model.wire import Value


class Source(Value, kw_only=True):
    """Where the bytes come from; without kind and url a dataset is pushed only."""

    kind: str | None = None
    url: str | None = None
    format: str | None = None


class Points(Value, kw_only=True):
    """Geometry made of two columns; `precision` in units of the CRS, None for `off`."""

    longitude: str
    latitude: str
    crs: str = "EPSG:4326"
    precision: float | None = 1e-9


class Holds(Value, kw_only=True):
    """The thresholds of review; `off` keeps schema review and bad keys only... see parse."""

    min_row_ratio: float | None = 0.7


class Declaration(Value, kw_only=True):
    """A declaration, checked."""

    id: DatasetId
    title: str
    place: str
    topic: str
    license: str | None = None
    attribution: str | None = None
    source: Source = Source()
    key: list[str] = []
    geometry: Points | None = None
    columns: dict[str, str] = {}
    holds: Holds = Holds()
