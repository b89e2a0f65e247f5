"""The clock in whole milliseconds, a moved one, and ids and secrets."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from ploti.errors import ConfigError
from ploti.model.wire import Instant
from ploti.server.adapters.clock import OffsetClock, ShiftedClock, ShiftedTimer, SystemClock
from ploti.server.adapters.ids import RandomIds


def test_the_clock_gives_moments_as_they_are_written_r015() -> None:
    now = SystemClock().now()
    assert Instant.parse(str(now)) == now


def test_the_clock_of_another_machine_is_this_ones_and_the_offset_as_it_is_now() -> None:
    offset = timedelta(minutes=10, microseconds=1234)
    clock = OffsetClock(SystemClock(), offset=lambda: offset)
    before = SystemClock().now()
    seen = clock.now()
    assert timedelta(minutes=10) <= seen - before < timedelta(minutes=15)
    assert Instant.parse(str(seen)) == seen
    offset = timedelta(hours=-1)
    assert clock.now() < before


def test_a_moved_clock_looks_at_its_file_each_time(tmp_path: Path) -> None:
    file = tmp_path / "seconds"
    file.write_text("0\n")
    clock = ShiftedClock(SystemClock(), file)
    before = clock.now()
    file.write_text("86400")
    assert timedelta(days=1) <= clock.now() - before < timedelta(days=1, minutes=5)
    for unreadable in ("tomorrow", "nan", "inf", "1e300", ""):
        file.write_text(unreadable)
        assert timedelta(days=1) <= clock.now() - before < timedelta(days=1, minutes=5)


def test_what_is_waited_for_is_called_off_when_the_file_says_that_so_long_has_passed(
    tmp_path: Path,
) -> None:
    file = tmp_path / "seconds"
    file.write_text("100")
    timer = ShiftedTimer(file)

    async def wait() -> None:
        async with timer.timeout(3600):
            file.write_text("3600")
            await asyncio.sleep(0.1)
            file.write_text("3700")
            await asyncio.Event().wait()

    async def story() -> float:
        began = timer.time()
        with pytest.raises(TimeoutError):
            await wait()
        return timer.time() - began

    assert 3600 <= asyncio.run(story()) < 7200


def test_what_ends_in_time_is_not_called_off(tmp_path: Path) -> None:
    file = tmp_path / "seconds"
    file.write_text("0")
    timer = ShiftedTimer(file)

    async def story() -> None:
        async with timer.timeout(3600):
            pass
        file.write_text("3600")
        await asyncio.sleep(0.1)

    asyncio.run(story())


@pytest.mark.parametrize("text", ["tomorrow", "nan", "inf", "1e300", "", None])
def test_a_clock_that_is_moved_by_no_number_is_refused(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "seconds"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match="PLOTI_TEST_CLOCK: "):
        ShiftedClock(SystemClock(), file)


def test_ids_have_their_prefix_and_never_repeat() -> None:
    ids = RandomIds()
    made = [ids.subscription() for _ in range(100)]
    assert len(set(made)) == 100
    assert all(one.startswith("sub_") and one.isascii() and one.islower() for one in made)
    assert ids.hold().startswith("hold_")
    assert ids.token("att_").startswith("att_")


def test_a_secret_has_256_bits() -> None:
    secret = RandomIds().secret("ploti_")
    assert secret.startswith("ploti_")
    assert len(secret.removeprefix("ploti_")) * 5 >= 256
