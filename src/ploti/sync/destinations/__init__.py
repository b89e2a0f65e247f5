"""Destinations, a module or package each; `open_destination` chooses by the address."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ploti.client.alarm import Alarm
from ploti.errors import ConfigError
from ploti.model.ids import SubscriptionId
from ploti.sync.destination import LOCK_TIMEOUT, Destination
from ploti.sync.destinations.duckdb import DuckDB
from ploti.sync.destinations.parquet import Parquet
from ploti.sync.destinations.sqlite import GeoPackage, SQLite

_FILES: dict[str, Callable[..., Destination]] = {
    "duckdb": DuckDB,
    "sqlite": SQLite,
    "gpkg": partial(SQLite, layout=GeoPackage()),
    "parquet": Parquet,
}
_FORMS = "duckdb:FILE postgresql://USER@HOST/DATABASE sqlite:FILE gpkg:FILE parquet:FOLDER/"
FORMS = tuple(_FORMS.split())


def open_destination(
    address: str,
    *,
    subscription_id: SubscriptionId,
    lock_timeout: float = LOCK_TIMEOUT,
    replace_views: bool = False,
    alarm: Alarm | None = None,
) -> Destination:
    """The destination at an address such as `sqlite:FILE`; nothing is opened or made yet.

    `replace_views`: make views again over a table that is made anew. `alarm`: ends what waits.

    Raises:
        ConfigError: The address is none that ploti can sync to.
    """
    kind, _, rest = address.partition(":")
    given = {"subscription_id": subscription_id, "lock_timeout": lock_timeout}
    given["alarm"] = alarm or Alarm()
    if kind in _FILES and rest:
        return _FILES[kind](Path(rest).expanduser(), **given)
    if kind in ("postgresql", "postgres") and rest.startswith("//"):
        return _postgres()(address, replace_views=replace_views, **given)
    raise ConfigError(f"'{address}' is no destination: give one of {', '.join(FORMS)}")


def _postgres() -> Callable[..., Destination]:
    """Loaded where it is meant: its driver comes with an extra."""
    try:
        from ploti.sync.destinations.postgres import Postgres  # noqa: PLC0415 - as is said above
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise ConfigError("pip install 'ploti[sync,postgres]' brings its driver") from error
    return Postgres
