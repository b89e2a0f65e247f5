"""A server over PostgreSQL: the whole way, killed and started again, and one at a time."""

from pathlib import Path

import pytest
from tests.e2e.serving import Server, until
from tests.e2e.test_webhooks import LOOPBACK, hook
from tests.fakes.chain import check_log
from tests.fakes.receiver import receiver_beside

from ploti.client.connection import Client
from ploti.sync.calls import sync, verify

FIRST, SECOND, THIRD = b"id,kind\n1,a\n", b"id,kind\n1,b\n2,c\n", b"id,kind\n2,d\n3,c\n"


@pytest.fixture
def settings(postgres_url: str) -> dict[str, str]:
    return {
        "PLOTI_DATABASE_URL": postgres_url,
        "PLOTI_SECRET_KEYS": "of-the-tests-alone-and-32-long-or-more",
        "PLOTI_ALLOW_NETWORKS": LOOPBACK,
    }


def test_a_push_reaches_a_synced_table_and_a_webhook_over_postgresql(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    with receiver_beside() as receiver, Server(tmp_path / "d", settings=settings) as server:
        made = hook(server, f"{receiver.url}/h")
        assert server.push("ds_a", FIRST)["outcome"] == "released"
        until(lambda: len(receiver.posts) == 1, within=60)
        to = f"duckdb:{tmp_path / 'a.duckdb'}"
        with Client(server.key, url=server.url) as client:
            for version, content in enumerate((SECOND, THIRD), start=2):
                assert server.push("ds_a", content)["outcome"] == "released"
                result = sync(client, made["subscriptionId"], to=to)
                assert [each.version for each in result.datasets] == [version]
                assert verify(client, made["subscriptionId"], to=to).exit_status == 0
        until(lambda: len(receiver.posts) == 3, within=60)
        waiting = server.get(
            f"/v1/feeds/subscriptions/{made['subscriptionId']}/events",
            params={"cursor": "evt_000000000003"},
        ).json()
        assert len(waiting["events"]) == 1
    assert not (tmp_path / "d" / "ploti.db").exists()
    assert not (tmp_path / "d" / "secret").exists()


def test_a_killed_server_loses_nothing_that_it_answered_and_the_next_one_goes_on(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    server = Server(tmp_path / "d", settings=settings)
    server.declare("ds_a", key=["id"])
    log = server.subscribe("ds_a")
    assert server.push("ds_a", FIRST)["version"] == 1
    server.kill()
    with Server(tmp_path / "d", settings=settings) as again:
        assert again.push("ds_a", SECOND)["version"] == 2
        events = again.get(f"{log}/events").json()["events"]
        assert check_log(events) == {"ds_a": 2}


def test_numbers_and_names_that_no_column_takes_are_told_as_over_sqlite(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    far, nul = 10**17, "MTk5OS0wMS0wMVQwMDowMDowMC4wMDBaIAA"
    dataset = "/v1/feeds/datasets/ds_a"
    with Server(tmp_path / "d", settings=settings) as server:
        server.declare("ds_a", key=["id"])
        server.push("ds_a", FIRST)
        server.subscribe("ds_a")
        for path, status in {
            f"{dataset}/versions?after={far}": 200,
            f"{dataset}/schema?version={far}": 404,
            f"{dataset}/versions/{far}": 404,
            f"{dataset}/versions/-{far}": 404,
            f"{dataset}/versions/1/changes?cursor={far}": 409,
            f"/v1/webhooks?cursor={nul}": 400,
            f"/v1/feeds/subscriptions?cursor={nul}": 400,
            f"/v1/admin/audit?cursor={far}": 400,
            f"/v1/admin/holds?cursor={nul}": 400,
        }.items():
            answer = server.staff("GET", path) if "/admin/" in path else server.get(path)
            assert answer.status_code == status, (path, answer.text)
            kind = "json" if status == 200 else "problem+json"
            assert answer.headers["content-type"] == f"application/{kind}"


def test_a_second_server_on_the_database_is_refused_with_a_sentence(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    with (
        Server(tmp_path / "d", settings=settings),
        pytest.raises(AssertionError, match=r"Another ploti serve runs on this data"),
    ):
        Server(tmp_path / "e", settings=settings)


def test_a_database_of_its_own_needs_secrets_of_its_own(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    del settings["PLOTI_SECRET_KEYS"]
    with pytest.raises(AssertionError, match=r"ended with 2: .*say PLOTI_SECRET_KEYS too"):
        Server(tmp_path / "d", settings=settings)
