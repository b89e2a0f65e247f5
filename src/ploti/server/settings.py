"""What the operator sets: variables with the prefix PLOTI_, or flags of the same names."""

from __future__ import annotations

import ipaddress
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

from ploti.errors import ConfigError
from ploti.model.wire import Value

T = TypeVar("T")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PREFIX = "PLOTI_"
OF_THE_CLIENT = frozenset(
    {"PLOTI_API_KEY", "PLOTI_API_URL", "PLOTI_CONFIG", "PLOTI_PROFILE", "PLOTI_WEBHOOK_SECRET"}
)
"""Variables that a server may meet in its environment and does not read."""

OF_SOURCES = "PLOTI_SOURCE_"
"""Variables of this prefix are sources' credentials, which declarations name."""

_OF_TESTS = frozenset({"test_clock"})
"""Settings that no operator needs, and that none is told of."""

_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,18}) ?([KMGT]iB)?")
_SHORTEST_SECRET = 32
_SIGNING = re.compile(r"whsec_([A-Za-z0-9+/]+={0,2})")
_WHOLE = re.compile(r"[1-9][0-9]{0,8}")


class Settings(Value, kw_only=True):
    """How this server runs; sizes in bytes, times in seconds.

    `public_url` is None where the address that it listens on is the one that links name.
    `sources` are the variables of their credentials, as they stand.
    """

    data: str
    database_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    behind_proxy: bool = False
    insecure: bool = False
    public_url: str | None = None
    file_roots: tuple[str, ...] = ()
    allow_networks: tuple[str, ...] = ()
    build_memory: int = 2 << 30
    build_seconds: int = 3600
    max_source: int = 8 << 30
    max_waits: int = 8
    rate_limit: int = 50
    public_rate_limit: int = 10
    secret_keys: tuple[str, ...] = ()
    alert_url: str | None = None
    alert_secret: str | None = None
    min_free: int = 1 << 30
    sources: dict[str, str] = {}
    test_clock: str | None = None


def read_settings(
    environment: Mapping[str, str], flags: Mapping[str, str | None], **given: str | int | bool
) -> Settings:
    """The settings of a server: a flag, by its field's name, wins over the variable.

    `given` are the fields that only the command line has. Raises ConfigError naming a variable
    that is unknown, or a value that cannot be meant.
    """
    texts = _texts(environment) | {name: text for name, text in flags.items() if text is not None}
    read = {name: _read(name, text) for name, text in texts.items()}
    settings = Settings(**given, **read, sources=_of_sources(environment))  # type: ignore[arg-type]
    _check_address(settings)
    _check_alerts(settings)
    _check_secrets(settings)
    return settings


def _texts(environment: Mapping[str, str]) -> dict[str, str]:
    ours = {name for name in environment if name.startswith(PREFIX)} - OF_THE_CLIENT
    variables = ours - _of_sources(environment).keys()
    unknown = sorted(variables - {_variable(field) for field in _READERS})
    if unknown:
        known = ", ".join(sorted(map(_variable, _READERS.keys() - _OF_TESTS)))
        raise ConfigError(f"{unknown[0]} is no setting of ploti serve; there are {known}")
    return {
        field: environment[_variable(field)] for field in _READERS if _variable(field) in variables
    }


def _of_sources(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if name.startswith(OF_SOURCES)}


def _variable(field: str) -> str:
    return PREFIX + field.upper()


def _read(field: str, text: str) -> object:
    try:
        return _READERS[field](text)
    except ValueError as error:
        raise ConfigError(f"{_variable(field)}: {error}") from None


def _check_address(settings: Settings) -> None:
    if _is_loopback(settings.host):
        return
    if settings.public_url is None:
        raise ConfigError(
            f"To listen on {settings.host}, say with PLOTI_PUBLIC_URL at which address it is "
            "reached: links name it"
        )
    if not (settings.behind_proxy or settings.insecure):
        raise ConfigError(
            f"To listen on {settings.host}, put TLS in front and say --behind-proxy, or accept "
            "with --insecure that keys can be overheard"
        )


def _check_secrets(settings: Settings) -> None:
    if settings.database_url is not None and not settings.secret_keys:
        raise ConfigError(
            "With PLOTI_DATABASE_URL say PLOTI_SECRET_KEYS too: the secrets in a database that is "
            "not the folder's own are kept with them; make one with `openssl rand -base64 32`"
        )


def _check_alerts(settings: Settings) -> None:
    if settings.alert_url is not None and settings.alert_secret is None:
        raise ConfigError(
            "PLOTI_ALERT_URL needs PLOTI_ALERT_SECRET, with which alerts are signed: make one with "
            '`echo "whsec_$(openssl rand -base64 32)"`'
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"'{text}' is no address such as https://ploti.example.org")
    return text.rstrip("/")


def _database(text: str) -> str:
    if urlsplit(text).scheme not in {"postgresql", "postgres"}:
        raise ValueError("is no address such as postgresql://user@host/database")
    return text


def _paths(text: str) -> tuple[str, ...]:
    paths = tuple(path for path in text.split(":") if path)
    relative = [path for path in paths if not path.startswith("/")]
    if relative:
        raise ValueError(f"'{relative[0]}' must be an absolute path")
    return paths


def _networks(text: str) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(part.strip())) for part in text.split(",") if part)


def _secrets(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(","))
    if any(len(secret) < _SHORTEST_SECRET for secret in found):
        raise ValueError(
            f"holds a secret of less than {_SHORTEST_SECRET} characters; make one with "
            "`openssl rand -base64 32`"
        )
    return found


def _alert_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise ValueError(f"'{text}' is no address such as https://alerts.example.org/ploti")
    return text


def _alert_secret(text: str) -> str:
    found = _SIGNING.fullmatch(text)
    if found is None or len(found[1]) % 4 or not 24 <= len(b64decode(found[1])) <= 64:
        raise ValueError(
            "is no secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64; make one with "
            '`echo "whsec_$(openssl rand -base64 32)"`'
        )
    return text


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise ValueError(f"'{text}' is no size such as 2GiB, 500MiB or a number of bytes")
    return int(found[1]) * _UNITS[found[2] or ""]


def _number(text: str) -> int:
    if _WHOLE.fullmatch(text.strip()) is None:
        raise ValueError(f"'{text}' is no whole number from 1 on")
    return int(text)


def _text(text: str) -> str:
    if not text:
        raise ValueError("has no value")
    return text


_READERS: dict[str, Callable[[str], object]] = {
    "database_url": _database,
    "public_url": _url,
    "file_roots": _paths,
    "allow_networks": _networks,
    "build_memory": _size,
    "build_seconds": _number,
    "max_source": _size,
    "max_waits": _number,
    "rate_limit": _number,
    "public_rate_limit": _number,
    "secret_keys": _secrets,
    "alert_url": _alert_url,
    "alert_secret": _alert_secret,
    "min_free": _size,
    "test_clock": _text,
}
