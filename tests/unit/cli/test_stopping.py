"""Signals: they stop the alarm and raise nothing, and a step that takes too long is cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ploti.cli.stopping import stopped_by_signals, stopped_while_waiting
from ploti.client.alarm import Alarm, Stopped


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_alarm_and_the_process_ends_with_its_status(number: int) -> None:
    alarm = Alarm()
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended:
        _wait_for(number, alarm)
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before


def _wait_for(number: int, alarm: Alarm) -> None:
    with stopped_by_signals(alarm):
        os.kill(os.getpid(), number)
        alarm.sleep(60)


def test_a_block_may_end_in_its_own_way_and_no_signal_breaks_it_off() -> None:
    alarm = Alarm()
    with stopped_by_signals(alarm):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped):
            alarm.sleep(60)
    assert alarm.stopped


def test_without_a_signal_nothing_is_stopped() -> None:
    alarm = Alarm()
    with stopped_by_signals(alarm):
        pass
    assert not alarm.stopped


TOO_LONG = """
import os, signal, sys, time
from ploti.cli.stopping import stopped_by_signals
from ploti.client.alarm import Alarm
with stopped_by_signals(Alarm(), grace=float(sys.argv[1])):
    for each in sys.argv[2:]:
        os.kill(os.getpid(), int(each))
        time.sleep(0.1)
    while True:
        time.sleep(60)
"""


@pytest.mark.parametrize(
    ("grace", "signals", "status"),
    [("0.1", [signal.SIGTERM], 143), ("600", [signal.SIGINT, signal.SIGINT], 130)],
)
def test_what_outlasts_the_grace_or_a_second_ctrl_c_is_cut_off(
    grace: str, signals: list[int], status: int
) -> None:
    numbers = [str(int(each)) for each in signals]
    done = subprocess.run(
        [sys.executable, "-c", TOO_LONG, grace, *numbers], timeout=120, check=False
    )
    assert done.returncode == status


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_only_waits_for_others(by: signal.Signals) -> None:
    with pytest.raises(SystemExit) as ended, stopped_while_waiting():
        signal.raise_signal(by)
    assert ended.value.code == 128 + by


def test_what_fails_on_the_way_out_is_not_told_in_place_of_ctrl_c() -> None:
    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ConnectionError("the server was stopped too") from error

    with pytest.raises(SystemExit) as ended, stopped_while_waiting():
        interrupted()
    assert ended.value.code == 130


def test_what_fails_without_a_signal_is_told() -> None:
    with pytest.raises(ConnectionError), stopped_while_waiting():
        raise ConnectionError
