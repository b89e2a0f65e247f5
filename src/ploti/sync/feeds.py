"""`ploti.feeds`: the feeds of the default client, with sync among them.

What sync needs is loaded when it is called, so that reading a feed loads no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from ploti.client.connection import Client
from ploti.client.feeds import Feeds as ClientFeeds
from ploti.errors import ConfigError
from ploti.model.ids import EventId, SubscriptionId

if TYPE_CHECKING:
    from ploti.client.files import Role
    from ploti.sync.changed import Item
    from ploti.sync.differences import Difference
    from ploti.sync.progress import Observer
    from ploti.sync.result import Result
    from ploti.sync.status import Status
    from ploti.sync.table import Table
    from ploti.sync.verify import Verified


class Feeds(ClientFeeds):
    """Data Feeds, and copies of one's own that are kept in step with them."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._client = client

    def sync(
        self,
        subscription_id: str,
        *,
        to: str,
        follow: bool = False,
        verify: bool = False,
        dataset: Iterable[str] = (),
        on_removed: str = "keep",
        replace_views: bool = False,
        table_name: str | None = None,
        lock_timeout: float = 60.0,
        observe: Observer | None = None,
    ) -> Result:
        """Bring a destination in step with a subscription; with `follow` go on until interrupted.

        Args:
            subscription_id: Which subscription.
            to: The destination, such as `duckdb:feeds.duckdb`; made where there is none.
            follow: Wait for what comes, and never return.
            verify: Prove every version's table by its content digest before it is committed.
            dataset: Only these datasets; another choice than last time is taken up.
            on_removed: `keep` the table of a dataset that leaves, or `drop` it.
            replace_views: Where a table is made anew and its database would keep the old one for
                the views over it, make them again over the new one.
            table_name: The table's name, for one `dataset`; else its id without `ds_`.
            lock_timeout: Seconds to wait for a destination that another program has open.
            observe: Is told of every step.

        Raises:
            ConfigError: An argument cannot be meant.
            DestinationBusy: Another client is at the destination, or it stays in use.
            PlotiError: The run cannot go on; what was committed until then stays.
        """
        with _libraries():
            from ploti.sync.calls import sync  # noqa: PLC0415 - loads the database

        return sync(
            self._client,
            subscription_id,
            to=to,
            follow=follow,
            verify=verify,
            dataset=dataset,
            on_removed=on_removed,
            replace_views=replace_views,
            table_name=table_name,
            lock_timeout=lock_timeout,
            observe=observe,
        )

    def changes(self, subscription_id: str, cursor: str | None = None) -> Iterator[Item]:
        """All that changed after a cursor, record by record, up to the end of the log.

        For those who apply changes by themselves. A `Changed` is a record to keep under its id, or
        to delete; an `Emptied` says to forget all records of a dataset, whose current ones follow:
        so a `resync_required` reads, a dataset that joins or leaves, and a version whose changes
        are not kept any more. Store an item's `cursor` with its work, and give it the next time;
        without one everything is read anew.

        Raises:
            Expired: The cursor is past retention: forget all records and begin without one.
            PlotiError: The reading cannot go on.
        """
        with _libraries():
            from ploti.sync.changed import changed_records  # noqa: PLC0415 - loads pyarrow
            from ploti.sync.feed import ClientFeed  # noqa: PLC0415

        feed = ClientFeed(self._client, SubscriptionId(subscription_id))
        return changed_records(feed, None if cursor is None else EventId(cursor))

    def table(
        self, dataset_id: str, version: int | None = None, *, file: Role = "snapshot"
    ) -> Table:
        """A snapshot or changes file of a version (left out: the current one) in memory.

        `.arrow` is the Arrow table; `.pandas()`, `.geopandas()` and `.polars()` are it for those
        libraries, where they are installed.
        """
        with _libraries():
            from ploti.sync.table import read_table  # noqa: PLC0415 - loads pyarrow

        return read_table(self._client, dataset_id, version, file)

    def diff(
        self, dataset_id: str, from_version: int, to_version: int
    ) -> AbstractContextManager[Difference]:
        """The net change between two kept versions: `with ploti.feeds.diff(…) as found:`.

        `found.counts` has its size, `found.rows` its records, which can be gone through once: rows
        as `datasets.changes` gives them, with values as JSON has them but decimals.

        Raises:
            NotFound: There is no such version.
            Expired: What it takes to compare them is not kept any more.
            SyncError: A file cannot be read.
        """
        with _libraries():
            from ploti.sync.calls import diff  # noqa: PLC0415 - loads the database

        return diff(self._client, dataset_id, from_version, to_version)

    def status(self, subscription_id: str, *, to: str, lock_timeout: float = 5.0) -> Status:
        """How far behind each dataset of a destination is, and why."""
        with _libraries():
            from ploti.sync.calls import status  # noqa: PLC0415 - loads the database

        return status(self._client, subscription_id, to=to, lock_timeout=lock_timeout)

    def verify(
        self, subscription_id: str, *, to: str, repair: bool = False, lock_timeout: float = 5.0
    ) -> Verified:
        """Compare every table of a destination with the version that it holds.

        With `repair` those that differ are made equal: the rows of the digest buckets that differ
        are replaced by the snapshot's.
        """
        with _libraries():
            from ploti.sync.calls import verify  # noqa: PLC0415 - loads the database

        return verify(
            self._client, subscription_id, to=to, repair=repair, lock_timeout=lock_timeout
        )


@contextmanager
def _libraries() -> Iterator[None]:
    """Say what brings a library of others that is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "ploti":
            raise
        raise ConfigError(
            f"{error.name} is not installed: pip install 'ploti[sync]' brings what this needs"
        ) from error
