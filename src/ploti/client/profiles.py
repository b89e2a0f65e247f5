"""The file of profiles: more than one server, each with its own key, and which one is in use."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ploti.errors import ConfigError

CONFIG_VARIABLE = "PLOTI_CONFIG"
PROFILE_VARIABLE = "PLOTI_PROFILE"

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_OTHERS = 0o077


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A server's address, and the key for it."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Profile(url={self.url!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """All profiles by name; `used` is the one that is taken where none is named."""

    used: str | None = None
    named: Mapping[str, Profile] = field(default_factory=dict)

    def find(self, name: str) -> Profile:
        """The profile of this name; raises ConfigError where there is none."""
        if name not in self.named:
            known = ", ".join(self.named) or "none yet"
            raise ConfigError(
                f"there is no profile '{name}' ({known}): `ploti config set {name} --url URL`"
                " makes it"
            )
        return self.named[name]


def config_path() -> Path:
    """Where the file is: PLOTI_CONFIG, or `ploti/config.toml` in the user's folder of settings."""
    given = os.environ.get(CONFIG_VARIABLE)
    if given:
        return Path(given).expanduser()
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "ploti" / "config.toml"


def read_profiles(path: Path) -> Profiles:
    """The profiles in the file; none where there is no file.

    Raises:
        ConfigError: The file cannot be read or meant, or others than its owner may read it.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise ConfigError(f"{path} has keys, and others may read it: chmod 600 {path}")
            return _parse(tomllib.load(file))
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{path} is no file of profiles: {error}") from error


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file; its owner alone may read it."""
    lines = [] if profiles.used is None else [f"use = {json.dumps(profiles.used)}"]
    for name, profile in profiles.named.items():
        lines += ["", f"[profiles.{name}]"]
        lines += [f"url = {json.dumps(profile.url)}", f"key = {json.dumps(profile.key)}"]
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("\n".join(lines) + "\n")
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def check_name(name: str) -> str:
    """The name itself; raises ConfigError where no profile can be called so."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"'{name}' is no name of a profile: letters, digits, - and _ are")
    return name


def _parse(found: Mapping[str, object]) -> Profiles:
    match found.get("profiles", {}):
        case dict() as tables:
            named = {check_name(name): _parse_one(name, each) for name, each in tables.items()}
        case _:
            raise ValueError("`profiles` is no table")
    used = found.get("use")
    if used is not None and not isinstance(used, str):
        raise ValueError("`use` is no name")
    return Profiles(used=used, named=named)


def _parse_one(name: str, found: object) -> Profile:
    match found:
        case {"url": str(url), "key": str(key)}:
            return Profile(url=url, key=key)
        case _:
            raise ValueError(f"profile '{name}' needs a url and a key")
