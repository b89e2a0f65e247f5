"""Metrics: what the server did and how things stand, for staff alone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.fakes.lanes import A, B, Lanes, play
from tests.fakes.receiver import Answer, receiving
from tests.integration.running import Running, problem, running

from ploti.server.ports.measures import Measures

DOCUMENTED = Path(__file__).parents[2] / "docs/howto/watch-a-server.md"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as server:
        yield server


def samples(text: str) -> dict[str, float]:
    """Every sample by its name and labels, as a person would write it."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(sample.labels.values())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_metrics_are_the_staffs(api: Running) -> None:
    problem(api.get("/metrics"), 403, "forbidden")
    problem(api.get("/metrics", key=None), 401, "unauthenticated")
    answer = api.staff("GET", "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(answer.text)
    assert found["ploti_delivery_attempts_total{delivered}"] == 0
    assert found["ploti_checks_total{released}"] == 0
    assert found["ploti_delivery_oldest_undelivered_seconds"] == 0
    assert found["process_resident_memory_bytes"] > 0


def test_every_metric_is_documented(api: Running) -> None:
    families = text_string_to_metric_families(api.staff("GET", "/metrics").text)
    ours = {family.name for family in families if family.name.startswith("ploti_")}
    ours -= {name for name in ours if name.endswith("_created")}  # the library's, when each began
    told = set(re.findall(r"`(ploti_[a-z_]+)`", DOCUMENTED.read_text()))
    assert {name.removesuffix("_total") for name in told} == ours


async def _measure(lanes: Lanes) -> Measures:
    return await lanes.store.read(lambda tx: tx.overview.measures(now=lanes.clock.now()))


def test_what_webhooks_are_behind_waits_and_is_off_is_told(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(A, B)
            gone = await lanes.hook(f"{receiver.url}/gone", subscription)
            await lanes.hook(f"{receiver.url}/h", subscription)
            receiver.script(Answer(status=500), path="/h")
            receiver.script(Answer(status=410), path="/gone")
            began = lanes.clock.moment
            await lanes.release(A, B)
            before = await _measure(lanes)
            assert before.events_behind == 4
            assert before.undelivered_since == began
            assert (before.waiting, before.webhooks) == (0, {"on": 2})
            await lanes.drain()
            lanes.clock.forward(seconds=20)
            after = await _measure(lanes)
            assert after.webhooks == {"gone": 1, "on": 1}
            assert after.waiting == 2
            assert after.undelivered_since == began
            assert (await lanes.show(gone.id)).state == "off"
            found = samples(lanes.parts.meters.text(after, now=lanes.clock.now()).decode())
            assert found["ploti_delivery_attempts_total{gone}"] == 2  # both under way at once
            assert found["ploti_delivery_attempts_total{again}"] == 2
            assert found["ploti_delivery_attempt_seconds_count"] == 4
            assert found["ploti_webhooks{gone}"] == 1
            assert found["ploti_delivery_oldest_undelivered_seconds"] == 20

    play(tmp_path, story)
