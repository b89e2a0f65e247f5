"""Where a dataset's bytes come from and how they are read, as its declaration says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from ploti.model.wire import Value
from ploti.server.sources import fields
from ploti.server.sources.fields import Fields, Wrong
from ploti.server.sources.formats import FORMATS
from ploti.server.sources.location import file_path, web_address

SETTINGS = ("kind", "url", "format")
OPTIONS: dict[str, tuple[str, ...] | None] = {
    "layer": ("gpkg", "shapefile", "filegdb", "kml", "json"),
    "sheet": ("xlsx",),
    "member": None,
    "header_row": ("csv", "tsv", "xlsx"),
    "encoding": ("csv", "tsv", "shapefile"),
    "delimiter": ("csv",),
}
"""Settings of reading, and the formats that each is for; None for all."""

FETCHING = ("length_check", "credential")
"""Settings of how a web source is asked."""

ROWS = {"arcgis", "socrata"}
"""Kinds of sources that give rows and no files; of `ckan` the address tells."""

_DATASTORE = re.compile(r"/datastore_search/?$")
_RESOURCE_CALL = re.compile(r"/resource_show/?$")
_RESOURCE_PAGE = re.compile(r"/resource/(?P<id>[0-9A-Za-z][0-9A-Za-z_-]*)/?$")
_LAYER = re.compile(r"/(?:Feature|Map)Server/[0-9]+(?:/query)?/?$", re.IGNORECASE)
_CREDENTIAL = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")


class Source(Value, kw_only=True):
    """Where the bytes come from; without kind and url a dataset is pushed only.

    The rest is for what a format leaves open: a layer or a sheet of several, the member of an
    archive, the row that has the names (from 1), the encoding where the source does not say it.
    `length_check` is false where a server is known to state wrong lengths; `credential` names the
    secret that the operator keeps for the source.
    """

    kind: str | None = None
    url: str | None = None
    format: str | None = None
    layer: str | None = None
    sheet: str | None = None
    member: str | None = None
    header_row: int | None = None
    encoding: str | None = None
    delimiter: str | None = None
    length_check: bool = True
    credential: str | None = None


def gives_rows(kind: str | None, url: str | None) -> bool:
    """Whether a source gives its rows in pages, and no file."""
    if kind == "ckan":
        return _DATASTORE.search(urlsplit(url or "").path) is not None
    return kind in ROWS


def resource_call(url: str) -> str:
    """The address at which a CKAN tells of a resource, from that or from the resource's page."""
    parts = urlsplit(url)
    page = _RESOURCE_PAGE.search(parts.path)
    if page is None:
        return url
    before = parts.path.partition("/dataset/")[0]
    root = re.sub(r"/[a-z]{2}(?:_[A-Z]{2})?$", "", before)
    path = f"{root}/api/3/action/resource_show"
    return parts._replace(path=path, query=f"id={page['id']}").geturl()


def read_source(top: Fields) -> Source:
    """The setting `source` of a declaration; what is wrong with it is kept as faults."""
    found = top.nested("source")
    if found is None:
        return Source()
    found.expect((*SETTINGS, *OPTIONS, *FETCHING))
    found.expect_together("kind", "url")
    kind = found.take("kind", _kind, default=None)
    source = Source(
        kind=kind,
        url=found.take("url", _LOCATIONS.get(kind or "", fields.text), default=None),
        format=found.take("format", _format, default=None),
        layer=found.take("layer", fields.text, default=None),
        sheet=found.take("sheet", fields.text, default=None),
        member=found.take("member", fields.text, default=None),
        header_row=found.take("header_row", _row, default=None),
        encoding=found.take("encoding", _encoding, default=None),
        delimiter=found.take("delimiter", _delimiter, default=None),
        length_check=found.take("length_check", _length_check, default=True),
        credential=found.take("credential", _credential, default=None),
    )
    _check_rows(found, source)
    _check_fetching(found, source)
    return source


def _check_rows(found: Fields, source: Source) -> None:
    """A setting that the format has no use for is a fault; of one untold the bytes will tell."""
    if gives_rows(source.kind, source.url):
        for name in ("format", *OPTIONS):
            if getattr(source, name) is not None:
                found.fault(name, f"is not for {source.kind}, which gives rows: leave it out")
        return
    if source.format is not None:
        for name, reason in unfit_options(source, source.format):
            found.fault(name, reason)


def unfit_options(source: Source, format_: str) -> Iterator[tuple[str, str]]:
    """The settings of reading that a format has no use for, each with the reason."""
    for name, formats in OPTIONS.items():
        if formats is not None and getattr(source, name) is not None and format_ not in formats:
            yield name, f"is not for {format_}, but for {', '.join(formats)}"


def _check_fetching(found: Fields, source: Source) -> None:
    for name, is_set in (
        ("length_check", not source.length_check),
        ("credential", source.credential is not None),
    ):
        if is_set and source.kind in {None, "file"}:
            found.fault(name, "is for sources on the web")


def _datastore_or_resource(raw: object) -> str:
    url = web_address(raw)
    path = urlsplit(url).path
    if not any(form.search(path) for form in (_DATASTORE, _RESOURCE_CALL, _RESOURCE_PAGE)):
        raise Wrong(
            f"'{url}' must be a CKAN's …/api/3/action/datastore_search?resource_id=…,"
            " …/api/3/action/resource_show?id=… or …/dataset/…/resource/…"
        )
    return url


def _layer_address(raw: object) -> str:
    url = web_address(raw)
    if _LAYER.search(urlsplit(url).path) is None:
        raise Wrong(f"'{url}' must be a layer's address, such as https://…/FeatureServer/0")
    return url


def _row(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 1:
        raise Wrong("must be a whole number from 1 on")
    return raw


def _encoding(raw: object) -> str:
    name = fields.text(raw)
    try:
        "a".encode(name)
    except (LookupError, UnicodeError, ValueError):
        raise Wrong(f"'{name}' is not an encoding: utf-8 or cp1252, for example") from None
    return name


def _delimiter(raw: object) -> str:
    if not isinstance(raw, str) or len(raw) != 1 or raw in '"\r\n ':
        raise Wrong("must be one character, neither a blank nor a quote")
    return raw


def _length_check(raw: object) -> bool:
    if not fields.is_off(raw):
        raise Wrong("can only be off: left out, lengths are checked")
    return False


def _credential(raw: object) -> str:
    name = fields.text(raw)
    if _CREDENTIAL.fullmatch(name) is None or name.endswith("_HOSTS"):
        raise Wrong(
            f"'{name}' is not the name of a credential: PERMITS for PLOTI_SOURCE_PERMITS, in"
            " capital letters, digits and underscores, not ending in _HOSTS"
        )
    return name


_LOCATIONS: dict[str, Callable[[object], str]] = {
    "file": file_path,
    "http": web_address,
    "arcgis": _layer_address,
    "socrata": web_address,
    "ckan": _datastore_or_resource,
}
_kind = fields.choice(*_LOCATIONS, kind="kind")
_format = fields.choice(*FORMATS, kind="format")
