"""`ploti config` and `--profile`, and the shell's completion."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ploti.cli import run
from ploti.cli.profile import profile_chosen
from ploti.client.config import Access, read_access
from ploti.errors import ConfigError


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("PLOTI_API_KEY", "PLOTI_API_URL", "PLOTI_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLOTI_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


def keep(name: str, key: str, monkeypatch: pytest.MonkeyPatch, *flags: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
    return run(["config", "set", name, *flags])


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert run(["config", "list", "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


def test_profiles_are_made_used_and_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keep("here", "ploti_1234567890abcdef", monkeypatch) == 0
    assert keep("there", "ploti_2", monkeypatch, "--url", "https://there.example/") == 0
    assert [(each["name"], each["inUse"]) for each in listed(capsys)] == [
        ("here", True),
        ("there", False),
    ]
    assert run(["config", "use", "there"]) == 0
    assert read_access(None, None) == Access("https://there.example", "ploti_2")
    assert run(["config", "show"]) == 0
    told = capsys.readouterr().out
    assert "https://there.example" in told
    assert run(["config", "remove", "there"]) == 0
    (left,) = listed(capsys)
    assert (left["key"], left["inUse"]) == ("ploti_123456…", False)
    assert run(["config", "use", "there"]) == 2


def test_a_key_comes_from_a_file_too_and_belongs_to_its_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("ploti_file\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run(["config", "set", "here", "--key-file", str(tmp_path / "key")]) == 0
    assert read_access(None, None).key == "ploti_file"
    assert run(["config", "set", "here", "--url", "https://other.example"]) == 2, "no key for it"
    assert read_access(None, None).url == "http://127.0.0.1:8080"


def test_the_flag_wins_over_the_environment_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep("there", "ploti_2", monkeypatch, "--url", "https://there.example")
    monkeypatch.setenv("PLOTI_API_KEY", "ploti_env")
    for arguments in (["--profile", "there", "a", "b"], ["a", "--profile=there", "b"]):
        with profile_chosen(arguments) as rest:
            assert rest == ["a", "b"]
            assert read_access(None, None) == Access("https://there.example", "ploti_2")
    assert read_access(None, None).key == "ploti_env"
    assert "PLOTI_PROFILE" not in os.environ
    with profile_chosen(["a", "--", "--profile", "x"]) as rest:
        assert rest == ["a", "--", "--profile", "x"]


@pytest.mark.parametrize("arguments", [["--profile"], ["--profile=a", "--profile", "b"]])
def test_a_flag_without_a_name_is_refused(arguments: list[str]) -> None:
    with pytest.raises(ConfigError), profile_chosen(arguments):
        pass


def test_bash_completes_commands_and_flags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    for words, expected in (
        (["fee"], "feeds"),
        (["feeds", "verify", "sub_x", "--rep"], "--repair"),
    ):
        typed = " ".join(["ploti", *words])
        begun = f". {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _ploti ploti; "
        asked = begun + 'echo "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-c", asked], capture_output=True, text=True, check=True, timeout=60
        )
        assert expected in done.stdout.split()


def test_it_is_installed_where_the_shell_looks_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["completion", "fish", "--install", "--json"]) == 0
    path = Path(json.loads(capsys.readouterr().out)["path"])
    assert path.is_relative_to(tmp_path)
    assert "ploti" in path.read_text()
