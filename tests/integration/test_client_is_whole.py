"""The SDK against the OpenAPI document: a method for each call of the API, and no other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.running import Running

from ploti.client.calls import Call
from ploti.client.connection import AsyncClient, Client
from ploti.client.methods import ListMethod, Method
from ploti.client.sides import AsyncSide, BlockingSide

NOT_CALLS = {"/healthz", "/readyz", "/metrics", "/openapi.json"}
"""Addresses for those who look after a server, and for machines that read what it offers."""

GIVEN = {"version": 7, "number": 7}
"""Arguments in a path that are numbers; a word stands for all others."""


def members(group: object) -> Iterator[ListMethod[Any, Any, Any] | Method[Any, Any]]:
    """The methods of a client's group and of the groups in it."""
    for name in vars(type(group)).keys() | {n for c in type(group).__mro__ for n in vars(c)}:
        found = inspect.getattr_static(type(group), name)
        if isinstance(found, ListMethod | Method):
            yield found
    for each in vars(group).values():
        if type(each).__module__.startswith("ploti.client") and not isinstance(
            each, BlockingSide | AsyncSide
        ):
            yield from members(each)


def made(client: Client | AsyncClient) -> set[tuple[str, str]]:
    """Method and path, with `{}` for what is filled in, of every call that the client can make."""
    found = set()
    for group in ("feeds", "webhooks", "admin"):
        for each in members(getattr(client, group)):
            call = _call(each.told_by)
            if call is not None:
                found.add((call.method, re.sub(r"/(x-x|7)(?=/|$)", "/{}", call.path)))
    return found


def _call(told_by: Any) -> Call[Any] | None:
    """The call of an endpoint with made-up arguments; None for jobs of several calls."""
    if inspect.iscoroutinefunction(told_by):
        return None
    parameters = inspect.signature(told_by).parameters.values()
    needed = [each for each in parameters if each.default is each.empty]
    arguments = {
        each.name: GIVEN.get(each.name, {"id": "x-x"} if each.name == "declaration" else "x-x")
        for each in needed
    }
    positional = [arguments[each.name] for each in needed if each.kind is not each.KEYWORD_ONLY]
    by_name = {e.name: arguments[e.name] for e in needed if e.kind is e.KEYWORD_ONLY}
    call = told_by(*positional, **by_name)
    assert isinstance(call, Call)
    return call


def told(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (verb.upper(), re.sub(r"\{[^}]*\}", "{}", path))
        for path, operations in document["paths"].items()
        for verb in operations
        if path not in NOT_CALLS and verb != "head" and not path.startswith("/files/")
    }


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_sdk_has_a_method_for_each_call_of_the_api(
    api: Running, kind: type[Client | AsyncClient]
) -> None:
    document = api.get("/openapi.json", key=None).json()
    client = kind("ploti_key", url="http://127.0.0.1:9")
    offered, has = told(document), made(client)
    assert len(offered) > 40
    assert sorted(offered - has) == []
    assert sorted(has - offered) == []
