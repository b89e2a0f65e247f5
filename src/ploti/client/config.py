"""Where the API is, and the key that opens it: as given, or out of the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ploti.client.profiles import (
    PROFILE_VARIABLE,
    Profile,
    config_path,
    read_profiles,
)
from ploti.errors import ConfigError

URL_VARIABLE = "PLOTI_API_URL"
KEY_VARIABLE = "PLOTI_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8080"

_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Access:
    """The API's base address, without a slash at its end, and the key for it."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Access(url={self.url!r})"


def read_access(key: str | None, url: str | None) -> Access:
    """Fill what is not given from the environment, or else both from a profile.

    A profile's key goes with its own address only: where anything is given, or is in the
    environment, no profile is looked at.

    Raises:
        ConfigError: There is no key, or the key or the address has a form that cannot be right.
    """
    if key is None and url is None and not {KEY_VARIABLE, URL_VARIABLE} & os.environ.keys():
        profile = _find_profile()
        if profile is not None:
            key, url = profile.key, profile.url
    key = os.environ.get(KEY_VARIABLE, "") if key is None else key
    url = (os.environ.get(URL_VARIABLE) or DEFAULT_URL) if url is None else url
    return Access(check_url(url.strip()), check_key(key.strip()))


def _find_profile() -> Profile | None:
    """The profile that PLOTI_PROFILE names, or the one in use."""
    profiles = read_profiles(config_path())
    name = os.environ.get(PROFILE_VARIABLE) or profiles.used
    return None if name is None else profiles.find(name)


def check_url(url: str) -> str:
    """The address without a slash at its end; raises ConfigError where it is none."""
    if not _is_address(url):
        raise ConfigError(
            f"'{url}' is no address of an API: give {URL_VARIABLE} the form {DEFAULT_URL}"
        )
    return url.rstrip("/")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return (
        has_host
        and url.isprintable()
        and " " not in url
        and parts.scheme in {"http", "https"}
        and not (parts.query or parts.fragment or parts.username or parts.password)
    )


def check_key(key: str) -> str:
    """The key itself; raises ConfigError where it cannot be one."""
    if not key:
        raise ConfigError(
            f"no API key: set {KEY_VARIABLE} to a key such as ploti_… (`ploti serve` shows the "
            "first two, or writes them to the file `keys` of its data folder), or keep one with"
            " `ploti config set NAME`"
        )
    if _VISIBLE.fullmatch(key) is None:
        raise ConfigError(f"the API key in {KEY_VARIABLE} holds signs that no key has")
    return key
