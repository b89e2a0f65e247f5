"""What comes of receivers' answers, and when: a real server, real receivers, its clock moved.

The table of answers (delivery, 'Delivering') and the cases of group E, read back over REST. Each
test has a subscription, datasets and webhooks of its own; all share a server, whose clock only ever
goes forward.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.cases.cases import case
from tests.e2e.serving import Server, served, until
from tests.fakes.receiver import OK, Answer, Receiver, receiver_beside

STEPS = (30, 300, 2700, 10800, 36000, 79200)
SPREADS = (30, 30, 270, 1080, 3600, 7920)
"""Seconds before each retry, and what chance adds to them at most."""

FAILS = Answer(status=500)
YEARS = "99999999999"

_NUMBERS = itertools.count()


class Planned(NamedTuple):
    """A delivery as it was shown between two attempts, and the server's time just after."""

    delivery: dict[str, Any]
    seen_at: datetime


class Lane:
    """A webhook with its subscription, and what the receiver answers at the path `path`."""

    def __init__(self, scene: Scene, path: str, subscription: str) -> None:
        self._scene = scene
        self.path = path
        body = {"url": f"{scene.receiver.url}{path}", "subscriptionId": subscription}
        made = scene.server.request("POST", "/v1/webhooks", json=body)
        assert made.status_code == 201, made.text
        self.id: str = made.json()["id"]

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = self._scene.server.get(f"/v1/webhooks/{self.id}").json()
        return shown

    def deliveries(self) -> list[dict[str, Any]]:
        """What was sent or waits, oldest first."""
        path = f"/v1/webhooks/{self.id}/deliveries?limit=500"
        found: list[dict[str, Any]] = self._scene.server.get(path).json()["deliveries"]
        return found[::-1]

    def tried(self, number: int, *, of: int = 0) -> Planned:
        """Delivery `of` once its attempt of this number is recorded."""

        def found() -> dict[str, Any] | None:
            shown = self.deliveries()
            is_there = len(shown) > of and len(shown[of]["attempts"]) >= number
            return shown[of] if is_there else None

        return Planned(until(found), self._scene.now())

    def play_out(self, *, of: int = 0) -> list[Planned]:
        """Move the clock from try to try until delivery `of` has ended."""
        seen = [self.tried(1, of=of)]
        while seen[-1].delivery["nextAttemptAt"]:
            self._scene.forward(seen[-1].delivery["nextAttemptAt"])
            seen.append(self.tried(len(seen) + 1, of=of))
        return seen


class Scene:
    """A subscription with webhooks, on a server that has others."""

    def __init__(self, server: Server, receiver: Receiver, clock: Path, name: str) -> None:
        self.server, self.receiver, self.name = server, receiver, name
        self._clock = clock
        self._lanes: list[Lane] = []
        self._joined: set[str] = set()
        self._declared: set[str] = set()
        self.declare("zero")
        self.path = server.subscribe(self.dataset("zero"))
        self._bell = server.subscribe(self.dataset("zero"))

    def dataset(self, name: str) -> str:
        return f"ds_{self.name}_{name}"

    def declare(self, *names: str) -> None:
        for name in {*names} - self._declared:
            self.server.declare(self.dataset(name), key=["id"])
            self._declared.add(name)

    def lane(self, *answers: Answer, path: str = "") -> Lane:
        """A webhook that begins with what comes next, and its receiver's answers in turn."""
        path = f"/{self.name}{path}"
        self.receiver.script(*answers, path=path)
        self._lanes.append(Lane(self, path, self.path.rpartition("/")[2]))
        return self._lanes[-1]

    def change(self, *names: str) -> None:
        """An event of each dataset: it joins the subscription, or leaves it if it is in it."""
        self.declare(*names)
        self._joined ^= {*names}
        self._select(self.path, self._joined)

    def _select(self, path: str, names: set[str]) -> None:
        datasets = [self.dataset(name) for name in ("zero", *sorted(names))]
        changed = self.server.request("PATCH", path, json={"datasets": datasets})
        assert changed.status_code == 200, changed.text

    def push(self, name: str, content: str) -> None:
        outcome = self.server.push(self.dataset(name), content.encode())
        assert outcome["outcome"] == "released", outcome

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.get(f"{self.path}/events?limit=500").json()[
            "events"
        ]
        return found

    def now(self) -> datetime:
        """The server's time."""
        return datetime.now(UTC) + timedelta(seconds=self._moved())

    def forward(self, to: str | float) -> None:
        """Move the server's clock to a moment or by seconds, and have it look what is due."""
        by = to if isinstance(to, float) else (moment(to) - self.now()).total_seconds()
        self._clock.write_text(str(self._moved() + max(by, 0.0)))
        self.ring()

    def ring(self) -> None:
        """An event of another log: the server looks at once, as it does by itself each second."""
        self.declare("bell")
        shown = self.server.get(self._bell).json()["datasets"]
        self._select(self._bell, set() if self.dataset("bell") in shown else {"bell"})

    def end(self) -> None:
        for lane in self._lanes:
            assert self.server.request("DELETE", f"/v1/webhooks/{lane.id}").status_code == 204

    def _moved(self) -> float:
        return float(self._clock.read_text())


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ended_at(attempt: dict[str, Any]) -> datetime:
    """About when an attempt ended: its milliseconds are rounded."""
    return moment(attempt["startedAt"]) + timedelta(milliseconds=attempt["ms"] - 2)


