"""Outcomes of turns share transactions, and one that fails costs none of the others."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ploti.model.ids import WebhookId
from ploti.server.service.record_outcomes import Outcomes


class CountingStore:
    """Runs work, keeping none of a transaction that fails; counts the transactions."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.transactions = 0

    async def write(self, work: Callable[[Any], Any]) -> Any:
        self.transactions += 1
        await asyncio.sleep(0)  # others come meanwhile
        begun: list[str] = []
        result = work(begun)
        self.kept += begun
        return result


def outcome(name: str) -> Callable[[Any], None]:
    def work(tx: list[str]) -> None:
        if name == "bad":
            raise ValueError(name)
        tx.append(name)

    return work


def record(*names: str) -> tuple[CountingStore, list[BaseException | None]]:
    store: Any = CountingStore()

    async def main() -> list[BaseException | None]:
        outcomes = Outcomes(store)
        return await asyncio.gather(
            *(outcomes.record(outcome(name), of=WebhookId(name)) for name in names),
            return_exceptions=True,
        )

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
