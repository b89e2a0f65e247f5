"""Every reason to load anew, and to leave, from a real server into every destination."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.serving import Server, served
from tests.fakes import synced
from tests.fakes.postgres import Cluster
from tests.fakes.synced import Place

from ploti.client.connection import Client
from ploti.errors import ExitStatus
from ploti.sync.calls import diff, sync, verify

DATASET, TABLE = "ds_towns", "towns"
Rows = Mapping[str, tuple[str | None, ...]]
"""Each town's cells by its code, as the source writes them."""


class Story:
    """A server with one subscription, and five copies of it."""

    def __init__(self, server: Server, client: Client, places: list[Place]) -> None:
        self.server = server
        self.client = client
        self.places = places
        self.states: dict[int, tuple[list[str], Rows]] = {}
        self.declare("code")
        self.log = server.subscribe(DATASET)
        self.subscription = self.log.rpartition("/")[2]
        self.cursor = "evt_000000000000"

    def declare(self, key: str) -> None:
        self.server.declare(DATASET, key=[key])

    def staff(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        answer = self.server.staff(method, f"/v1/admin/{path}", json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    def push(self, text: str) -> None:
        """A version with these rows, released by staff where it is held."""
        outcome = self.server.push(DATASET, text.encode())
        if outcome["outcome"] == "held":
            outcome = self.staff("POST", f"holds/{outcome['hold']['id']}/release", note="right")
        self.released(text)

    def released(self, text: str) -> None:
        """The current version has these rows."""
        head, *lines = csv.reader(io.StringIO(text))
        dataset = self.server.get(f"/v1/feeds/datasets/{DATASET}").json()
        rows = {line[0]: tuple(cell or None for cell in line) for line in lines}
        self.states[dataset["current"]["version"]] = (head, rows)

    def select(self, dataset: str) -> None:
        """Have the subscription deliver this dataset alone."""
        answer = self.server.request("PATCH", self.log, json={"datasets": [dataset]})
        assert answer.is_success, answer.text

    def told(self) -> list[tuple[str, str | None]]:
        """The types of the events that came since, each with its reason."""
        params = {"cursor": self.cursor, "wait": "30"}
        page = self.server.get(f"{self.log}/events", params=params).json()
        self.cursor = page["nextCursor"]
        return [
            (each["type"].rpartition(".")[2], each["data"].get("reason")) for each in page["events"]
        ]

    def assert_is_current(self) -> None:
        """Each copy has the rows of the current version, and its columns."""
        head, rows = self.states[max(self.states)]
        for place in self.places:
            to = synced.address(place)
            assert sync(self.client, self.subscription, to=to).exit_status is ExitStatus.DONE
            names = ", ".join(f'"{name}"' for name in head)
            found = synced.query(place, f"SELECT {names} FROM {TABLE}")
            assert {str(row[0]): tuple(map(_text, row)) for row in found} == rows, place

    def assert_verified(self) -> None:
        """Each copy is proved by its digest."""
        for place in self.places:
            found = verify(self.client, self.subscription, to=synced.address(place))
            assert found.exit_status is ExitStatus.DONE, found

    def assert_left(self, reason: str) -> None:
        """Each copy has its table still, and says why it is not kept in step."""
        _, rows = self.states[max(self.states)]
        for place in self.places:
            to = synced.address(place)
            found = sync(self.client, self.subscription, to=to).datasets
            (left,) = [each for each in found if each.dataset_id == DATASET]
            assert (left.state, left.reason, left.version) == ("removed", reason, None)
            assert synced.query(place, f"SELECT count(*) FROM {TABLE}") == [(len(rows),)]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@pytest.fixture
def story(tmp_path: Path, postgres: Cluster) -> Iterator[Story]:
    with (
        served(tmp_path) as server,
        Client(server.key, url=server.url) as client,
        postgres.database() as url,
    ):
        kinds = ("duckdb", "sqlite", "gpkg", "parquet")
        yield Story(server, client, [*(tmp_path / f"feeds.{kind}" for kind in kinds), url])


FIRST = "code,name,n\nA1,Alpha,1\nB2,Beta,2\nC3,Gamma,3\nD4,Delta,4\n"
WIDER = "code,name,n,more\nA1,Alpha,1,x\nB2,Beta,2,\nC3,Gamma,3,\nE5,Epsilon,5,y\n"
RETYPED = "code,name,n,more\nA1,Alpha,one,x\nB2,Beta,2,\nC3,Gamma,3,z\nE5,Epsilon,5,y\n"
NARROWER = "code,name,more\nA1,Alpha,x\nB2,Beta,\nC3,Gamma,z\nE5,Epsilon,y\n"
LAST = "code,name,more\nA1,Alpha,x\nB2,Beta,b\nC3,Gamma,z\nF6,Zeta,\n"


def test_every_reason_to_load_anew_and_the_differences_across_them(story: Story) -> None:
    """R-051 to R-064, S-16, and `feeds diff` across a rebuild, a restore, a retype and new ids."""
    story.push(FIRST)
    assert story.told() == [("added", None), ("resync_required", "first_version")]
    story.assert_is_current()
    story.push(WIDER)
    assert story.told() == [("schema_changed", None), ("updated", None)]
    story.assert_is_current()
    for text, reason in ((RETYPED, "schema_changed"), (NARROWER, "schema_changed")):
        story.push(text)
        assert story.told()[1:] == [("schema_changed", None), ("resync_required", reason)]
        story.assert_is_current()
    story.declare("name")
    story.push(NARROWER)
    assert story.told()[-1] == ("resync_required", "key_columns_changed")
    story.assert_is_current()

    story.staff("POST", f"datasets/{DATASET}/rebuild")
    story.released(NARROWER)
    assert story.told() == [("resync_required", "previous_unavailable")]
    story.assert_is_current()
    story.push(LAST)
    assert story.told() == [("updated", None)]
    proposal = story.staff("POST", f"datasets/{DATASET}/proposals")
    story.staff("POST", f"proposals/{proposal['id']}/approve", note="anew")
    story.released(LAST)
    assert story.told() == [("resync_required", "record_ids_changed")]
    story.assert_is_current()
    earlier = sorted(story.states)[-3]
    outcome = story.staff("POST", f"datasets/{DATASET}/versions/{earlier}/restore")
    assert outcome["outcome"] == "released", outcome
    story.released(NARROWER)
    assert story.told() == [("resync_required", "previous_unavailable")]
    story.assert_is_current()

    story.assert_verified()
    for start, end in combinations(sorted(story.states), 2):
        with diff(story.client, DATASET, start, end) as found:
            counts = (found.counts.added, found.counts.changed, found.counts.removed)
            assert counts == between(*story.states[start], *story.states[end]), (start, end)


def between(old_head: list[str], old: Rows, head: list[str], new: Rows) -> tuple[int, int, int]:
    """How many were added, changed and removed, by the later state's columns."""

    def shown(row: tuple[str | None, ...]) -> list[str | None]:
        cells = dict(zip(old_head, row, strict=True))
        return [cells.get(name) for name in head]

    changed = [code for code in old.keys() & new.keys() if shown(old[code]) != [*new[code]]]
    return len(new.keys() - old.keys()), len(changed), len(old.keys() - new.keys())


def test_every_reason_to_leave_and_coming_back(story: Story) -> None:
    """R-065 to R-069, S-29, S-33."""
    story.push(FIRST)
    story.told()
    story.assert_is_current()
    story.server.declare("ds_other", key=["id"])
    (workspace,) = story.staff("GET", "workspaces")["workspaces"]
    own = f"workspaces/{workspace['id']}"
    story.staff("POST", "plans", id="narrow", topics=["parcels"])
    for reason, leave, come_back in (
        (
            "subscription_changed",
            partial(story.select, "ds_other"),
            partial(story.select, DATASET),
        ),
        (
            "left_coverage",
            partial(story.staff, "PATCH", own, coverage=["us/ga"]),
            partial(story.staff, "PATCH", own, coverage=None),
        ),
        (
            "plan_changed",
            partial(story.staff, "PATCH", own, planId="narrow"),
            partial(story.staff, "PATCH", own, planId=workspace["planId"]),
        ),
        (
            "no_longer_deliverable",
            partial(story.staff, "POST", f"datasets/{DATASET}/remove"),
            partial(story.declare, "code"),
        ),
    ):
        leave()
        assert ("removed", reason) in story.told()
        story.assert_left(reason)
        come_back()
        assert ("added", None) in story.told()
        story.assert_is_current()
    story.assert_verified()
