"""Webhooks of a real server: its worker and its commands, killed and started again."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from standardwebhooks import Webhook as Official
from tests.e2e.serving import Server, environment, served, until
from tests.fakes import forked
from tests.fakes.receiver import Answer, receiver_beside

import ploti

LOOPBACK = "127.0.0.0/8"
FIRST, SECOND = b"id,kind\n1,a\n", b"id,kind\n1,b\n2,c\n"


def hook(server: Server, url: str, **more: Any) -> dict[str, Any]:
    server.declare("ds_a", key=["id"])
    subscription = server.subscribe("ds_a").rpartition("/")[2]
    body = {"url": url, "subscriptionId": subscription, **more}
    made = server.request("POST", "/v1/webhooks", json=body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def deliveries(server: Server, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    page = server.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()
    found: list[dict[str, Any]] = page["deliveries"]
    return found[::-1]


def test_r148_r149_a_release_reaches_the_receiver_signed_and_as_the_log_has_it(
    tmp_path: Path,
) -> None:
    with receiver_beside() as receiver, served(tmp_path, PLOTI_ALLOW_NETWORKS=LOOPBACK) as server:
        made = hook(server, f"{receiver.url}/h")
        for content in (FIRST, SECOND):
            assert server.push("ds_a", content)["outcome"] == "released"
        until(lambda: len(receiver.posts) == 2)
        log = server.get(f"/v1/feeds/subscriptions/{made['subscriptionId']}/events").content
        for post in receiver.posts:
            assert post.body in log
            assert Official(made["secret"]).verify(post.body, post.headers) == post.event
            assert ploti.webhooks.verify(post.body, post.headers, made["secret"])
        sent = [post.event["data"]["version"] for post in receiver.posts]
        assert sent == [1, 2]


def test_r156_r157_killed_while_it_sends_it_repeats_the_same_delivery(tmp_path: Path) -> None:
    with receiver_beside() as receiver:
        receiver.answer = lambda _: Answer(after=10 if len(receiver.posts) == 1 else 0)
        data = tmp_path / "data"
        settings = {
            "PLOTI_ALLOW_NETWORKS": LOOPBACK,
            "PLOTI_PUBLIC_URL": "https://feeds.example",  # the links are those of either process
        }
        server = Server(data, settings=settings)
        made = hook(server, f"{receiver.url}/h")
        server.push("ds_a", FIRST)
        until(lambda: len(receiver.posts) == 1)
        server.kill()
        with Server(data, settings=settings) as again:
            until(lambda: len(receiver.posts) == 2)
            first, second = receiver.posts
            assert (first.id, first.body) == (second.id, second.body)
            (delivery,) = until(lambda: deliveries(again, made))
            assert (delivery["id"], delivery["state"]) == (first.id, "delivered")
            assert Official(made["secret"]).verify(second.body, second.headers)


def test_secrets_of_webhooks_stay_good_while_their_key_is_among_secret_keys(
    tmp_path: Path,
) -> None:
    with receiver_beside() as receiver:
        data, old, new = tmp_path / "data", "o" * 32, "n" * 32
        settings = {"PLOTI_ALLOW_NETWORKS": LOOPBACK}
        with Server(data, settings=settings | {"PLOTI_SECRET_KEYS": old}) as server:
            made = hook(server, f"{receiver.url}/h")
        with Server(data, settings=settings | {"PLOTI_SECRET_KEYS": f"{new},{old}"}) as server:
            tested = server.request("POST", f"/v1/webhooks/{made['id']}/test")
            assert tested.json()["state"] == "delivered"
            (post,) = receiver.posts
            assert Official(made["secret"]).verify(post.body, post.headers)


def test_r164_the_commands_do_the_whole_of_it(tmp_path: Path) -> None:
    """R-174, R-175."""
    with receiver_beside() as receiver, served(tmp_path, PLOTI_ALLOW_NETWORKS=LOOPBACK) as server:
        server.declare("ds_a", key=["id"])
        subscription = server.subscribe("ds_a").rpartition("/")[2]
        settings = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.key)

        def run(*arguments: str, status: int = 0) -> str:
            done = forked.run("webhooks", *arguments, env=settings)
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout

        told = run("create", f"{receiver.url}/h", "--subscription-id", subscription)
        webhook = next(word for word in told.split() if word.startswith("wh_"))
        assert "whsec_" in told
        assert webhook in run("list")
        assert "delivered" in run("test", webhook)
        server.push("ds_a", FIRST)
        until(lambda: len(receiver.posts) == 2)
        sent = until(lambda: [x for x in deliveries(server, {"id": webhook}) if x["eventId"]])[0]
        assert sent["id"] in run("deliveries", webhook)
        run("retry", webhook, sent["id"])
        until(lambda: len(receiver.posts) == 3)
        assert "does not wait" not in run("show", webhook)
        run("skip", webhook, sent["id"], status=1)
        assert "127.0.0.1" in run("update", webhook, "--events", "feed.dataset.updated")
        assert "whsec_" in run("rotate", webhook)
        assert "on" in run("resume", webhook, "--from", "evt_000000000001")
        receiver.answer = lambda _: Answer(status=410)
        run("test", webhook, status=1)
        assert "off (gone)" in run("show", webhook)
        run("delete", webhook)
        run("show", webhook, status=1)


def test_r151_listen_verifies_answers_at_once_and_runs_a_command_for_each_event(
    tmp_path: Path,
) -> None:
    got = tmp_path / "got"
    command = f'{sys.executable} -c \'import sys; open("{got}", "a").write(sys.stdin.read())\''
    wrong, right = tmp_path / "wrong", tmp_path / "right"
    wrong.write_text("whsec_" + "A" * 43 + "=")
    with served(tmp_path, PLOTI_ALLOW_NETWORKS=LOOPBACK) as server:
        with listening("--secret-file", str(wrong)) as (listener, url):
            made = hook(server, f"{url}/h")
            refused = server.request("POST", f"/v1/webhooks/{made['id']}/test").json()
            assert refused["attempts"][0]["status"] == 400
        right.write_text(made["secret"] + "\n")
        options = ("--secret-file", str(right), "--exec", command, "--json")
        with listening(*options, port=url.rpartition(":")[2]) as (listener, _):
            assert listener.stdout is not None
            tested = server.request("POST", f"/v1/webhooks/{made['id']}/test").json()
            assert tested["attempts"][0]["status"] == 204
            assert '"type":"ping"' in listener.stdout.readline()
            server.push("ds_a", FIRST)
            event = listener.stdout.readline().rstrip("\n")
            until(lambda: got.exists() and got.read_text() == event)
            (sent,) = until(lambda: [x for x in deliveries(server, made) if x["eventId"]])
            server.request("POST", f"/v1/webhooks/{made['id']}/deliveries/{sent['id']}/retry")
            until(
                lambda: [
                    x
                    for x in deliveries(server, made)
                    if (x["kind"], x["state"]) == ("manual", "delivered")
                ]
            )
            assert got.read_text() == event  # once, however often it comes (S-51)


def test_listen_ends_once_the_command_ran_for_all_that_was_answered(tmp_path: Path) -> None:
    got, go, script = tmp_path / "got", tmp_path / "go", tmp_path / "command.py"
    script.write_text(
        "import pathlib, sys, time\n"
        f"got, go = pathlib.Path({str(got)!r}), pathlib.Path({str(go)!r})\n"
        "text = sys.stdin.read()\n"
        "while not go.exists():\n    time.sleep(0.05)\n"
        "got.open('a').write(text + '\\n')\n"
    )
    secret = tmp_path / "secret"
    secret.write_text("whsec_" + "A" * 43 + "=")
    command = f"{sys.executable} {script}"
    with listening("--secret-file", str(secret), "--exec", command) as (listener, url):
        for number in (1, 2):
            body = json.dumps(
                {
                    "id": f"evt_{number:012d}",
                    "type": "feed.dataset.stale",
                    "timestamp": "2026-10-18T06:13:02.000Z",
                    "subscriptionId": "sub_a",
                    "data": {
                        "datasetId": "ds_a",
                        "reason": "check_overdue",
                        "lastCheckedAt": None,
                    },
                }
            )
            now = datetime.now(UTC)
            signature = Official(secret.read_text()).sign(f"evt_{number}", now, body)
            headers = {
                "webhook-id": f"evt_{number}",
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": signature,
            }
            assert httpx2.post(url, content=body, headers=headers).status_code == 204
        listener.terminate()
        go.touch()
        assert listener.wait(60) == 143
    assert len(got.read_text().splitlines()) == 2


@contextmanager
def listening(*options: str, port: str = "0") -> Iterator[tuple[forked.Forked, str]]:
    """`ploti webhooks listen`, and where it listens."""
    with forked.Forked(
        ["webhooks", "listen", "--port", port, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as listener:
        assert listener.stderr is not None
        try:
            yield listener, listener.stderr.readline().split()[-1]
        finally:
            listener.terminate()
