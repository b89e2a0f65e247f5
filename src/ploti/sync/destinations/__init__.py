"""Destinations, a module or package each; `open_destination` chooses by the address."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ploti.errors import ConfigError
from ploti.model.ids import SubscriptionId
from ploti.sync.destination import Destination
from ploti.sync.destinations.duckdb import DuckDB
from ploti.sync.destinations.sqlite import GeoPackage, SQLite

_KINDS: dict[str, Callable[..., Destination]] = {
    "duckdb": DuckDB,
    "sqlite": SQLite,
    "gpkg": partial(SQLite, layout=GeoPackage()),
}

LOCK_TIMEOUT = 60.0
"""Seconds to wait for a destination that is in use, unless another number is given."""


def open_destination(
    address: str, *, subscription_id: SubscriptionId, lock_timeout: float = LOCK_TIMEOUT
) -> Destination:
    """The destination at an address such as `sqlite:FILE`; nothing is opened or made yet.

    Raises:
        ConfigError: The address is none that ploti can sync to.
    """
    kind, _, rest = address.partition(":")
    if kind in _KINDS and rest:
        make, path = _KINDS[kind], Path(rest).expanduser()
        return make(path, subscription_id=subscription_id, lock_timeout=lock_timeout)
    choice = ", ".join(f"{each}:FILE" for each in _KINDS)
    raise ConfigError(f"'{address}' is no destination: give one of {choice}")
