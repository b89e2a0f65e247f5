"""How many requests a second a key may send, and an address without one."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network

from ploti.errors import RateLimited

BURST = 2
"""How many seconds' worth may come at once."""

_REMEMBERED = 10_000
"""Senders whose rate is known; of more, those that were quiet longest are forgotten."""

_OF_ONE = 64
"""Bits of an IPv6 address that tell senders apart: what follows each chooses as it likes."""

_WITH_PORT = re.compile(r"\[(?P<six>[^]]+)\](?::[0-9]+)?|(?P<four>[0-9.]+):[0-9]+")
"""An address as some proxies write it."""


class RateLimits:
    """Counts requests of this process by key, and by address where there is no key that is known.

    A key is known once it was admitted: guesses of keys count for the address that they come from,
    which behind a proxy is what the proxy says. `clock` gives seconds that never go back.
    """

    def __init__(
        self,
        *,
        rate: int,
        public_rate: int,
        behind_proxy: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._behind_proxy = behind_proxy
        self._keys = _Buckets(rate, clock)
        self._addresses = _Buckets(public_rate, clock)

    def address(self, peer: str, *, forwarded: str) -> str:
        """Whom a request comes from: the peer, or behind a proxy the last one that it names.

        What stands before that in `X-Forwarded-For` is what the sender says of itself.
        """
        named = forwarded.rpartition(",")[2].strip() if self._behind_proxy else ""
        return _sender(named or peer)

    def take(self, digest: str | None, *, address: str) -> None:
        """Count a request; raises RateLimited with the seconds to wait where it is one too many."""
        if digest is not None and self._keys.knows(digest):
            pause = self._keys.take(digest)
        else:
            pause = self._addresses.take(address)
        if pause > 0:
            raise RateLimited("Too many requests: wait, then go on more slowly", retry_after=pause)

    def take_known(self, digest: str) -> bool:
        """Count a request of a key that is known; False, and not counted, where that cannot be."""
        return self._keys.knows(digest) and self._keys.take(digest) == 0

    def admitted(self, digest: str) -> None:
        """Count what comes with this key for the key from now on."""
        self._keys.learn(digest)


class _Buckets:
    """A token bucket for each sender, full at first."""

    def __init__(self, rate: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def knows(self, sender: str) -> bool:
        return sender in self._left

    def learn(self, sender: str) -> None:
        if sender not in self._left:
            self._keep(sender, float(BURST * self._rate), self._clock())

    def take(self, sender: str) -> float:
        """Seconds to wait until there is a token; 0 where one was taken."""
        now, most = self._clock(), float(BURST * self._rate)
        left, at = self._left.get(sender, (most, now))
        left = min(most, left + (now - at) * self._rate)
        if left < 1:
            self._keep(sender, left, now)
            return (1 - left) / self._rate
        self._keep(sender, left - 1, now)
        return 0.0

    def _keep(self, sender: str, left: float, now: float) -> None:
        self._left[sender] = (left, now)
        self._left.move_to_end(sender)
        if len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)


@lru_cache(_REMEMBERED)
def _sender(address: str) -> str:
    """Whose an address is: without a port, and of IPv6 the network that one sender has."""
    found = _WITH_PORT.fullmatch(address)
    host = (found["six"] or found["four"]) if found else address
    try:
        parsed = ip_address(host.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ip_network((int(parsed), _OF_ONE), strict=False))
