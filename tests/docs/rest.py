"""The page of REST, out of the OpenAPI document that the server answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
from tests.docs.text import code, page, table

from ploti.server.api.application import make_application

Json = dict[str, Any]
_METHODS = ["get", "post", "put", "patch", "delete"]
NO_BACKEND: Any = None
"""The document is drawn from the routes alone."""


def document() -> Json:
    """The OpenAPI document, asked of the application itself."""
    application = make_application(NO_BACKEND, version="0")

    async def ask() -> Json:
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://ploti") as client:
            answer = await client.get("/openapi.json")
            found: Json = answer.json()
            return found

    return asyncio.run(ask())


def rest() -> str:
    """`rest.md`: every route, its parameters, answers and problems, and every schema."""
    drawn = document()
    return page(
        "REST",
        "Send a key as `Authorization: Bearer ploti_…`. Names are in camelCase, times in RFC 3339 "
        "and UTC. Lists have `limit` (100, at most 500) and answer `nextCursor`, to be sent as "
        "`cursor` for the next page. A query parameter that a route does not take is an error. "
        "Each `GET` answers `HEAD` too. A server gives this description as OpenAPI 3.1 at "
        "`/openapi.json`. Problems are explained in [Errors](errors.md).",
        *(part for path, found in drawn["paths"].items() for part in _path(path, found)),
        "## Schemas",
        *(part for each in drawn["components"]["schemas"].items() for part in _schema(*each)),
    )


def _path(path: str, methods: Json) -> Iterator[str]:
    for method in sorted(methods, key=_METHODS.index):
        operation = methods[method]
        yield f"## {method.upper()} {path}"
        yield operation["summary"] + ("" if operation["security"] else " It needs no key.")
        query = [one for one in operation["parameters"] if one["in"] == "query"]
        if query:
            yield table(["parameter", "type", "meaning"], map(_parameter, query))
        yield _ends(operation)


def _parameter(parameter: Json) -> list[str]:
    required = "Required. " if parameter["required"] else ""
    told = required + parameter["description"]
    return [code(parameter["name"]), _kind(parameter["schema"]), told or "-"]


def _ends(operation: Json) -> str:
    lines = []
    if "requestBody" in operation:
        lines.append(f"- Body: {_content(operation['requestBody'])}")
    problems = []
    for status, answer in operation["responses"].items():
        if status == "default":
            continue
        if "application/problem+json" in answer.get("content", {}):
            problems.append(f"{status} ({answer['description'].replace(' or ', ', ')})")
        else:
            lines.append(f"- {status}: {_content(answer)}")
    return "\n".join([*lines, f"- Problems: {'; '.join(problems)}"])


def _content(holder: Json) -> str:
    content = holder.get("content")
    if not content:
        return str(holder["description"])
    kind, told = next(iter(content.items()))
    return _kind(told["schema"]) if "schema" in told else f"a file ({code(kind)})"


def _schema(name: str, schema: Json) -> Iterator[str]:
    yield f"### {name}"
    if schema.get("description"):
        yield " ".join(schema["description"].split())
    if "properties" in schema:
        required = schema.get("required", [])
        yield table(
            ["field", "type"],
            [
                [code(field), _kind(kind) + ("" if field in required else ", may be left out")]
                for field, kind in schema["properties"].items()
            ],
        )
    else:
        yield f"One of: {_kind(schema)}." if "enum" in schema else _kind(schema)


def _kind(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        kind = f"[{name}](#{name.lower()})"
    elif "anyOf" in schema or "oneOf" in schema:
        kind = " or ".join(map(_kind, schema.get("anyOf") or schema["oneOf"]))
    elif "enum" in schema:
        kind = ", ".join(map(code, schema["enum"]))
    elif schema.get("type") == "array":
        kind = f"list of {_kind(schema['items'])}" if schema.get("items") else "list"
    else:
        kind = _plain(schema)
    return kind + (f", {code(_json(schema['default']))} if left out" if "default" in schema else "")


def _plain(schema: Json) -> str:
    names = {"string": "text", "integer": "number", "boolean": "true or false", "null": "null"}
    kind = "time" if schema.get("format") == "date-time" else schema.get("type", "any value")
    kind = names.get(kind, kind)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{kind} from {low} to {high}"
    return f"{kind} from {low} on" if low is not None else str(kind)


def _json(value: object) -> object:
    return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
