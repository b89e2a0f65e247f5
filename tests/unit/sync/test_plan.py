"""The rules of replay, one by one."""

from datetime import UTC

import pytest

from ploti.model.event import (
    Added,
    Delayed,
    Event,
    FeedData,
    HoldReason,
    Removed,
    RemovedReason,
    ResyncRequired,
    SchemaChanged,
    Stale,
    StaleReason,
    UnknownEvent,
    Updated,
)
from ploti.model.ids import DatasetId, EventId, SubscriptionId, event_id
from ploti.model.manifest import Manifest, ManifestEntry
from ploti.model.schema import AddedColumn, Level, SchemaChange
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import Instant
from ploti.sync.held import Held, Holdings, State
from ploti.sync.plan import (
    choose,
    group_events,
    plan_dataset,
    plan_event,
    plan_manifest,
)
from ploti.sync.steps import Alter, Apply, Await, Keep, Leave, Load, Skip, Step

D = DatasetId("ds_permits")
SUB = SubscriptionId("sub_test")
AT = Instant(2026, 10, 18, 6, tzinfo=UTC)
NOTHING = Counts(added=0, changed=0, removed=0)


def event(number: int, data: FeedData) -> Event:
    return Event(id=event_id(number), type=data.type, timestamp=AT, subscription_id=SUB, data=data)


def updated(version: int, previous: int) -> Updated:
    return Updated(
        dataset_id=D,
        version=version,
        previous_version=previous,
        schema_version="1.0",
        counts=NOTHING,
    )


def resync(version: int) -> ResyncRequired:
    return ResyncRequired(
        dataset_id=D,
        version=version,
        schema_version="1.0",
        reason=ResyncReason.PREVIOUS_UNAVAILABLE,
    )


def schema_changed(version: int, level: Level) -> SchemaChanged:
    change = SchemaChange(
        from_="1.0",
        to="1.1",
        level=level,
        added=[AddedColumn(name="floors", type="int64")],
        removed=[],
        nullable=[],
        described=[],
        retyped=[],
        key_columns=None,
        geometry=None,
    )
    return SchemaChanged(dataset_id=D, version=version, schema_version="1.1", schema_change=change)


def added(version: int | None) -> Added:
    return Added(dataset_id=D, version=version, schema_version="1.0" if version else None)


REMOVED = Removed(dataset_id=D, reason=RemovedReason.LEFT_COVERAGE)


def held(version: int | None = 3, state: State = State.HELD, last: int = 3) -> Held:
    return Held(
        dataset_id=D, state=state, version=version, table="permits", last_event=event_id(last)
    )


def plan(was: Held | None, data: FeedData, number: int = 9) -> Step:
    return plan_event(was, event(number, data))


def test_an_update_of_the_version_held_is_applied_and_of_any_other_loads_the_current() -> None:
    """R-116, R-117: numbers may skip, `previousVersion` counts."""
    assert plan(held(3), updated(7, 3)) == Apply(dataset_id=D, event=event_id(9), version=7)
    step = plan(held(3), updated(7, 5))
    assert isinstance(step, Load)
    assert (step.version, step.at_least) == (None, 7)
    assert isinstance(plan(None, updated(7, 5)), Load)


@pytest.mark.parametrize(
    "data", [updated(3, 2), resync(3), resync(2), schema_changed(3, Level.MINOR)]
)
def test_a_version_at_or_below_the_one_held_is_skipped(data: FeedData) -> None:
    """R-139. R-124."""
    assert isinstance(plan(held(3), data), Skip)


def test_a_resync_loads_the_version_that_it_names_whatever_is_held() -> None:
    """R-119."""
    for was in (None, held(3), held(None, State.WAITING)):
        step = plan(was, resync(7))
        assert isinstance(step, Load)
        assert step.version == 7


def test_an_added_loads_what_it_names_and_one_without_a_version_waits() -> None:
    """R-030, R-031. R-122."""
    step = plan(held(None, State.REMOVED), added(5))
    assert isinstance(step, Load)
    assert step.version == 5
    assert plan(None, added(None)) == Await(dataset_id=D, event=event_id(9))


def test_a_minor_schema_change_alters_and_a_major_one_waits_for_its_load() -> None:
    """R-140, S-16."""
    step = plan(held(3), schema_changed(4, Level.MINOR))
    assert step == Alter(
        dataset_id=D, event=event_id(9), added=(AddedColumn(name="floors", type="int64"),)
    )
    assert isinstance(plan(held(3), schema_changed(4, Level.MAJOR)), Skip)


def test_an_altered_table_still_holds_the_version_before() -> None:
    """R-138, R-140: the update that follows is applied to it."""
    steps = plan_dataset(
        held(3), [event(8, schema_changed(4, Level.MINOR)), event(9, updated(4, 3))]
    )
    assert [type(step) for step in steps] == [Alter, Apply]


