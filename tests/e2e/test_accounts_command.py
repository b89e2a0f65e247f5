"""The commands for workspaces, plans, members and keys against a real server."""

from collections.abc import Iterator

import pytest
from tests.e2e.serving import Server, served
from tests.e2e.test_cli import Command, Ended

from ploti.cli import run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("accounts")) as running:
        yield running


@pytest.fixture
def command(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("PLOTI_API_URL", server.url)

    def ran(line: str, *, key: str | None = None) -> Ended:
        monkeypatch.setenv("PLOTI_API_KEY", key or server.staff_key)
        capsys.readouterr()
        status = run(line.split())
        out, err = capsys.readouterr()
        return Ended(status, out, err)

    return ran


def test_a_workspace_on_a_plan_of_its_own_gets_what_both_open(
    server: Server, command: Command
) -> None:
    for dataset, place, topic in (
        ("ds_permits", "us/fl", "permits"),
        ("ds_roads", "us/fl", "roads"),
        ("ds_far", "ca/on", "permits"),
    ):
        server.declare(dataset, place=place, topic=topic)
    plan = command("admin plans create permits-only --topic permits --json").json
    assert (plan["id"], plan["topics"]) == ("permits-only", ["permits"])
    made = command(
        "admin workspaces create Florida --coverage us/fl --plan permits-only --json"
    ).json
    member = command(f"admin members add {made['id']} Ada --json").json
    key = command(f"admin keys create {member['id']} --name laptop --json").json
    listed = command("feeds datasets list --json", key=key["secret"]).json
    assert [each["id"] for each in listed["datasets"]] == ["ds_permits"]
    preview = command("feeds subscriptions preview --place us --place ca", key=key["secret"])
    assert "outside plan" in preview.out
    assert "outside coverage" in preview.out
    subscription = command("feeds subscriptions create --place us --json", key=key["secret"]).json[
        "id"
    ]
    changed = command("admin plans update permits-only --topic roads --json").json
    assert changed["topics"] == ["roads"]
    told = command(
        f"feeds subscriptions events {subscription} --json --limit 3 --follow", key=key["secret"]
    )
    assert [(line["type"], line["data"].get("reason")) for line in told.lines] == [
        ("feed.dataset.added", None),
        ("feed.dataset.removed", "plan_changed"),
        ("feed.dataset.added", None),
    ]


def test_keys_are_listed_by_their_first_letters_and_revoked(
    server: Server, command: Command
) -> None:
    workspace = command("admin workspaces create Keys --json").json["id"]
    member = command(f"admin members add {workspace} Ada --json").json["id"]
    made = command(
        f"admin keys create {member} --permission feeds --expires-at 2099-01-01T00:00:00Z"
    )
    secret = next(line.split()[-1] for line in made.out.splitlines() if line.startswith("key "))
    listed = command(f"admin keys list --workspace {workspace}")
    assert secret not in listed.out
    assert f"{secret[:12]}…" in listed.out
    key = command(f"admin keys list --workspace {workspace} --json").json["keys"][0]
    assert command(f"admin keys revoke {key['id']}").status == 0
    assert command("feeds datasets list", key=secret).status == 6
    wrong = command(f"admin keys create {member} --expires-at tomorrow")
    assert (wrong.status, "--expires-at" in wrong.err) == (2, True)


def test_what_cannot_be_done_is_told_and_what_was_done_is_listed(command: Command) -> None:
    workspace = command("admin workspaces create Audited --public --json").json
    assert workspace["public"] is True
    shown = command(
        f"admin workspaces update {workspace['id']} --no-public --coverage us/ga --json"
    )
    assert (shown.json["public"], shown.json["coverage"]) == (False, ["us/ga"])
    everywhere = command(f"admin workspaces update {workspace['id']} --everywhere --json").json
    assert everywhere["coverage"] is None
    assert command(f"admin workspaces show {workspace['id']}").out.count("everywhere") == 1
    assert "Audited" in command("admin workspaces list").out
    member = command(f"admin members add {workspace['id']} Ada --json").json["id"]
    left = command(f"admin members remove {member} --json").json
    assert left["leftAt"]
    assert member in command("admin members list").out
    assert command(f"admin keys create {member}").status == 1
    assert "everything" in command("admin plans list").out
    assert command("admin plans show none").status == 1
    audit = command(f"admin audit --subject {workspace['id']}").out
    assert audit.count("update workspace") == 2
    assert "remove member" in command("admin audit --limit 3").out
