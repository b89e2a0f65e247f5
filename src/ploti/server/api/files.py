"""Files behind signed links, whole or in part (RFC 9110 ranges), without a key."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

from ploti.errors import Code, Forbidden
from ploti.server.api.backend import Backend
from ploti.server.api.methods import is_head
from ploti.server.api.openapi import ALSO, ANSWER, FILE, PROBLEMS, QUERY
from ploti.server.api.params import OPEN_QUERY
from ploti.server.api.problems import Problem, respond
from ploti.server.ports.links import LINK_FIELDS, Link, LinkedFiles

_CHUNK = 256 << 10
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))")
_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
}
_UNTOLD = "application/octet-stream"


class Part(NamedTuple):
    """Bytes of a file of this size: from the first to before the end."""

    start: int
    end: int
    size: int
    is_whole: bool


class OutOfRange(Exception):
    """None of the bytes asked for are in the file."""


@get(
    "/files/{blob:path}",
    opt={
        OPEN_QUERY: True,
        ANSWER: FILE,
        ALSO: {
            206: "the part that Range names",
            304: "If-None-Match names its ETag",
            416: "Range names nothing that is in the file",
        },
        QUERY: dict.fromkeys(LINK_FIELDS, "A part of the link, as it was given."),
        PROBLEMS: (Code.FORBIDDEN, Code.NOT_FOUND),
    },
)
async def get_file(
    request: Request[object, object, State], backend: NamedDependency[Backend], blob: FromPath[str]
) -> Response[bytes] | Stream:
    """A file of a version; takes `Range` and `If-Range`, and its ETag is its sha256."""
    query = dict(request.query_params.multi_items())
    if len(query) != len(list(request.query_params.multi_items())):
        raise Forbidden("This link was changed: ask for the version again")
    link = backend.files.check(blob.lstrip("/"), query)
    async with backend.files.open(link.blob) as file:
        size = file.size
    headers = _describe(link)
    if _is_known(request.headers, headers["etag"]):
        return Response(b"", status_code=304, headers=headers)
    try:
        part = _choose(request, headers["etag"], size)
    except OutOfRange:
        return _refuse_range(size)
    body = _nothing() if is_head(request.scope) else _send(backend.files, link.blob, part)
    return Stream(
        body,
        status_code=200 if part.is_whole else 206,
        headers=headers | _measure(part),
        media_type=headers["content-type"],
    )


def _describe(link: Link) -> dict[str, str]:
    return {
        "accept-ranges": "bytes",
        "content-disposition": f"attachment; filename*=UTF-8''{quote(link.file_name, safe='')}",
        "content-type": _TYPES.get(PurePosixPath(link.file_name).suffix, _UNTOLD),
        "etag": f'"{link.sha256}"',
    }


def _is_known(headers: Mapping[str, str], etag: str) -> bool:
    known = headers.get("if-none-match", "")
    return known == "*" or etag in {tag.strip().removeprefix("W/") for tag in known.split(",")}


def _choose(request: Request[object, object, State], etag: str, size: int) -> Part:
    """What to send: all of it where there is no range that counts; raises OutOfRange."""
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    stale = request.headers.get("if-range", etag) != etag
    if found is None or stale or is_head(request.scope):
        return Part(0, size, size, is_whole=True)
    first, last, suffix = found.groups()
    start = int(first) if first else max(0, size - int(suffix))
    end = min(size, int(last) + 1) if last else size
    if start >= size or (last and int(last) < start):
        raise OutOfRange
    return Part(start, end, size, is_whole=False)


def _measure(part: Part) -> dict[str, str]:
    length = {"content-length": str(part.end - part.start)}
    if part.is_whole:
        return length
    return length | {"content-range": f"bytes {part.start}-{part.end - 1}/{part.size}"}


def _refuse_range(size: int) -> Response[bytes]:
    problem = Problem(
        type=f"urn:ploti:problem:{Code.INVALID_INPUT}",
        title="Range not satisfiable",
        status=416,
        detail=f"The file has {size} bytes, and none of them are in the range",
        code=Code.INVALID_INPUT,
    )
    return respond(problem, headers={"content-range": f"bytes */{size}"})


async def _send(files: LinkedFiles, blob: str, part: Part) -> AsyncIterator[bytes]:
    async with files.open(blob) as file:
        start = part.start
        while start < part.end:
            chunk = await file.read(start, length=min(_CHUNK, part.end - start))
            start += len(chunk)
            yield chunk


async def _nothing() -> AsyncIterator[bytes]:
    yield b""
