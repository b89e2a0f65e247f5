"""A layer of an ArcGIS server, proved whole by its count and by the object ids that it lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from hashlib import blake2b
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from yarl import URL

from ploti.errors import SourceError
from ploti.server.adapters.fetcher.arcgis_answers import (
    About,
    Answer,
    Count,
    Failed,
    Feature,
    Ids,
    Int64,
    described,
    object_id_field,
)
from ploti.server.adapters.fetcher.asking import (
    Ask,
    Page,
    Reply,
    TooLargeAPage,
    TryAgain,
    decoded,
    failure,
)
from ploti.server.adapters.fetcher.offsets import by_offset
from ploti.server.adapters.fetcher.seen import Listed, ObjectIds
from ploti.server.sources.pages import Pages

K = TypeVar("K", bound=msgspec.Struct)

_ROWS = 2000
"""Rows asked for at a time, where the layer does not say that it gives fewer."""

_LONGEST_LIST = 1500
"""Characters of the ids in one address: some servers refuse addresses of 2,048."""

_REFUSALS = {401, 403, 498, 499}
"""Codes of errors that another try cannot mend: who asks may not."""


class _Got(NamedTuple):
    """A page, and the object ids of its rows."""

    page: Page
    ids: list[int]


async def layer_pages(url: URL, ask: Ask) -> AsyncGenerator[Page, None]:
    """All rows of a layer.

    By offset in the order of the ids where the layer can, and what that leaves out by its ids, so
    that pages that are short, empty, unordered or cut lose nothing. A layer that has no ids is read
    by offset in the order of all its columns. Raises TryAgain where the rows are not those that the
    layer lists and counts.
    """
    layer = _Layer(url, ask, await _about(url, ask))
    ids = await layer.ids()
    if ids is None:
        async with aclosing(by_offset(layer)) as in_order:
            async for page in in_order:
                yield page
        return
    total = await layer.total()
    listed = Listed(ids)
    if not listed:
        yield Page(rows=[], ids=[], pages=layer.describe(None))
    async with aclosing(_read(layer, listed)) as pages:
        async for page in pages:
            yield page
    if listed.came != total:
        raise TryAgain(f"the source says that it has {total} rows, and gave {listed.came} of them")
    again = await layer.ids()
    if again is None or not np.array_equal(again, ids):
        raise TryAgain(f"the source changed while it was read: it said that it has {total} rows")


async def _read(layer: _Layer, listed: Listed) -> AsyncGenerator[Page, None]:
    while layer.goes_by_offset and listed.came < len(listed):
        try:
            got = await layer.rows_after(listed.came)
        except SourceError:
            if listed.came:
                raise
            break  # some say that they give rows by offset, and refuse to
        if not got.ids or not listed.take(got.ids):
            break  # no page to go by: it has no rows, or some of them again
        yield got.page
    missing = listed.missing
    while len(missing):
        batch, missing = _batch(missing, layer.size)
        while batch:
            asked, others = batch[: layer.size], batch[layer.size :]
            got = await layer.rows_of(asked)
            if got.ids:
                listed.take(got.ids)
                yield got.page
                batch = sorted({*asked} - {*got.ids}) + others
            else:
                batch = others  # listed, and not to be had: the count tells whether that is right


class _Layer:
    """The questions to one layer."""

    def __init__(self, url: URL, ask: Ask, about: About) -> None:
        self._about = about
        self._ask = ask
        self._identity = object_id_field(about)
        self._query = _base(url) / "query"
        self._asked = {"f": "json", "where": url.query.get("where", "1=1")}
        self._pages: Pages | None = None
        self.size = max(1, min(about.max_record_count or _ROWS, _ROWS))

    @property
    def goes_by_offset(self) -> bool:
        """Whether it gives the rows after a number of them, in an order that is known."""
        return self._about.gives_by_offset and self._identity is not None

    async def ids(self) -> ObjectIds | None:
        """The object ids of all rows, in order; None of a layer with columns and none of these."""
        try:
            listed = await self._question({"returnIdsOnly": "true"}, Ids)
        except SourceError:
            if self._identity or not self._about.fields:
                raise
            return None
        self._identity = self._identity or listed.object_id_field_name
        if self._identity is None and self._about.fields:
            return None
        return np.unique(np.array(listed.object_ids or (), np.int64))

    async def total(self) -> int:
        """How many rows there are."""
        return (await self._question({"returnCountOnly": "true"}, Count)).count

    async def page(self, offset: int) -> Page:
        """Some rows after so many, in the order of all columns; each is told by place and bytes."""
        order = {"orderByFields": ",".join(self._about.sortable), "resultOffset": str(offset)}
        answer = await self._answer(lambda: order | {"resultRecordCount": str(self.size)})
        rows = answer.features or []
        told = [b"%d %b" % (n, blake2b(bytes(row)).digest()) for n, row in enumerate(rows, offset)]
        return Page(rows=rows, ids=told, pages=self.describe(answer))

    async def rows_after(self, offset: int) -> _Got:
        """Some rows after so many, in the order of the ids."""
        order = {"orderByFields": self._identity or "", "resultOffset": str(offset)}
        return await self._rows(lambda: order | {"resultRecordCount": str(self.size)})

    async def rows_of(self, ids: Sequence[int]) -> _Got:
        """Rows with these ids; raises SourceError for others, and for one that comes twice."""
        got = await self._rows(lambda: {"objectIds": ",".join(map(str, ids[: self.size]))})
        if len({*got.ids}) < len(got.ids) or not {*got.ids} <= {*ids}:
            raise SourceError("the source gave rows twice, or with other object ids than asked for")
        return got

    def describe(self, answer: Answer | None) -> Pages:
        """What the layer, or an answer with rows, says of its columns and geometry."""
        pages = described(self._about, answer, identity=self._identity)
        if self._pages and pages.shapes != self._pages.shapes:
            raise SourceError("the source gave pages in more than one reference system")
        self._pages = self._pages or pages
        return self._pages

    async def _answer(self, asked: Callable[[], dict[str, str]]) -> Answer:
        """A page of rows; of rows so large that a page of them is too large, fewer."""
        try:
            return await self._question(asked() | self._about.forms, Answer)
        except TooLargeAPage:
            if self.size == 1:
                raise
            self.size = self.size // 2
            return await self._answer(asked)

    async def _rows(self, asked: Callable[[], dict[str, str]]) -> _Got:
        answer = await self._answer(asked)
        self._identity = self._identity or object_id_field(self._about, answer)
        features = answer.features or []
        ids = [self._id_of(bytes(feature)) for feature in features]
        told = [str(each).encode() for each in ids]
        return _Got(page=Page(rows=features, ids=told, pages=self.describe(answer)), ids=ids)

    def _id_of(self, feature: bytes) -> int:
        found = decoded(feature, Feature).attributes.get(self._identity or "")
        try:
            return msgspec.json.decode(bytes(found or b""), type=Int64)
        except msgspec.DecodeError:
            raise SourceError(
                f"a row of the source has no object id in {self._identity or 'any field'}"
            ) from None

    async def _question(self, asked: dict[str, str], kind: type[K]) -> K:
        address = self._query.with_query(self._asked | asked)
        return await self._ask(address, lambda reply: _answer(reply, kind))


async def _about(url: URL, ask: Ask) -> About:
    about = await ask(_base(url).with_query({"f": "json"}), lambda reply: _answer(reply, About))
    if about.type not in {None, "Feature Layer", "Table"}:
        raise SourceError(f"the source is a {about.type}, which has no rows: name a layer of it")
    return about


def _base(url: URL) -> URL:
    """The layer's own address."""
    path = url.with_query(None).with_fragment(None)
    stripped = path.path.rstrip("/")
    return path.with_path(stripped.removesuffix("/query"))


def _answer(reply: Reply, kind: type[K]) -> K:
    """An answer; raises TryAgain for an error that stands inside one that is ok."""
    failed = decoded(reply.body, Failed).error
    if failed is None:
        return decoded(reply.body, kind)
    said = " ".join(filter(None, [str(failed.code or ""), failed.message, *(failed.details or ())]))
    if failed.code in _REFUSALS:
        raise SourceError(failure(said))
    raise TryAgain(failure(said))


def _batch(ids: ObjectIds, size: int) -> tuple[list[int], ObjectIds]:
    """The next ids to ask for, and the others."""
    length, end = 0, 0
    while end < min(size, len(ids)) and length < _LONGEST_LIST:
        length += len(str(ids[end])) + 1
        end += 1
    return ids[:end].tolist(), ids[end:]
