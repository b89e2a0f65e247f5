"""What programs and commands call: sync, status and verify with a client and an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from ploti.client.alarm import Alarm
from ploti.client.calls import Progress as Transferred
from ploti.client.connection import Client
from ploti.errors import ConfigError, RateLimited, TransportError, Unavailable
from ploti.model.ids import SubscriptionId, dataset_id
from ploti.sync import repair as repairing
from ploti.sync import status as status_of
from ploti.sync import verify as verification
from ploti.sync.destination import LOCK_TIMEOUT, LOOK_TIMEOUT
from ploti.sync.destinations import open_destination
from ploti.sync.differences import Difference, compared
from ploti.sync.feed import ClientFeed
from ploti.sync.progress import Observer, Progress, ignore
from ploti.sync.result import Result
from ploti.sync.runner import Run, open_run
from ploti.sync.status import Status
from ploti.sync.verify import Verified
from ploti.sync.work import OnRemoved, Options


def sync(
    client: Client,
    subscription_id: str,
    *,
    to: str,
    follow: bool = False,
    verify: bool = False,
    dataset: Iterable[str] = (),
    on_removed: str = "keep",
    replace_views: bool = False,
    table_name: str | None = None,
    lock_timeout: float = LOCK_TIMEOUT,
    observe: Observer | None = None,
) -> Result:
    """Bring a destination in step with a subscription, with any client's key (`Feeds.sync`)."""
    with opened(
        client,
        subscription_id,
        to=to,
        verify=verify,
        dataset=dataset,
        on_removed=on_removed,
        replace_views=replace_views,
        table_name=table_name,
        lock_timeout=lock_timeout,
        observe=observe or ignore,
        alarm=Alarm(),
    ) as run:
        if follow:
            run.follow()
        return run.catch_up()


@contextmanager
def opened(
    client: Client,
    subscription_id: str,
    *,
    to: str,
    verify: bool,
    dataset: Iterable[str],
    on_removed: str,
    replace_views: bool,
    table_name: str | None,
    lock_timeout: float,
    observe: Observer,
    alarm: Alarm,
    transferred: Transferred | None = None,
) -> Iterator[Run]:
    """The run that `sync` does, for those who wake and stop it: it raises Stopped then."""

    def pass_on(progress: Progress) -> None:
        alarm.check()  # at every moment between two steps, before a commit as well as after it
        observe(progress)

    subscription = SubscriptionId(subscription_id)
    destination = open_destination(
        to,
        subscription_id=subscription,
        lock_timeout=lock_timeout,
        replace_views=replace_views,
        alarm=alarm,
    )
    try:
        chosen = frozenset(dataset_id(each) for each in dataset)
        options = Options(verify=verify, on_removed=OnRemoved(on_removed), table_name=table_name)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if not destination.exists:
        _check(client, subscription)
    with open_run(
        feed=ClientFeed(client, subscription, alarm=alarm, transferred=transferred),
        destination=destination,
        options=options,
        chosen=chosen,
        observe=pass_on,
        sleep=alarm.sleep,
    ) as run:
        yield run


def _check(client: Client, subscription_id: SubscriptionId) -> None:
    """Raise NotFound before anything is made for it; what passes is waited out by the run."""
    with suppress(TransportError, Unavailable, RateLimited):
        client.feeds.subscriptions.show(subscription_id)


@contextmanager
def diff(client: Client, dataset: str, start: int, end: int) -> Iterator[Difference]:
    """The net change between two versions of a dataset, while the block is open."""
    feed = ClientFeed(client, SubscriptionId(""))  # of no subscription: its log is not read

    def id_map() -> Mapping[str, str]:
        return client.feeds.id_map(dataset, start, end)

    with compared(feed, dataset_id(dataset), start, end, id_map=id_map) as found:
        yield found


def status(
    client: Client, subscription_id: str, *, to: str, lock_timeout: float = LOOK_TIMEOUT
) -> Status:
    """How far behind each dataset of a destination is, and why."""
    subscription = SubscriptionId(subscription_id)
    destination = open_destination(to, subscription_id=subscription, lock_timeout=lock_timeout)
    return status_of.read_status(ClientFeed(client, subscription), destination)


def verify(
    client: Client,
    subscription_id: str,
    *,
    to: str,
    repair: bool = False,
    lock_timeout: float = LOOK_TIMEOUT,
    observe: Observer = ignore,
) -> Verified:
    """Compare every table of a destination with the version that it holds, and repair it if so."""
    subscription = SubscriptionId(subscription_id)
    destination = open_destination(to, subscription_id=subscription, lock_timeout=lock_timeout)
    feed = ClientFeed(client, subscription)
    if repair:
        return repairing.repair(feed, destination, observe=observe)
    return verification.verify(feed, destination, observe=observe)