def check_wait(planned: Planned, *, least: float, most: float) -> None:
    """The next try is so many seconds after the last one."""
    due = moment(planned.delivery["nextAttemptAt"])
    assert ended_at(planned.delivery["attempts"][-1]) + timedelta(seconds=least) <= due
    assert due <= planned.seen_at + timedelta(seconds=most)


def check_schedule(seen: list[Planned]) -> None:
    """Seven tries at the stated waits, none of them early, and then it is given up (R-153)."""
    assert [len(each.delivery["attempts"]) for each in seen] == [1, 2, 3, 4, 5, 6, 7]
    for before, step, spread in zip(seen, STEPS, SPREADS, strict=False):
        check_wait(before, least=step, most=step + spread)
    for before, after in itertools.pairwise(seen):
        began = moment(after.delivery["attempts"][-1]["startedAt"])
        assert moment(before.delivery["nextAttemptAt"]) <= began
    assert [each.delivery["state"] for each in seen] == ["waiting"] * 6 + ["failed"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Receiver, Path]]:
    folder = tmp_path_factory.mktemp("receivers")
    clock = folder / "clock"
    clock.write_text("0")
    settings = {"PLOTI_ALLOW_NETWORKS": "127.0.0.0/8", "PLOTI_TEST_CLOCK": str(clock)}
    with receiver_beside() as receiver, served(folder, **settings) as server:
        yield server, receiver, clock


