"""Both sides of the SDK come from one description."""

import inspect
from collections.abc import Iterator

import pytest

from ploti.client import endpoints
from ploti.client.connection import AsyncClient, Client
from ploti.client.methods import Async, Blocking, ListMethod, Method

GROUPS = [
    "feeds",
    "feeds.datasets",
    "feeds.subscriptions",
    "admin",
    "admin.datasets",
    "admin.holds",
    "admin.versions",
]


def find(client: Client | AsyncClient, path: str) -> object:
    found: object = client
    for name in path.split("."):
        found = getattr(found, name)
    return found


def methods(group: object) -> Iterator[str]:
    for name in dir(type(group)):
        if isinstance(inspect.getattr_static(type(group), name), Method | ListMethod):
            yield name


CALLS = [f"{path}.{name}" for path in GROUPS for name in methods(find(Client("k"), path))]


@pytest.mark.parametrize("path", GROUPS)
def test_both_sides_have_the_same_groups_with_the_same_methods(path: str) -> None:
    blocking, awaited = find(Client("k"), path), find(AsyncClient("k"), path)
    assert [*methods(blocking)] == [*methods(awaited)]
    assert public(blocking) == public(awaited)
    assert type(awaited).__name__ == f"Async{type(blocking).__name__}"
    assert type(awaited).__doc__ == type(blocking).__doc__


def public(group: object) -> set[str]:
    return {name for name in dir(group) if not name.startswith("_")}


@pytest.mark.parametrize("path", CALLS)
def test_both_sides_have_the_same_signatures_and_docstrings_from_one_source(path: str) -> None:
    blocking, awaited = find(Client("k"), path), find(AsyncClient("k"), path)
    assert callable(blocking)
    assert callable(awaited)
    assert inspect.signature(blocking) == inspect.signature(awaited)
    assert "transport" not in inspect.signature(blocking).parameters
    assert blocking.__doc__ == awaited.__doc__ != None  # noqa: E711
    names = {getattr(each, "__name__", None) for each in (blocking, awaited)}
    assert names == {path.rpartition(".")[2]}


def test_every_endpoint_is_a_method_and_told_by_its_own_docstring() -> None:
    told_by = {
        inspect.getattr_static(type(find(Client("k"), path.rpartition(".")[0])), name).told_by
        for path in CALLS
        for name in [path.rpartition(".")[2]]
    }
    calls = {
        each
        for name, each in vars(endpoints).items()
        if inspect.isfunction(each) and each.__module__.endswith("endpoints") and name[0] != "_"
    }
    assert calls <= told_by


def test_a_group_is_of_one_side() -> None:
    assert isinstance(Client("k").feeds.datasets, Blocking)
    assert isinstance(AsyncClient("k").feeds.datasets, Async)


def test_making_a_client_reads_no_environment_and_opens_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PLOTI_API_KEY", raising=False)
    assert find(Client(), "feeds.subscriptions.events")
