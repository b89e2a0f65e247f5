"""Every command has help that says what it is for, and asking for help loads little."""

import subprocess
import sys

import pytest
from cyclopts import App

from ploti.cli.groups import make_app

COMMANDS = {
    "serve": "--data",
    "feeds datasets list": "--place",
    "feeds datasets show": "DATASET",
    "feeds datasets versions": "DATASET",
    "feeds datasets version": "NUMBER",
    "feeds datasets schema": "--version",
    "feeds datasets changes": "NUMBER",
    "feeds datasets download": "--to",
    "feeds diff": "END",
    "feeds sync": "--listen",
    "feeds status": "--to",
    "feeds verify": "--repair",
    "config list": "--json",
    "config set": "--url",
    "config use": "NAME",
    "config show": "NAME",
    "config remove": "NAME",
    "completion": "--install",
    "feeds subscriptions create": "--dataset",
    "feeds subscriptions list": "--json",
    "feeds subscriptions show": "SUBSCRIPTION",
    "feeds subscriptions update": "--no-places",
    "feeds subscriptions delete": "SUBSCRIPTION",
    "feeds subscriptions manifest": "SUBSCRIPTION",
    "feeds subscriptions events": "--cursor",
    "webhooks create": "--subscription-id",
    "webhooks list": "--json",
    "webhooks show": "WEBHOOK",
    "webhooks update": "--all-events",
    "webhooks delete": "WEBHOOK",
    "webhooks test": "WEBHOOK",
    "webhooks rotate": "WEBHOOK",
    "webhooks resume": "--from",
    "webhooks deliveries": "--limit",
    "webhooks retry": "DELIVERY",
    "webhooks skip": "DELIVERY",
    "webhooks listen": "--exec",
    "admin datasets apply": "--dry-run",
    "admin datasets list": "--json",
    "admin datasets show": "DATASET",
    "admin check": "DATASET",
    "admin push": "FILE",
    "admin holds list": "--state",
    "admin holds show": "HOLD",
    "admin holds release": "--note",
    "admin holds discard": "--note",
    "admin recover": "--data",
    "backup": "FILE",
    "migrate": "--dry-run",
    "doctor": "--data",
}


def show_help(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    make_app()([*arguments.split(), "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize(("command", "named"), COMMANDS.items(), ids=COMMANDS)
def test_each_command_has_help_that_names_what_it_takes(
    command: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = show_help(command, capsys)
    assert f"Usage: ploti {command}" in told
    assert named in told


@pytest.mark.parametrize(
    ("command", "following"),
    [
        ("demo", "ploti serve"),
        ("serve", "ploti admin datasets apply"),
        ("backup", "ploti admin recover"),
        ("migrate", "ploti serve"),
        ("doctor", "ploti serve"),
        ("admin recover", "ploti serve"),
        ("completion", "--install"),
        ("feeds sync", "ploti feeds verify"),
    ],
)
def test_the_help_of_a_command_says_what_follows_it_and_not_how_ploti_begins(
    command: str, following: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = show_help(command, capsys)
    assert following in told
    assert "Begin with" not in told


@pytest.mark.parametrize("group", ["", "feeds", "admin"])
def test_the_lines_to_begin_with_fit_into_a_terminal(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = show_help(group, capsys).partition("Begin with:")[2].splitlines()
    typed = [line for line in lines[1:] if line.startswith("  ")]
    assert typed
    assert all(line.startswith(("  ploti ", "  export ")) for line in typed)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("group", ["", "feeds", "admin"])
def test_the_help_of_a_group_says_what_to_type_next(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Begin with:" in show_help(group, capsys)


def test_every_command_has_json_but_those_that_only_talk_to_people() -> None:
    without = [
        name
        for name, app in leaves(make_app(), "ploti")
        if "--json"
        not in {each for argument in app.assemble_argument_collection() for each in argument.names}
    ]
    assert sorted(without) == ["ploti demo", "ploti serve"]


def leaves(app: App, name: str) -> list[tuple[str, App]]:
    if app.default_command is not None:
        return [(name, app)]
    return [
        leaf
        for command in app
        if not command.startswith("-")
        for leaf in leaves(app[command], f"{name} {command}")
    ]


def test_the_help_of_a_group_loads_none_of_its_commands() -> None:
    code = """
import contextlib, os, sys
from ploti.cli.groups import make_app
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    make_app()(sys.argv[1:])
print(*sys.modules)
"""
    heavy = {"httpx2", "duckdb", "pyarrow", "sqlalchemy", "litestar", "yaml", "ploti.client.calls"}
    for arguments in (["--help"], ["feeds", "--help"], ["admin", "--help"]):
        command = [sys.executable, "-c", code, *arguments]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        assert heavy & set(ran.stdout.split()) == set()
