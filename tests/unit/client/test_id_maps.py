"""Id maps put together."""

from __future__ import annotations

from ploti.client.id_maps import compose


def test_a_map_after_another_leads_to_where_both_lead_s24() -> None:
    first = {"a1": "a2", "b1": "b2"}
    then = {"a2": "a3", "c2": "c3"}
    assert compose(first, then) == {"a1": "a3", "b1": "b2", "c2": "c3"}


def test_an_id_that_comes_home_is_in_no_map() -> None:
    assert compose({"a1": "a2"}, {"a2": "a1"}) == {}


def test_nothing_after_or_before_a_map_leaves_it() -> None:
    assert compose({}, {"a": "b"}) == compose({"a": "b"}, {}) == {"a": "b"}
