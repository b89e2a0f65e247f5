"""What a JSON text says beside its rows: that they are all there are, or one page of them."""

from __future__ import annotations

from collections.abc import Mapping

from ploti.errors import SourceError

_LIMIT = "exceededTransferLimit"
_TOTALS = (
    *("numberMatched", "totalFeatures", "total_count", "totalCount", "totalResults"),
    "@odata.count",
)
_NEXT = ("next", "nextLink", "next_page_url", "@odata.nextLink")
TELLING = frozenset({_LIMIT, "properties", "links", *_TOTALS, *_NEXT})
"""Members that may say it, as ArcGIS, OGC services, Opendatasoft, OData and others do."""


def refuse_page(beside: Mapping[str, object], *, rows: int) -> None:
    """Raise SourceError where a text of so many rows says that the source has more."""
    own = beside.get("properties")
    limits = [beside, own] if isinstance(own, Mapping) else [beside]
    if any(each.get(_LIMIT) is True for each in limits):
        raise SourceError(
            f"the source says that it has more than these {rows:,} rows ({_LIMIT}):"
            " read it as a layer, source: {kind: arcgis}"
        )
    for name in _TOTALS:
        total = beside.get(name)
        if isinstance(total, int) and total > rows:
            raise SourceError(f"the source gave {rows:,} rows of {total:,} that it has ({name})")
    if following := _following(beside):
        raise SourceError(
            f"the source gave {rows:,} rows and an address of more ('{following[:100]}'): it is"
            " one page, and a dataset needs an address of all"
        )


def _following(beside: Mapping[str, object]) -> str | None:
    """The address of the next page."""
    links = beside.get("links")
    named = [beside, links] if isinstance(links, Mapping) else [beside]
    told = [each.get(name) for each in named for name in _NEXT]
    if isinstance(links, list):
        told += [e.get("href") for e in links if isinstance(e, Mapping) and e.get("rel") == "next"]
    return next((each for each in told if isinstance(each, str) and "/" in each), None)
