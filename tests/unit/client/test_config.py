"""Where key and address come from, and what is wrong with them in one line."""

from pathlib import Path

import pytest

from ploti.client.config import Access, read_access
from ploti.client.profiles import Profile, Profiles, write_profiles
from ploti.errors import ConfigError, ExitStatus


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No variable of ploti's but that of a file of profiles, which is not there."""
    for name in ("PLOTI_API_KEY", "PLOTI_API_URL", "PLOTI_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLOTI_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


HERE = Profile(url="http://localhost:1", key="ploti_here")
THERE = Profile(url="https://there.example", key="ploti_there")
BOTH = Profiles(used="here", named={"here": HERE, "there": THERE})


def test_without_variables_the_profile_in_use_is_taken_or_the_one_named(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profiles(config, BOTH)
    assert read_access(None, None) == Access(HERE.url, HERE.key)
    monkeypatch.setenv("PLOTI_PROFILE", "there")
    assert read_access(None, None) == Access(THERE.url, THERE.key)


def test_a_profiles_key_goes_to_its_own_address_alone(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profiles(config, BOTH)
    assert read_access("ploti_mine", None) == Access("http://127.0.0.1:8080", "ploti_mine")
    with pytest.raises(ConfigError, match="no API key"):
        read_access(None, "https://elsewhere.example")
    monkeypatch.setenv("PLOTI_API_URL", "https://elsewhere.example")
    with pytest.raises(ConfigError, match="no API key"):
        read_access(None, None)
    monkeypatch.setenv("PLOTI_API_KEY", "ploti_env")
    assert read_access(None, None) == Access("https://elsewhere.example", "ploti_env")


def test_a_profile_that_there_is_not_is_told_with_those_that_there_are(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profiles(config, BOTH)
    monkeypatch.setenv("PLOTI_PROFILE", "nowhere")
    with pytest.raises(ConfigError, match=r"here, there"):
        read_access(None, None)


def test_key_and_address_come_from_the_environment_r176_r177(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLOTI_API_KEY", "ploti_abc")
    monkeypatch.setenv("PLOTI_API_URL", "https://api.example/base/")
    assert read_access(None, None) == Access("https://api.example/base", "ploti_abc")


def test_what_is_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLOTI_API_KEY", "ploti_abc")
    access = read_access("ploti_xyz", "http://localhost:9")
    assert access == Access("http://localhost:9", "ploti_xyz")


def test_without_an_address_this_machine_is_meant() -> None:
    assert read_access("ploti_abc", None).url == "http://127.0.0.1:8080"


def test_a_missing_key_says_where_keys_are() -> None:
    with pytest.raises(ConfigError, match="PLOTI_API_KEY") as raised:
        read_access(None, None)
    assert raised.value.exit_status is ExitStatus.USAGE


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_access(key, None)
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "api.example",
        "ftp://api.example",
        "http://",
        "http://api.example:port",
        "http://api example",
        "http://api.example/\x01",
        "http://user:secret@api.example",
        "https://api.example/?key=1",
    ],
)
def test_an_address_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no address of an API"):
        read_access("ploti_abc", url)


def test_a_key_is_not_shown_where_access_is_printed() -> None:
    assert "ploti_abc" not in repr(read_access("ploti_abc", None))
