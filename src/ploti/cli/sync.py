"""`ploti feeds sync`, `status` and `verify`: tables of one's own, kept in step and proved."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ploti.cli.bars import Bars, watching
from ploti.cli.output import Json, print_json, print_next, print_table
from ploti.cli.stopping import stopped_by_signals
from ploti.cli.waking import SECRET_VARIABLE, SecretFile, read_secret, waking
from ploti.client.alarm import Alarm, Stopped
from ploti.client.connection import Client
from ploti.sync.destination import LOCK_TIMEOUT, LOOK_TIMEOUT
from ploti.sync.held import State
from ploti.sync.progress import Moment, Progress
from ploti.sync.result import Result
from ploti.sync.status import Status
from ploti.sync.verify import Verification, Verified

Subscription = Annotated[str, Parameter(help="The subscription's id.")]
To = Annotated[
    str,
    Parameter(
        help="The destination: duckdb:FILE, sqlite:FILE, gpkg:FILE, parquet:FOLDER/ or"
        " postgresql://…"
    ),
]
LockTimeout = Annotated[
    float, Parameter(help="Seconds to wait while another program has the destination open.")
]

Listen = Annotated[
    int | None,
    Parameter(
        help="Go on, woken by webhooks too that come to this port of 127.0.0.1; 0 takes a free"
        f" one. {SECRET_VARIABLE} has their secret."
    ),
]

_SHOWN = {State.HELD: "current"}
"""States in other words for people, to whom a *held* version is one that waits for review."""

_LOUD = {Moment.RELOADING, Moment.STUCK, Moment.LEAVING, Moment.RETRYING}
_TOLD = {*_LOUD, Moment.COMMITTED}


def sync(
    subscription: Subscription,
    /,
    *,
    to: To,
    follow: Annotated[bool, Parameter(negative=(), help="Go on, as versions come.")] = False,
    listen: Listen = None,
    secret_file: SecretFile = None,
    verify: Annotated[
        bool, Parameter(negative=(), help="Prove every version before it is committed.")
    ] = False,
    dataset: Annotated[
        list[str] | None, Parameter(negative=(), help="Only this dataset; may be repeated.")
    ] = None,
    on_removed: Annotated[
        Literal["keep", "drop"], Parameter(help="What becomes of a dataset's table that leaves.")
    ] = "keep",
    replace_views: Annotated[
        bool,
        Parameter(negative=(), help="Make views over a table again where it is made anew."),
    ] = False,
    table_name: Annotated[
        str | None, Parameter(help="The table's name, with one --dataset.")
    ] = None,
    lock_timeout: LockTimeout = LOCK_TIMEOUT,
    json: Json = False,
) -> int:
    """Bring tables of your own in step with a subscription, once or for as long as it runs.

    Each dataset becomes a table named after its id without ds_, with its records' columns and
    _ploti_record_id. What is held stands in the schema _ploti, or in tables with the prefix
    _ploti_. Stopped at any moment, it goes on where it was.
    """
    from ploti.sync import calls

    follow, alarm = follow or listen is not None, Alarm()
    with (
        stopped_by_signals(alarm),
        watching(quiet=json) as bars,
        Client() as client,
        _listening(listen, secret_file, subscription, alarm),
        calls.opened(
            client,
            subscription,
            to=to,
            verify=verify,
            dataset=dataset or (),
            on_removed=on_removed,
            replace_views=replace_views,
            table_name=table_name,
            lock_timeout=lock_timeout,
            observe=_print_steps if json and follow else partial(_tell, bars=bars),
            alarm=alarm,
            transferred=bars.transferred if bars else None,
        ) as run,
    ):
        try:
            if follow:
                run.follow()
            result = run.catch_up()
        except Stopped:
            if not follow:
                raise
            result = run.result()
    _show_result(result, subscription, json=json and not follow, quiet=json)
    return result.exit_status


def _listening(
    port: int | None, secret_file: Path | None, subscription: str, alarm: Alarm
) -> AbstractContextManager[None]:
    """Where a port is given, ring the alarm for each webhook of the subscription that comes."""
    if port is None:
        return nullcontext()
    return waking(port, secret=read_secret(secret_file), subscription=subscription, alarm=alarm)


def _tell(progress: Progress, *, bars: Bars | None) -> None:
    """Say on standard error what people must know, and on a terminal what they like to know."""
    line = f"{progress.dataset_id}: {progress.detail}" if progress.dataset_id else progress.detail
    if bars is not None:
        bars.show(progress)
        if progress.moment in _TOLD:
            bars.say(line)
    elif progress.moment in _LOUD:
        print(line, file=sys.stderr, flush=True)


def _print_steps(progress: Progress) -> None:
    if progress.moment in {*_TOLD, Moment.CLOSED}:
        print_json(progress)


def _show_result(result: Result, subscription: str, *, json: bool, quiet: bool) -> None:
    if json:
        print_json(result)
    if quiet:
        return
    print_table(
        ["table", "version", "state", "dataset", "reason"],
        [
            [
                each.table,
                each.version,
                _SHOWN.get(each.state, each.state),
                each.dataset_id,
                each.reason,
            ]
            for each in result.datasets
        ],
        empty="The subscription delivers no dataset yet.",
    )
    if result.differing:
        print(f"These could not be made equal to their versions: {', '.join(result.differing)}")
    elif result.behind:
        print(f"Not up to date: {', '.join(result.behind)}. The next sync tries again.")
    if any(each.table for each in result.datasets):
        print_next(f"ploti feeds verify {subscription} --to {result.destination}")
    else:
        print_next(f"ploti feeds subscriptions show {subscription}")


def status(
    subscription: Subscription,
    /,
    *,
    to: To,
    lock_timeout: LockTimeout = LOOK_TIMEOUT,
    json: Json = False,
) -> int:
    """Show how far behind each dataset of a destination is, and why."""
    from ploti.sync import calls

    with Client() as client:
        found = calls.status(client, subscription, to=to, lock_timeout=lock_timeout)
    if json:
        print_json(found)
    else:
        _show_status(found, subscription)
    return found.exit_status


def _show_status(found: Status, subscription: str) -> None:
    print_table(
        ["dataset", "standing", "copy", "current", "table", "why"],
        [
            [each.dataset_id, each.standing, each.held, each.current, each.table, each.detail]
            for each in found.datasets
        ],
        empty="The subscription delivers no dataset yet.",
    )
    for each in found.datasets:
        for column, stored in each.columns.items():
            print(f"Column {column} of {each.dataset_id} is {stored} in table {each.table}.")
    if found.expired:
        print("The cursor is past retention: the next sync begins again from the manifest.")
    if found.exit_status:
        print_next(f"ploti feeds sync {subscription} --to {found.destination}")


def verify(
    subscription: Subscription,
    /,
    *,
    to: To,
    repair: Annotated[
        bool, Parameter(negative=(), help="Replace the rows of what differs by the right ones.")
    ] = False,
    lock_timeout: LockTimeout = LOOK_TIMEOUT,
    json: Json = False,
) -> int:
    """Prove that every table equals the version it holds, or say in which buckets it differs.

    A bucket is the first byte of the SHA-256 of a record's id, 0 to 255. Exit status 5 says that a
    table differs.
    """
    from ploti.sync import calls

    with watching(quiet=json) as bars, Client() as client:
        found = calls.verify(
            client,
            subscription,
            to=to,
            repair=repair,
            lock_timeout=lock_timeout,
            observe=partial(_tell, bars=bars),
        )
    if json:
        print_json(found)
    else:
        _show_verified(found)
        if found.differing and not repair:
            print_next(f"ploti feeds verify {subscription} --to {to} --repair")
    return found.exit_status


def _show_verified(found: Verified) -> None:
    print_table(
        ["table", "version", "result", "detail"],
        [
            [each.table, each.version, _result(each), None if each.matches else each.detail]
            for each in found.datasets
        ],
        empty="No table has a version yet.",
    )


def _result(found: Verification) -> str:
    if found.repaired:
        return "equal, repaired"
    return {True: "equal", False: "differs", None: "not checked"}[found.matches]
