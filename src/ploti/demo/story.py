"""The demo's story, told step by step; it stops at the first number that is not the true one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from ploti.client.connection import Client
from ploti.demo.history import DATASET, DECLARATION, State, read_states, unpack
from ploti.demo.inbox import Inbox, receiving
from ploti.demo.processes import Follower, Served, ask, following, serving
from ploti.errors import PlotiError
from ploti.model.admin import Outcome, OutcomeKind

Say = Callable[[str], None]

TABLE = "world_airports"
_COPY = "copy.duckdb"


class Surprise(PlotiError):
    """Something is not as the true history has it: this is a fault of ploti."""


def tell(folder: Path, say: Say) -> None:
    """Play the whole story in an empty folder.

    Raises:
        Surprise: A count differs from the true one, or the copy from the version.
        PlotiError: A part does not run.
    """
    began = time.monotonic()
    (folder / "states").mkdir(parents=True)
    unpack(folder / "states")
    say(f"Everything happens in {folder}.\n")
    say("1. A server starts in a folder of its own: the API, the checks and the builds.")
    with serving(folder / "server") as served:
        say(f"   It listens on {served.url}.\n")
        subscription = _play(folder, served, say)
    seconds = time.monotonic() - began
    say(f"Done in {seconds:.0f} seconds; every count was the true one.\n")
    _say_what_next(folder, subscription, say)


def _play(folder: Path, served: Served, say: Say) -> str:
    states = read_states()
    with (
        Client(served.staff_key, url=served.url) as staff,
        Client(served.subscriber_key, url=served.url) as subscriber,
        receiving() as inbox,
    ):
        _declare(staff, say)
        subscription = subscriber.feeds.subscriptions.create(name="demo", datasets=[DATASET]).id
        say("3. Somebody subscribes, and keeps a DuckDB file in step from now on:")
        say(f"   ploti feeds sync {subscription} --to duckdb:{_COPY} --follow")
        _hook(subscriber, subscription, inbox, say)
        destination = f"duckdb:{folder / _COPY}"
        with following(
            subscription, destination=destination, served=served, folder=folder
        ) as follower:
            say("4. The source changes: eight real states, from 2021 to 2026, pushed in turn.\n")
            for number, state in enumerate(states, start=1):
                _push(staff, state, number=number, path=folder / "states" / state.name, say=say)
                _await_copy(follower, number, say)
        _compare_inbox(subscriber, subscription, inbox, say)
    _verify(folder, served, subscription, states[-1], say)
    return subscription


def _hook(subscriber: Client, subscription: str, inbox: Inbox, say: Say) -> None:
    made = subscriber.webhooks.create(inbox.url, subscription_id=subscription)
    inbox.trust(made.secret)
    say("   A webhook tells another program, which verifies the signature of each event:")
    say(f"   ploti webhooks create {inbox.url} --subscription-id {subscription}\n")


def _compare_inbox(subscriber: Client, subscription: str, inbox: Inbox, say: Say) -> None:
    log = list(subscriber.feeds.subscriptions.events(subscription))
    sent = log[1:]  # `added` was there before the webhook
    got = inbox.wait_for(len(sent))
    _compare("the events that the webhook got", found=got, true=sent)
    _compare("the webhooks that were refused", found=inbox.refused, true=[])
    say(f"   The webhook got all {len(got)} events since, in order, each signature verified.\n")


def _declare(staff: Client, say: Say) -> None:
    staff.admin.datasets.apply(DECLARATION)
    say("2. The operator declares a dataset: airports, identified by their ICAO code.")
    say("   ploti admin datasets apply airports.yaml\n")


def _push(staff: Client, state: State, *, number: int, path: Path, say: Say) -> None:
    say(f"   {state.date}  ploti admin push {DATASET} {state.name}")
    outcome = staff.admin.push(DATASET, path)
    if outcome.outcome is OutcomeKind.HELD:
        _release(staff, outcome, say)
    elif outcome.outcome is not OutcomeKind.RELEASED:
        raise Surprise(f"{state.name} ended as {outcome.outcome}: {outcome.detail}")
    _compare(f"the counts of {state.name}", found=outcome.counts, true=state.counts)
    _compare(f"the number of {state.name}", found=outcome.version, true=number)
    current = staff.feeds.datasets.show(DATASET).current
    _compare(f"the rows of {state.name}", found=current and current.row_count, true=state.rows)
    counts = state.counts
    say(
        f"               version {number}: {state.rows:,} airports; {counts.added:,} added, "
        f"{counts.changed:,} changed, {counts.removed:,} removed"
    )


def _release(staff: Client, outcome: Outcome, say: Say) -> None:
    if outcome.hold is None:
        raise Surprise("a held version has no hold")
    hold = staff.admin.holds.show(outcome.hold.id)
    say(f"               HELD for review ({hold.reason}): subscribers are told of a delay,")
    say("               and keep the version they have. What the review found:")
    for finding in hold.findings:
        say(f"                 - {finding.message}")
    say("               The change is real, so a person releases it:")
    say(f'               ploti admin holds release {hold.id} --note "new edition"')
    staff.admin.holds.release(hold.id, note="new edition")


def _await_copy(follower: Follower, number: int, say: Say) -> None:
    asked = time.monotonic()
    follower.wait_for(number)
    waited = (time.monotonic() - asked) * 1000
    later = f"{waited:.0f} ms later" if waited >= 1 else "by then"
    say(f"               the copy has it {later}\n")


def _verify(folder: Path, served: Served, subscription: str, last: State, say: Say) -> None:
    say("5. Is the copy really equal to the version? Its digest is computed and compared:")
    say(f"   ploti feeds verify {subscription} --to duckdb:{_COPY}")
    told = ask(
        ["feeds", "verify", subscription, "--to", f"duckdb:{folder / _COPY}"],
        served=served,
        folder=folder,
    )
    say("\n".join(f"   {line}" for line in told.splitlines()))
    with duckdb.connect(str(folder / _COPY), read_only=True) as copy:
        found = len(copy.table(TABLE))
    _compare("the rows of the copy", found=found, true=last.rows)
    say(f"   DuckDB by itself counts {last.rows:,} rows in the table {TABLE}.\n")


def _say_what_next(folder: Path, subscription: str, say: Say) -> None:
    say("What to look at next. The folder stays; start the server on it again:")
    say(f"   ploti serve --data {folder / 'server'}")
    say("and in a second terminal, with the staff's key:")
    say(f"   export PLOTI_API_KEY=$(head -1 {folder / 'server' / 'keys'})")
    say(f"   ploti feeds datasets versions {DATASET}      every version, with its counts")
    say(f"   ploti feeds datasets changes {DATASET} 8     which records changed, and how")
    say(f"   ploti feeds subscriptions events {subscription}   the log that the sync followed")
    say("   ploti webhooks list                                  who is told, and how that goes")
    say(f"   ploti feeds status {subscription} --to duckdb:{folder / _COPY}")
    say("Your own feed takes five minutes: see 'Your first feed' in README.md.")


def _compare(what: str, *, found: object, true: object) -> None:
    if found != true:
        raise Surprise(f"{what}: found {found}, true is {true}")
