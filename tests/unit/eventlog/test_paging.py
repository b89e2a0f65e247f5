"""Where pages of a log begin and end, and which cursors are refused."""

from collections.abc import Sequence

import pytest

from ploti.errors import Expired, InvalidInput
from ploti.model.ids import START, event_id, event_ids
from ploti.server.eventlog.paging import WINDOW, Extent, next_position, position, reach

EMPTY = Extent(first=1, last=0)
WHOLE = Extent(first=1, last=9)
PRUNED = Extent(first=4, last=9)
GONE = Extent(first=10, last=9)


@pytest.mark.parametrize(
    ("cursor", "extent", "start"),
    [
        (None, EMPTY, 0),
        (START, EMPTY, 0),
        (None, WHOLE, 0),
        (START, WHOLE, 0),
        (event_id(9), WHOLE, 9),
        (event_id(3), PRUNED, 3),
        (event_id(9), GONE, 9),
    ],
)
def test_a_page_begins_after_its_cursor_r129_s38_s39(
    cursor: str | None, extent: Extent, start: int
) -> None:
    assert position(cursor, extent) == start


@pytest.mark.parametrize(
    ("cursor", "extent"),
    [(None, PRUNED), (START, PRUNED), (event_id(2), PRUNED), (None, GONE), (event_id(8), GONE)],
)
def test_what_was_pruned_is_expired_and_says_to_read_the_manifest_r134_r135(
    cursor: str | None, extent: Extent
) -> None:
    with pytest.raises(Expired, match="manifest"):
        position(cursor, extent)


@pytest.mark.parametrize(
    ("cursor", "extent"),
    [
        (event_id(1), EMPTY),
        (event_id(10), WHOLE),
        (event_id(10), GONE),
        ("", WHOLE),
        ("9", WHOLE),
        ("evt_9", WHOLE),
        ("evt_00000000000\u0661", WHOLE),
        ("evt_000000000001 ", WHOLE),
    ],
)
def test_a_cursor_that_the_log_never_gave_is_invalid_r136(cursor: str, extent: Extent) -> None:
    with pytest.raises(InvalidInput) as refused:
        position(cursor, extent)
    assert [fault.field for fault in refused.value.errors] == ["cursor"]


def test_a_page_looks_at_a_window_and_not_past_the_end() -> None:
    assert reach(0, WHOLE) == 9
    assert reach(7, Extent(first=1, last=90_000)) == 7 + WINDOW


def test_the_next_cursor_is_the_last_position_looked_at_s40_r132() -> None:
    assert next_position(reached=9, kept=[], limit=2) == 9
    assert next_position(reached=9, kept=[4], limit=2) == 9
    assert next_position(reached=9, kept=[4, 5], limit=2) == 5


@pytest.mark.parametrize(
    "numbers",
    [
        range(1, 101),
        range(950, 1000),
        range(950, 1001),
        range(1000, 2000),
        range(999, 3001),
        range(123_456_789_000, 123_456_789_010),
        range(2, 9, 3),
        (1, 5, 1000),
        (7,),
    ],
)
def test_the_ids_of_many_events_are_those_of_each(numbers: Sequence[int]) -> None:
    start, ends = event_ids(numbers)
    assert [start + end for end in ends] == [event_id(number) for number in numbers]
