"""Coordinate reference systems: what is known of the usual one without asking PROJ."""

from ploti.server.sources import reference_systems


def test_what_is_known_of_degrees_is_what_proj_says_of_them() -> None:
    known = reference_systems._known("EPSG:4326")
    assert known is not None
    assert known == reference_systems._of_proj("EPSG:4326")


def test_another_system_in_degrees_has_the_same_ends_and_a_projected_one_none() -> None:
    assert reference_systems.turns("EPSG:4258") == reference_systems.turns("EPSG:4326")
    assert reference_systems.turns("EPSG:2236") is None
