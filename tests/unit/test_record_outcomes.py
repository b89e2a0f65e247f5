"""Outcomes of turns share transactions, and one that fails costs none of the others."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.fakes import logs
from tests.fakes.releases import NOW

from ploti.model.ids import WebhookId
from ploti.server.ports.rows import Claim, WebhookRow
from ploti.server.service.record_outcomes import Outcomes
from ploti.server.service.record_turns import Turn


class Begun:
    """A transaction that is told of lanes, and fails at one that is called bad."""

    def __init__(self) -> None:
        self.webhooks = self.deliveries = self
        self.lanes: list[str] = []

    def give_back(self, claim: Claim, _: WebhookRow) -> bool:
        if claim.webhook_id == "bad":
            raise ValueError(claim.webhook_id)
        self.lanes.append(claim.webhook_id)
        return False

    def add(self, deliveries: list[Any]) -> None:
        assert deliveries == []  # of a lane that is somebody else's by now, nothing is kept

    add_attempts = add


class CountingStore:
    """Runs work, keeping none of a transaction that fails; counts the transactions."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.transactions = 0

    async def write(self, work: Callable[[Any], Any]) -> Any:
        self.transactions += 1
        await asyncio.sleep(0)  # others come meanwhile
        begun = Begun()
        result = work(begun)
        self.kept += begun.lanes
        return result


def turn(name: str) -> Turn:
    lane = replace(logs.webhook(1, now=NOW), id=WebhookId(name))
    claim = Claim(webhook_id=lane.id, token=1)
    return Turn(claim=claim, webhook=lane, new=[], changed=[], tries=[], blocked=set(), at=NOW)


def record(*names: str) -> tuple[CountingStore, list[BaseException | None]]:
    store: Any = CountingStore()

    async def main() -> list[BaseException | None]:
        outcomes = Outcomes(store)
        recorded = [outcomes.record(turn(name)) for name in names]
        return await asyncio.gather(*recorded, return_exceptions=True)

    return store, asyncio.run(main())


def test_outcomes_that_come_meanwhile_share_the_next_transaction() -> None:
    store, raised = record(*"abcdef")
    assert store.kept == [*"abcdef"]
    assert raised == [None] * 6
    assert store.transactions == 2


@pytest.mark.parametrize("place", [0, 1, 3])
def test_an_outcome_that_fails_is_told_to_its_own_turn_alone(place: int) -> None:
    names = [*"abc"]
    names.insert(place, "bad")
    store, raised = record(*names)
    assert sorted(store.kept) == [*"abc"]
    assert [type(error) for error in raised].count(ValueError) == 1
    assert isinstance(raised[place], ValueError)
