"""Query parameters: which a route takes, and the one guard that refuses all others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import Annotated, NamedTuple

from litestar import Request
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.params import ParameterKwarg, QueryParameter
from litestar.types.empty import Empty
from litestar.typing import FieldDefinition

from ploti.errors import Fault, NotFound
from ploti.server.api.problems import refuse

LONGEST_PAGE = 500
PAGE = 100
LONGEST_WAIT = 30
LARGEST_NUMBER = 99_999_999
"""Of a version: record ids have eight digits for it."""

AnyRequest = Request[object, object, State]
Limit = Annotated[
    int, QueryParameter(ge=1, le=LONGEST_PAGE, description="The longest page wanted.")
]
Cursor = Annotated[str | None, QueryParameter(description="`nextCursor` of the page before.")]
DryRun = Annotated[
    bool, QueryParameter(name="dryRun", description="Do everything but keep nothing of it.")
]

OPEN_QUERY = "open_query"
"""In a handler's `opt`: it judges its query by itself, as a signed link does."""

_RESERVED = {"request", "scope", "body"}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
LARGEST_WHOLE = 10**18 - 1
"""Of any parameter: what `_WHOLE` takes."""

_SWITCH = re.compile(r"true|false")


class FileFormat(StrEnum):
    """What files are asked for: `geoparquet` is plain Parquet for a dataset without geometry."""

    GEOPARQUET = "geoparquet"
    CSV = "csv"


class Taken(NamedTuple):
    """A parameter that a handler takes from the query: its name there, and its definition."""

    name: str
    field: FieldDefinition

    @property
    def rules(self) -> ParameterKwarg | None:
        """What its annotation says besides the type."""
        rules = self.field.kwarg_definition
        return rules if isinstance(rules, ParameterKwarg) else None

    @property
    def is_required(self) -> bool:
        """Whether a query must have it."""
        return self.field.default is Empty


@cache
def query_of(handler: BaseRouteHandler, in_path: frozenset[str]) -> dict[str, Taken]:
    """The query parameters of a handler, by their names there; `in_path` are those of the path."""
    others = _RESERVED | set(handler.resolve_dependencies()) | in_path
    taken = [
        _take(name, field)
        for name, field in handler.parsed_fn_signature.parameters.items()
        if name not in others
    ]
    return {parameter.name: parameter for parameter in taken}


def _take(name: str, field: FieldDefinition) -> Taken:
    rules = field.kwarg_definition
    query = rules.name if isinstance(rules, ParameterKwarg) else None
    return Taken(query or name, field)


async def check_request(request: AnyRequest) -> None:
    """Refuse a number in the path, or a query, that is not in the one form that it is taken in.

    Runs before each handler: a guard would be given a copy of its handler, made for each request.
    """
    _check_path(request)
    handler = request.route_handler
    if OPEN_QUERY in handler.opt:
        return
    taken = query_of(handler, frozenset(request.path_params))
    faults = tuple(_find_faults(list(request.query_params.multi_items()), taken))
    if faults:
        raise refuse(*faults)


def _check_path(request: AnyRequest) -> None:
    """There is nothing under a number in another form than its plain one, nor under a NUL."""
    segments = request.scope["path"].split("/")
    for value in request.path_params.values():
        if isinstance(value, str) and "\0" in value:
            raise NotFound("There is no name with a NUL here: no database keeps one")
        if isinstance(value, int):
            check_number(value)
            if str(value) not in segments:
                raise no_number(value)


def check_number(number: int) -> None:
    """Raise NotFound for a number that no version can have, and that a database may not take."""
    if not 0 <= number <= LARGEST_NUMBER:
        raise no_number(number)


def no_number(number: int) -> NotFound:
    """What is told of a number under which there is nothing."""
    return NotFound(f"There is no number {number} here")


def _find_faults(given: list[tuple[str, str]], taken: dict[str, Taken]) -> Iterator[Fault]:
    names = [name for name, _ in given]
    for name in sorted(taken.keys() - set(names)):
        if taken[name].is_required:
            yield Fault(name, "is missing")
    for name in sorted(set(names)):
        if name not in taken:
            yield Fault(name, f"no such parameter; there are {_tell(taken)}")
        elif names.count(name) > 1:
            yield Fault(name, "given more than once")
    for name, text in given:
        if name in taken and (wrong := _judge(text, taken[name].field)):
            yield Fault(name, wrong)


def _judge(text: str, field: FieldDefinition) -> str | None:
    kinds = {field.annotation, *(inner.annotation for inner in field.inner_types)}
    if not text:
        return "has no value"
    if "\0" in text:
        return "has a NUL in it"
    if bool in kinds and not _SWITCH.fullmatch(text):
        return "is true or false"
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, StrEnum) and text not in set(kind):
            return f"'{text}' is none of {', '.join(kind)}"
    if int in kinds and not _WHOLE.fullmatch(text):
        return f"'{text}' is no whole number"
    return None


def _tell(taken: dict[str, Taken]) -> str:
    return ", ".join(sorted(taken)) or "none here"
