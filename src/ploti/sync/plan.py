"""The rules of replay: from what is held and what the server says to the steps to take.

Takes values, gives values, does no IO. The rules are those of the event reference, to the letter;
numbers stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from ploti.model.event import (
    Added,
    Delayed,
    Event,
    Removed,
    ResyncRequired,
    SchemaChanged,
    Stale,
    UnknownEvent,
    Updated,
)
from ploti.model.ids import DatasetId, EventId
from ploti.model.manifest import Manifest, ManifestEntry
from ploti.model.schema import Level, SchemaVersion
from ploti.model.version import Version
from ploti.sync.held import Held, Holdings, State
from ploti.sync.steps import Alter, Apply, Await, Keep, Leave, Load, Skip, Step


def plan_event(held: Held | None, event: Event, *, takes: bool = True) -> Step:
    """The step that one event asks for; `takes` is whether its dataset is chosen."""
    data, state = event.data, held.state if held else None
    if held is not None and event.id <= held.last_event:
        return Skip(event=event.id, reason="acted on before")
    if isinstance(data, Removed):
        return _plan_removed(held, event, data)
    if not takes or state is State.LEFT_OUT:
        return Skip(event=event.id, reason="not chosen")
    if state in (State.NEEDS_LOAD, State.LEAVING):
        return Skip(event=event.id, reason=f"{state}: {held and held.reason}")
    match data:
        case Added(version=None):
            return Await(dataset_id=data.dataset_id, event=event.id)
        case Added():
            return _load(event, data.version, "added")
        case Updated() | ResyncRequired() | SchemaChanged():
            return _plan_version(held, event, data)
        case Stale() | Delayed():
            return Skip(event=event.id, reason="tells, and asks for nothing")
        case _ as never:
            assert_never(never)


def _plan_removed(held: Held | None, event: Event, data: Removed) -> Step:
    if held is None or held.state is State.REMOVED:
        return Skip(event=event.id, reason="not held")
    return Leave(dataset_id=data.dataset_id, event=event.id, reason=data.reason, at=event.timestamp)


def _plan_version(
    held: Held | None, event: Event, data: Updated | ResyncRequired | SchemaChanged
) -> Step:
    if held is not None and held.state is State.REMOVED:
        return Skip(event=event.id, reason="the dataset has left")
    version = held.version if held else None
    if version is not None and data.version <= version:
        return Skip(event=event.id, reason=f"version {version} is held")
    match data:
        case SchemaChanged():
            return _plan_schema(held, event, data)
        case ResyncRequired():
            return _load(event, data.version, data.reason)
        case Updated() if data.previous_version == version:
            return Apply(dataset_id=data.dataset_id, event=event.id, version=data.version)
        case Updated():
            return Load(
                dataset_id=data.dataset_id,
                event=event.id,
                version=None,
                reason=f"it follows version {data.previous_version}, held is {version or 'none'}",
                at_least=data.version,
            )


def _plan_schema(held: Held | None, event: Event, data: SchemaChanged) -> Step:
    if data.schema_change.level is Level.MAJOR:
        return Skip(event=event.id, reason="the load that follows makes the table anew")  # S-16
    if held is None or held.table is None:
        return Skip(event=event.id, reason="there is no table yet")
    added = tuple(data.schema_change.added)
    return Alter(dataset_id=data.dataset_id, event=event.id, added=added)


def _load(event: Event, version: int | None, reason: str) -> Load:
    return Load(
        dataset_id=event.data.dataset_id,
        event=event.id,
        version=version,
        reason=reason,
        at_least=version or 0,
    )


def plan_dataset(held: Held, events: Iterable[Event], *, takes: bool = True) -> list[Step]:
    """The steps for one dataset's events, as far as a load; a load replaces all before it.

    What follows a load is planned once it is known which version was loaded.
    """
    steps: list[Step] = []
    for event in events:
        step = plan_event(held, event, takes=takes)
        if isinstance(step, Load):
            return [step]
        steps.append(step)
        held = _foresee(held, step)
    return steps


def _foresee(held: Held, step: Apply | Alter | Leave | Await | Keep | Skip) -> Held:
    """What is held once a step is done, as far as the plan must know."""
    match step:
        case Apply():
            return replace(held, version=step.version, last_event=step.event)
        case Leave() | Await():
            return forgotten(held, step)
        case _:
            return held


def forgotten(held: Held, step: Leave | Await) -> Held:
    """The dataset without its version; a table that is kept stays named, with its schema (S-29)."""
    bare = Held(
        dataset_id=held.dataset_id,
        schema_version=held.schema_version,
        table=held.table,
        last_event=step.event,
    )
    if isinstance(step, Await):
        return bare
    return replace(bare, state=State.REMOVED, reason=step.reason, left_at=step.at)


def holding(held: Held, version: Version, *, table: str, event: EventId) -> Held:
    """The dataset with a version's rows in its table."""
    return Held(
        dataset_id=held.dataset_id,
        state=State.HELD,
        version=version.version,
        schema_version=version.schema_version,
        content_digest=version.content_digest,
        row_count=version.row_count,
        table=table,
        last_event=event,
    )