def test_a_removed_is_acted_on_in_every_state_and_once() -> None:
    """S-29."""
    for state in set(State) - {State.REMOVED}:
        step = plan(held(3, state), REMOVED)
        assert step == Leave(dataset_id=D, event=event_id(9), reason="left_coverage", at=AT)
    assert isinstance(plan(held(3, State.REMOVED), REMOVED), Skip)
    assert isinstance(plan(None, REMOVED), Skip)


@pytest.mark.parametrize("state", [State.NEEDS_LOAD, State.LEAVING])
@pytest.mark.parametrize("data", [updated(4, 3), resync(4), added(4)])
def test_events_of_a_dataset_that_cannot_go_on_are_skipped(state: State, data: FeedData) -> None:
    """R-141, S-37."""
    assert isinstance(plan(held(3, state), data), Skip)


def test_an_event_acted_on_is_never_acted_on_again() -> None:
    """R-143, S-36: not even an `added` or a `removed`, of which the replay rules say nothing."""
    for data in (added(1), REMOVED, resync(9), updated(4, 3)):
        assert isinstance(plan(held(3, last=9), data, number=9), Skip)


def test_events_that_only_tell_are_skipped_and_unknown_types_passed_over() -> None:
    """S-50. R-085: during a hold nothing needs doing."""
    stale = Stale(dataset_id=D, reason=StaleReason.CHECK_OVERDUE, last_checked_at=None)
    delayed = Delayed(dataset_id=D, version=3, reason=HoldReason.DATA_CHECK, since=AT)
    assert isinstance(plan(held(3), stale), Skip)
    assert isinstance(plan(held(3), delayed), Skip)
    unknown = UnknownEvent(
        id=event_id(1), type="feed.new", timestamp=AT, subscription_id=SUB, data={}
    )
    assert group_events([unknown, event(2, stale)]) == {D: [event(2, stale)]}


def test_what_is_not_chosen_is_skipped() -> None:
    assert isinstance(plan_event(None, event(9, added(1)), takes=False), Skip)
    assert isinstance(plan_event(held(3, State.LEFT_OUT), event(9, updated(4, 3))), Skip)


def test_a_load_replaces_the_steps_before_it() -> None:
    steps = plan_dataset(held(3), [event(8, updated(4, 3)), event(9, resync(5))])
    assert [type(step) for step in steps] == [Load]


def test_versions_are_applied_in_order() -> None:
    """R-115."""
    steps = plan_dataset(held(3), [event(8, updated(4, 3)), event(9, updated(6, 4))])
    assert [step.version for step in steps if isinstance(step, Apply)] == [4, 6]


def entry(version: int | None, digest: str = "d1:a") -> ManifestEntry:
    return ManifestEntry(
        dataset_id=D,
        version=version,
        schema_version="1.0",
        row_count=1,
        content_digest=digest,
    )


def manifest(*entries: ManifestEntry) -> Manifest:
    return Manifest(
        subscription_id=SUB, event_cursor=event_id(20), generated_at=AT, datasets=[*entries]
    )


def holdings(*lines: Held) -> Holdings:
    return Holdings(cursor=EventId("evt_000000000001"), datasets={x.dataset_id: x for x in lines})


def test_a_reload_compares_the_content_and_never_the_number_alone() -> None:
    """A restored server may have given the number twice."""
    same = Held(
        dataset_id=D,
        state=State.HELD,
        version=4,
        schema_version="1.0",
        content_digest="d1:a",
        last_event=event_id(90),
    )
    assert plan_manifest(holdings(same), manifest(entry(4))) == [
        Keep(dataset_id=D, event=event_id(20))
    ]
    (step,) = plan_manifest(holdings(same), manifest(entry(4, "d1:b")))
    assert isinstance(step, Load)
    assert step.version == 4


def test_a_dataset_that_the_manifest_does_not_name_has_left() -> None:
    """S-29."""
    assert plan_manifest(holdings(held(3)), manifest()) == [
        Leave(dataset_id=D, event=event_id(20), reason="not in the manifest", at=AT)
    ]
    assert plan_manifest(holdings(held(3, State.REMOVED)), manifest()) == []
    assert plan_manifest(Holdings(), manifest(entry(None))) == [
        Await(dataset_id=D, event=event_id(20))
    ]


def test_another_choice_loads_what_is_new_and_lets_go_of_what_is_out() -> None:
    other = DatasetId("ds_other")
    was = holdings(held(3))
    (out, new) = choose(was, frozenset({other}), delivered=[D, other])
    assert (out.dataset_id, out.state, out.version) == (D, State.LEFT_OUT, 3)
    assert (new.dataset_id, new.state) == (other, State.NEEDS_LOAD)
    (back,) = choose(holdings(out), frozenset(), delivered=[D])
    assert (back.dataset_id, back.state) == (D, State.NEEDS_LOAD)
