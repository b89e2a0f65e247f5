"""What tells the rows of a paged source apart is remembered without filling the memory."""

import asyncio
import resource

import numpy as np
import pytest

from ploti.server.adapters.fetcher.asking import TryAgain
from ploti.server.adapters.fetcher.seen import Listed, Seen


def test_each_is_counted_once_whatever_its_length() -> None:
    async def story() -> list[int]:
        counts: list[int] = []
        with Seen() as seen:
            for ids in ([b"a", b"b", b"a"], [b"b", b"x" * 5000], [b"x" * 5000, b"x" * 5001], []):
                await seen.add(ids)
                counts.append(len(seen))
        return counts

    assert asyncio.run(story()) == [2, 3, 4, 4]


def test_millions_of_rows_take_no_more_memory_than_thousands() -> None:
    async def fill(rows: int) -> int:
        with Seen() as seen:
            for start in range(0, rows, 50_000):
                await seen.add([b"row-%012d" % n for n in range(start, start + 50_000)])
            assert len(seen) == rows
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    few = asyncio.run(fill(50_000))
    assert asyncio.run(fill(2_000_000)) - few < 64 << 10


def test_rows_of_a_list_are_missing_until_they_came() -> None:
    listed = Listed(np.array([3, 5, 9], np.int64))
    assert listed.take([9, 3])
    assert not listed.take([5, 9])
    assert (listed.came, listed.missing.tolist()) == (2, [5])
    assert not listed.take([5, 5])
    with pytest.raises(TryAgain, match="it gave a row that it had not"):
        listed.take([10])
    with pytest.raises(TryAgain, match="it gave a row that it had not"):
        Listed(np.array([], np.int64)).take([1])
