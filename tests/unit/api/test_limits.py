"""How many requests a sender may send."""

import math

import pytest

from ploti.errors import RateLimited
from ploti.server.api.limits import RateLimits


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def taken(limits: RateLimits, digest: str | None, *, address: str = "10.0.0.1") -> int:
    """How many requests pass until one is too many."""
    count = 0
    while True:
        try:
            limits.take(digest, address=address)
        except RateLimited:
            return count
        count += 1


def test_a_key_has_a_burst_and_then_its_rate() -> None:
    clock = Hand()
    limits = RateLimits(rate=50, public_rate=1, clock=clock)
    limits.admitted("a")
    assert taken(limits, "a") == 100
    clock.at += 1
    assert taken(limits, "a") == 50
    clock.at += 1000
    assert taken(limits, "a") == 100


def test_one_too_many_is_told_how_long_to_wait() -> None:
    clock = Hand()
    limits = RateLimits(rate=2, public_rate=1, clock=clock)
    limits.admitted("a")
    taken(limits, "a")
    with pytest.raises(RateLimited) as refused:
        limits.take("a", address="")
    pause = refused.value.retry_after or 0
    assert math.isclose(pause, 0.5)
    clock.at += pause
    limits.take("a", address="")


def test_keys_are_counted_apart_and_addresses_too() -> None:
    limits = RateLimits(rate=5, public_rate=3, clock=Hand())
    limits.admitted("a")
    limits.admitted("b")
    assert [taken(limits, "a"), taken(limits, "b")] == [10, 10]
    assert [taken(limits, None, address="10.0.0.1"), taken(limits, None, address="10.0.0.2")] == [
        *(6, 6)
    ]


def test_guesses_of_keys_count_for_their_address() -> None:
    limits = RateLimits(rate=50, public_rate=3, clock=Hand())
    for number in range(6):
        limits.take(f"guess {number}", address="10.0.0.1")
    with pytest.raises(RateLimited):
        limits.take("guess 6", address="10.0.0.1")


def test_what_is_remembered_of_senders_has_a_bound() -> None:
    limits = RateLimits(rate=5, public_rate=5, clock=Hand())
    for number in range(20_000):
        limits.take(None, address=str(number))
    assert len(limits._addresses._left) == 10_000


@pytest.mark.parametrize(
    ("behind_proxy", "forwarded", "address"),
    [
        (False, "", "127.0.0.1"),
        (False, "203.0.113.9", "127.0.0.1"),
        (True, "", "127.0.0.1"),
        (True, "203.0.113.9", "203.0.113.9"),
        (True, "a lie, 203.0.113.9", "203.0.113.9"),
        (True, "203.0.113.9,", "127.0.0.1"),
    ],
)
def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_names(
    behind_proxy: bool, forwarded: str, address: str
) -> None:
    limits = RateLimits(rate=1, public_rate=1, behind_proxy=behind_proxy)
    assert limits.address("127.0.0.1", forwarded=forwarded) == address


@pytest.mark.parametrize(
    ("told", "sender"),
    [
        ("203.0.113.9:4711", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::1]:4711", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_sender_has_no_limit_more_for_another_port_or_another_address_of_its_network(
    told: str, sender: str
) -> None:
    proxied = RateLimits(rate=1, public_rate=1, behind_proxy=True)
    assert proxied.address("127.0.0.1", forwarded=told) == sender
    assert RateLimits(rate=1, public_rate=1).address(told, forwarded="") == sender