def goes_past_major(held: Held, version: Version) -> bool:
    """Whether a column that the version has not may be of an earlier schema's (S-16)."""
    if held.schema_version is None:
        return True
    earlier, later = map(SchemaVersion.parse, (held.schema_version, version.schema_version))
    return earlier.major != later.major


def is_idle(held: Held, events: Iterable[Event], *, takes: bool = True) -> bool:
    """Whether none of the events asks for anything more of this dataset."""
    return all(isinstance(plan_event(held, event, takes=takes), Skip) for event in events)


def group_events(events: Iterable[Event | UnknownEvent]) -> dict[DatasetId, list[Event]]:
    """A page's events by dataset, each in order; unknown types are passed over (S-50)."""
    groups: dict[DatasetId, list[Event]] = {}
    for event in events:
        if isinstance(event, Event):
            groups.setdefault(event.data.dataset_id, []).append(event)
    return groups


def plan_manifest(holdings: Holdings, manifest: Manifest) -> list[Step]:
    """The steps to what a manifest names; the place in the log is its cursor for each dataset.

    A dataset that is held already is known by its content, never by the number alone, which a
    restored server may have given twice.
    """
    named = {entry.dataset_id for entry in manifest.datasets}
    gone = [
        Leave(
            dataset_id=held.dataset_id,
            event=manifest.event_cursor,
            reason="not in the manifest",
            at=manifest.generated_at,
        )
        for held in holdings.datasets.values()
        if held.state is not State.REMOVED and held.dataset_id not in named
    ]
    chosen = [entry for entry in manifest.datasets if holdings.takes(entry.dataset_id)]
    return [*gone, *(_plan_entry(holdings, entry, manifest.event_cursor) for entry in chosen)]


def _plan_entry(holdings: Holdings, entry: ManifestEntry, cursor: EventId) -> Step:
    held = holdings.datasets.get(entry.dataset_id)
    if entry.version is None:
        return Await(dataset_id=entry.dataset_id, event=cursor)
    if held and held.state is State.HELD and _is_same(held, entry):
        return Keep(dataset_id=entry.dataset_id, event=cursor)
    return Load(dataset_id=entry.dataset_id, event=cursor, version=entry.version, reason="manifest")


def _is_same(held: Held, entry: ManifestEntry) -> bool:
    return (held.version, held.schema_version, held.content_digest) == (
        entry.version,
        entry.schema_version,
        entry.content_digest,
    )


def choose(
    holdings: Holdings, chosen: frozenset[DatasetId], *, delivered: Iterable[DatasetId]
) -> list[Held]:
    """Where another choice leaves the datasets that it concerns.

    The log may have gone past what was not chosen so far, so that is loaded from its current
    version; a table that is not chosen any more stays, and is not kept in step.
    """
    wanted = replace(holdings, chosen=chosen)
    outside = [
        replace(held, state=State.LEFT_OUT, reason="not chosen any more")
        for held in holdings.datasets.values()
        if held.follows and not wanted.takes(held.dataset_id)
    ]
    inside = [
        holdings.datasets.get(each) or Held(dataset_id=each)
        for each in delivered
        if wanted.takes(each)
    ]
    return outside + [
        replace(held, state=State.NEEDS_LOAD, reason="chosen now")
        for held in inside
        if held.dataset_id not in holdings.datasets or not held.follows
    ]
