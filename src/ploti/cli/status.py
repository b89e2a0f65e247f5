"""`ploti admin status`: how a server does."""

from __future__ import annotations

from ploti.cli.building import say_progress
from ploti.cli.output import Json, print_fields, print_json, print_table, text
from ploti.client.connection import Client
from ploti.model.admin import Status


def status(*, json: Json = False) -> None:
    """Say how the server does: queues, failing sources, builds under way, room, sizes."""
    with Client() as client:
        found = client.admin.status()
    if json:
        print_json(found)
    else:
        _print(found)


def _print(found: Status) -> None:
    print_table(
        ["jobs", "planned", "due", "running", "oldest due"],
        [
            [each.kind, each.planned, each.due, each.running, each.oldest_due]
            for each in found.queues
        ],
        empty="No jobs are planned.",
    )
    print()
    print_table(
        ["failing source", "since", "times", "why"],
        [[each.dataset_id, each.since, each.failures, each.detail] for each in found.failing],
        empty="No source fails.",
    )
    print()
    print_table(
        ["under way", "version", "since", "how far"],
        [
            [each.dataset_id, each.version, each.since, say_progress(each.progress)]
            for each in found.building
        ],
        empty="No check is under way.",
    )
    print()
    if found.retention is not None and found.retention.stopped is not None:
        print(f"Retention stopped: {text(found.retention.stopped)}")
        print()
    if found.disk.checks_wait:
        free, needed = found.disk.free_bytes, found.disk.needed_bytes
        print(f"Checks wait for room: {free:,} bytes are free, PLOTI_MIN_FREE asks for {needed:,}.")
        print()
    sizes = found.sizes
    print_fields(
        {
            "datasets": sizes.datasets,
            "versions": sizes.versions,
            "subscriptions": sizes.subscriptions,
            "events": sizes.events,
            "open holds": sizes.open_holds,
            "bytes of files": sizes.file_bytes,
            "bytes free": found.disk.free_bytes,
        }
    )
