"""The file of profiles: what is written reads back, for its owner's eyes alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ploti.client.profiles import (
    Profile,
    Profiles,
    check_name,
    config_path,
    read_profiles,
    write_profiles,
)
from ploti.errors import ConfigError

ODD = Profiles(
    used="a-1",
    named={
        "a-1": Profile(url='https://a.example/"x"', key="ploti_\\1"),
        "b_2": Profile(url="http://b.example", key="ploti_2"),
    },
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "config.toml"


def test_what_is_written_reads_back(file: Path) -> None:
    assert read_profiles(file) == Profiles()
    for each in (ODD, Profiles(), ODD):
        write_profiles(file, each)
        assert read_profiles(file) == each


def test_its_owner_alone_may_read_it(file: Path) -> None:
    write_profiles(file, ODD)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_profiles(file)


def test_a_key_is_not_shown_by_accident() -> None:
    assert "ploti_2" not in repr(ODD)


@pytest.mark.parametrize(
    "text",
    [
        "profiles",
        "profiles = 3",
        "use = 3",
        "[profiles.a]\nurl = 'http://a'",
        "[profiles.'a b']\nurl = 'http://a'\nkey = 'k'",
    ],
)
def test_a_file_that_cannot_be_meant_is_told(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError):
        read_profiles(file)


def test_it_lies_where_settings_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PLOTI_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_path() == tmp_path / "ploti" / "config.toml"
    monkeypatch.setenv("PLOTI_CONFIG", "/there/x.toml")
    assert config_path() == Path("/there/x.toml")


def test_a_name_is_a_word() -> None:
    assert check_name("prod-2") == "prod-2"
    with pytest.raises(ConfigError):
        check_name("a.b")