@pytest.fixture
def scene(stage: tuple[Server, Receiver, Path], request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(*stage, name=f"t{abs(hash(request.node.name)):x}")
    yield made
    made.end()


class Told(NamedTuple):
    """What the API is to tell of a first attempt, and the least and most seconds to the next."""

    state: str
    status: int | None = None
    error: str | None = None
    location: str | None = None
    response: str | None = None
    waits: tuple[int, int] | None = None
    ms: tuple[int, int] = (0, 15_000)


SOON = (30, 60)
FIRST_ANSWERS = {
    "ok": (OK, Told("delivered", 200)),
    "no content": (Answer(status=204), Told("delivered", 204)),
    "says something": (Answer(body=b"thanks"), Told("delivered", 200, response="thanks")),
    "huge": (Answer(body=b"x" * 5_000_000), Told("delivered", 200, response="x" * 2048)),
    "huge refusal": (
        Answer(status=500, body=b"x" * 5_000_000),
        Told("waiting", 500, response="x" * 2048, waits=SOON),
    ),
    "resetting": (
        Answer(resets=True),
        Told("waiting", error="connection: broken off before an answer", waits=SOON),
    ),
    "redirecting": (
        Answer(status=307, headers={"Location": "/signin"}),
        Told("waiting", 307, location="/signin", waits=SOON),
    ),
    "not found": (Answer(status=404), Told("waiting", 404, waits=SOON)),
    "too large": (Answer(status=413), Told("failed", 413)),
    "gone": (Answer(status=410), Told("cancelled", 410)),
    "too many": (Answer(status=429), Told("waiting", 429, waits=SOON)),
    "too many, for an hour": (
        Answer(status=429, headers={"Retry-After": "3600"}),
        Told("waiting", 429, waits=(3600, 3630)),
    ),
    "too many, for ten seconds": (
        Answer(status=429, headers={"Retry-After": "10"}),
        Told("waiting", 429, waits=SOON),
    ),
    "unavailable, for years": (
        Answer(status=503, headers={"Retry-After": YEARS}),
        Told("waiting", 503, waits=(3600, 3630)),
    ),
    "an error that asks for an hour": (
        Answer(status=500, headers={"Retry-After": "3600"}),
        Told("waiting", 500, waits=SOON),
    ),
}


@pytest.mark.parametrize("name", FIRST_ANSWERS)
def test_an_answer_has_its_outcome_at_its_time(scene: Scene, name: str) -> None:
    """R-152 to R-155, S-52."""
    answer, told = FIRST_ANSWERS[name]
    lane = scene.lane(answer, OK)
    scene.change("a")
    check_outcome(scene, lane, told)


SLOW_ANSWERS = {
    "slow": (
        Answer(after=40),
        15.0,
        Told("waiting", error="timeout: no answer within 15 seconds", waits=SOON, ms=(15, 30)),
    ),
    "dripping a head": (
        Answer(drips_head=True),
        15.0,
        Told("waiting", error="timeout: no answer within 15 seconds", waits=SOON, ms=(15, 30)),
    ),
    "dripping a body": (
        Answer(body=b"ok", drips=True),
        2.0,
        Told("delivered", 200, response="ok", ms=(2, 15)),
    ),
    "dripping a refusal": (
        Answer(status=500, body=b"no", drips=True),
        2.0,
        Told("waiting", 500, response="no", waits=SOON, ms=(2, 15)),
    ),
}


@pytest.mark.parametrize("name", SLOW_ANSWERS)
def test_an_answer_that_does_not_come_is_waited_for_15_seconds_and_its_body_for_two(
    scene: Scene, name: str
) -> None:
    """E04: by the injected clock, which has the connections' time too."""
    answer, seconds, told = SLOW_ANSWERS[name]
    lane = scene.lane(answer, OK)
    scene.change("a")
    until(lambda: scene.receiver.to(lane.path))
    assert lane.deliveries() == []
    scene.forward(seconds)
    check_outcome(scene, lane, told)


def check_outcome(scene: Scene, lane: Lane, told: Told) -> None:
    """What is told of the first attempt; then of the second, which is made at its time."""
    planned = lane.tried(1)
    (attempt,) = planned.delivery["attempts"]
    assert planned.delivery["state"] == told.state
    assert told == Told(
        planned.delivery["state"],
        attempt["status"],
        attempt["error"],
        attempt["location"],
        attempt["response"] and attempt["response"][: len(told.response or "")],
        waits=told.waits,
        ms=told.ms,
    )
    assert attempt["address"] == "127.0.0.1"
    least, most = told.ms
    assert least * 1000 <= attempt["ms"] < most * 1000
    assert (planned.delivery["nextAttemptAt"] is None) == (told.waits is None)
    assert (planned.delivery["endedAt"] is None) == (told.waits is not None)
    if told.waits:
        check_wait(planned, least=told.waits[0], most=told.waits[1])
        _, again = lane.play_out()
        first, second = again.delivery["attempts"]
        assert again.delivery["state"] == "delivered"
        assert moment(planned.delivery["nextAttemptAt"]) <= moment(second["startedAt"])
        posts = scene.receiver.to(lane.path)
        assert [post.id for post in posts] == [planned.delivery["id"]] * 2
        assert len({post.headers["webhook-timestamp"] for post in posts}) == 2  # E02: signed anew
        assert first == attempt
    shown = lane.show()
    assert (shown["state"], shown["offReason"]) == (
        ("off", "gone") if told.state == "cancelled" else ("on", None)
    )


def test_e03_receivers_that_fail_for_ever_are_tried_seven_times_and_never_in_one_burst(
    scene: Scene,
) -> None:
    """R-153: of the case's 1,000 receivers a few, since chance does the same to each."""
    lanes = [scene.lane(FAILS, path=f"/{number}") for number in range(12)]
    scene.change("a")
    seen = [[lane.tried(1)] for lane in lanes]
    for spread in SPREADS:
        due = sorted(each[-1].delivery["nextAttemptAt"] for each in seen)
        assert moment(due[-1]) - moment(due[0]) > timedelta(seconds=spread / 30)
        scene.forward(due[-1])
        for lane, each in zip(lanes, seen, strict=True):
            each.append(lane.tried(len(each) + 1))
    for each in seen:
        check_schedule(each)
        attempts = [moment(x["startedAt"]) for x in each[-1].delivery["attempts"]]
        assert timedelta(hours=24) < attempts[-1] - attempts[0] < timedelta(hours=48)
        gaps = [after - before for before, after in itertools.pairwise(attempts)]
        assert gaps == sorted(gaps)
        assert each[-1].delivery["eventId"] in [event["id"] for event in scene.events()]


def test_e04_a_slow_receiver_holds_up_neither_the_others_nor_a_build(scene: Scene) -> None:
    names = [str(number) for number in range(50)]
    slow = scene.lane(Answer(after=40), path="/slow")
    quick = [scene.lane(OK, path=f"/{number}") for number in range(5)]
    scene.change(*names)
    for lane in quick:
        until(lambda lane=lane: [x["state"] for x in lane.deliveries()] == ["delivered"] * 50)
    scene.push("zero", "id,kind\n1,a\n")
    until(lambda: scene.receiver.to(slow.path))
    assert [each for each in slow.deliveries() if each["attempts"]] == []
    scene.forward(15.0)
    planned = slow.tried(1)
    (tried,) = planned.delivery["attempts"]
    assert tried["error"] == "timeout: no answer within 15 seconds"
    check_wait(planned, least=30, most=60)
    for lane in quick:
        for each in lane.deliveries()[:50]:
            assert moment(each["endedAt"]) < ended_at(tried)


@pytest.mark.parametrize("told", case("E05")["given"]["receivers"], ids=lambda each: each["name"])
def test_e05_a_redirect_is_retried_by_the_schedule_and_never_followed(
    scene: Scene, told: dict[str, Any]
) -> None:
    status = told["sequence"][0]["status"]
    elsewhere = f"{scene.receiver.url}/{scene.name}/signin"
    lane = scene.lane(Answer(status=status, headers={"Location": elsewhere}))
    scene.change("a")
    seen = lane.play_out()
    check_schedule(seen)
    for attempt in seen[-1].delivery["attempts"]:
        assert (attempt["status"], attempt["location"]) == (status, elsewhere)
    assert scene.receiver.to(f"/{scene.name}/signin") == []


def test_e08_one_event_that_is_always_refused_turns_nothing_off(scene: Scene) -> None:
    lane = scene.lane()
    bad = f'"evt_{len(scene.events()) + 10:012d}"'.encode()
    scene.receiver.rules[lane.path] = lambda post: Answer(status=400) if bad in post.body else OK
    for _ in range(40):
        scene.change("a")
    check_schedule(lane.play_out(of=9))
    until(lambda: [x["state"] for x in lane.deliveries()].count("delivered") == 39)
    shown = lane.show()
    assert (shown["state"], shown["failingSince"], shown["eventsBehind"]) == ("on", None, 0)
    told = [post.event["id"] for post in scene.receiver.to(lane.path)]
    assert list(dict.fromkeys(told)) == [event["id"] for event in scene.events()[1:]]  # S-53


def test_e10_an_event_that_is_too_large_is_given_up_and_the_next_is_sent(scene: Scene) -> None:
    """R-154."""
    lane = scene.lane(Answer(status=413), OK)
    scene.change("a")
    scene.change("a")
    following = lane.tried(1, of=1).delivery
    given_up, _ = lane.deliveries()
    assert (given_up["state"], [x["status"] for x in given_up["attempts"]]) == ("failed", [413])
    assert (given_up["nextAttemptAt"], following["state"]) == (None, "delivered")
    assert lane.show()["state"] == "on"


def test_e53_the_hour_that_is_asked_for_is_waited_and_then_the_plain_step(scene: Scene) -> None:
    (given,) = case("E53")["given"]["receivers"]
    answers = [Answer(status=x["status"], headers=x.get("headers", {})) for x in given["sequence"]]
    lane = scene.lane(*answers)
    scene.change("a")
    asked, unavailable, delivered = lane.play_out()
    check_wait(asked, least=3600, most=3630)
    check_wait(unavailable, least=300, most=330)
    assert delivered.delivery["state"] == "delivered"
    assert [x["status"] for x in delivered.delivery["attempts"]] == [429, 503, 200]


def test_s52_the_whole_lane_pauses_for_the_hour_that_is_asked_for(scene: Scene) -> None:
    lane = scene.lane(Answer(status=429, headers={"Retry-After": "3600"}), OK)
    scene.change("a")
    asked = lane.tried(1)
    scene.change("b")
    scene.forward(3500.0)
    scene.change("c")
    scene.forward(asked.delivery["nextAttemptAt"])
    until(lambda: [x["state"] for x in lane.deliveries()] == ["delivered"] * 3)
    hour = ended_at(asked.delivery["attempts"][0]) + timedelta(hours=1)
    _, *after = sorted(
        moment(attempt["startedAt"]) for each in lane.deliveries() for attempt in each["attempts"]
    )
    assert len(after) == 3
    assert hour <= after[0]


def test_r155_410_ends_a_webhook_with_all_that_waits(scene: Scene) -> None:
    lane = scene.lane(FAILS, FAILS, Answer(status=410), OK)
    scene.change("a", "b")
    scene.change("a")
    seen = until(lambda: lane.deliveries()[2:] and lane.deliveries())
    waiting = lane.tried(1)
    scene.forward(waiting.delivery["nextAttemptAt"])
    until(lambda: lane.show()["state"] == "off")
    shown = lane.show()
    assert (shown["offReason"], moment(shown["offAt"]) <= scene.now()) == ("gone", True)
    assert [each["state"] for each in lane.deliveries()] == ["cancelled"] * 3
    assert len(seen) == 3
    posts = len(scene.receiver.to(lane.path))
    scene.change("a")
    scene.forward(86_400.0)
    assert len(scene.receiver.to(lane.path)) == posts


def test_failures_in_a_row_widen_the_pause_between_first_attempts(scene: Scene) -> None:
    lane = scene.lane(FAILS)
    scene.change("a")
    lane.tried(1)
    scene.change("b", "c", "d", "e", "f")
    pauses = [0, 1, 2, 4, 8]
    for number, pause in enumerate(pauses):
        lane.tried(1, of=number)
        scene.forward(pause + 0.01)
    lane.tried(1, of=len(pauses))
    tries = [each["attempts"][0] for each in lane.deliveries()]
    for (before, after), pause in zip(itertools.pairwise(tries), pauses, strict=True):
        assert ended_at(before) + timedelta(seconds=pause) <= moment(after["startedAt"])


def test_five_days_without_success_and_three_given_up_turn_a_webhook_off(scene: Scene) -> None:
    lane = scene.lane(FAILS)
    for _ in range(5):
        scene.change("a")
    for number in range(5):
        if lane.show()["state"] == "off":
            break
        lane.play_out(of=number)
    shown = lane.show()
    assert (shown["state"], shown["offReason"]) == ("off", "failing")
    failing = moment(shown["offAt"]) - moment(shown["failingSince"])
    assert failing >= timedelta(days=5)
    states = [each["state"] for each in lane.deliveries()]
    assert states == ["failed"] * 3 + ["cancelled"] * 2
    last = max(x["startedAt"] for each in lane.deliveries() for x in each["attempts"])
    assert moment(last) <= moment(shown["offAt"])
