"""The official Standard Webhooks package for Node accepts every delivery, none that is changed."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.fakes.lanes import A, B, Lanes, play
from tests.fakes.receiver import Answer, Post, Receiver, receiving

from ploti.server.adapters.clock import SystemClock

PACKAGE = Path(__file__).parents[1] / "data/npm"
INSTALL = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"]


class Signed(NamedTuple):
    """What the package is asked about."""

    secret: str
    post: Post

    def plain(self) -> dict[str, object]:
        body = base64.b64encode(self.post.body).decode()
        return {"secret": self.secret, "headers": self.post.headers, "body": body}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed as its lock says."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("the Debian package nodejs, or npm, is not installed")
    folder = tmp_path_factory.mktemp("npm") / "judge"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        INSTALL, cwd=folder, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def ask(package: Path, signed: list[Signed]) -> list[bool]:
    done = subprocess.run(
        ["node", "verify.mjs"],
        input=json.dumps([each.plain() for each in signed]),
        cwd=package,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    accepted: list[bool] = json.loads(done.stdout)
    return accepted


async def deliver(lanes: Lanes, receiver: Receiver) -> list[Signed]:
    """Deliveries, a retried one and a ping, signed at this moment, as the package wants it."""
    lanes.clock.moment = SystemClock().now()
    made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A, B))
    receiver.script(Answer(status=500), Answer())
    await lanes.release(A, B, A)
    await lanes.play_out()
    await lanes.ping(made.id)
    return [Signed(made.secret, post) for post in receiver.posts]


def test_r149_the_npm_package_accepts_every_delivery(tmp_path: Path, package: Path) -> None:
    async def story(lanes: Lanes) -> list[Signed]:
        async with receiving() as receiver:
            return await deliver(lanes, receiver)

    signed = play(tmp_path, story)
    assert len(signed) == 5
    assert ask(package, signed) == [True] * 5


def test_r149_the_npm_package_refuses_what_was_changed(tmp_path: Path, package: Path) -> None:
    async def story(lanes: Lanes) -> Signed:
        async with receiving() as receiver:
            return (await deliver(lanes, receiver))[0]

    whole = play(tmp_path, story)
    other = Signed(whole.secret, whole.post._replace(body=whole.post.body + b" "))
    renamed = {**whole.post.headers, "webhook-id": "msg_other"}
    later = {**whole.post.headers, "webhook-timestamp": "1"}
    changed = [
        other,
        Signed(whole.secret, whole.post._replace(headers=renamed)),
        Signed(whole.secret, whole.post._replace(headers=later)),
        Signed("whsec_" + base64.b64encode(b"k" * 32).decode(), whole.post),
    ]
    assert ask(package, [whole, *changed]) == [True, False, False, False, False]
