"""Row groups of a snapshot: the base's borders, none tiny but the last."""

import pytest

from ploti.server.build.groups import FULL, group_sizes


@pytest.mark.parametrize(
    ("kept", "added", "sizes"),
    [
        ([], 0, []),
        ([], 5, [5]),
        ([], FULL, [FULL]),
        ([], FULL + 1, [FULL, 1]),
        ([FULL, 5], 0, [FULL, 5]),
        ([FULL, 5], 7, [FULL, 12]),
        ([FULL, 119_999], 3, [FULL, FULL, 2]),
        ([FULL, 40_000, FULL], 0, [160_000, FULL]),
        ([40_000, FULL], 0, [160_000]),
        ([40_000, 50_000, FULL], 0, [90_000, FULL]),
        ([FULL, 0, FULL], 0, [FULL, FULL]),
        ([0, 0], 4, [4]),
        ([160_000, 50_000, FULL], 0, [160_000, 170_000]),
    ],
)
def test_sizes_follow_from_what_is_left_and_what_comes(
    kept: list[int], added: int, sizes: list[int]
) -> None:
    assert group_sizes(kept, added=added) == sizes


def test_ninety_small_versions_leave_no_tiny_groups() -> None:
    sizes = group_sizes([], added=300_000)
    for _ in range(90):
        sizes = group_sizes([max(0, size - 100) for size in sizes], added=1_000)
    assert sum(sizes) > 300_000
    assert all(size >= FULL // 2 for size in sizes[:-1])
    assert max(sizes) <= FULL * 3 // 2
