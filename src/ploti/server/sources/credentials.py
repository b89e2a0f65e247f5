"""Secrets that the operator keeps for sources, and where each may go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from ploti.errors import ConfigError
from ploti.model.wire import Value
from ploti.server.settings import OF_SOURCES

_HOSTS = "_HOSTS"
_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_LINE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9-]*): +(?P<value>\S.*)")
_PORTS = {"https": 443, "http": 80}


class Credential(Value, kw_only=True):
    """A secret and the hosts that may get it, each with a port where that is not the usual one."""

    secret: str
    hosts: tuple[str, ...]

    def __repr__(self) -> str:
        """Without the secret: what is logged by mistake must not give it away."""
        return f"Credential(hosts={self.hosts!r})"

    def goes_to(self, url: str) -> bool:
        """Whether the host of an address may get it."""
        host, port, usual = _place(url)
        return f"{host}:{port}" in self.hosts or (port == usual and host in self.hosts)

    def headers(self, kind: str | None) -> dict[str, str]:
        """The request headers that carry it, as sources of this kind take them.

        A secret that is a whole header, such as `X-Api-Key: …`, goes as it stands.
        """
        if line := _LINE.fullmatch(self.secret):
            return {line["name"]: line["value"]}
        bearer = f"Bearer {self.secret}"
        match kind:
            case "arcgis":
                return {"Authorization": bearer, "X-Esri-Authorization": bearer}
            case "socrata":
                return {"X-App-Token": self.secret}
            case "ckan":
                return {"Authorization": self.secret}
            case _:
                return {"Authorization": bearer}

    def hidden_in(self, text: str) -> str:
        """A text without the secret, should a server have sent it back."""
        line = _LINE.fullmatch(self.secret)
        for secret in {self.secret, line["value"] if line else self.secret}:
            text = text.replace(secret, "…")
        return text


def origin(url: str) -> tuple[str, str, int]:
    """What two addresses of one server have in common: scheme, host and port."""
    host, port, _ = _place(url)
    return urlsplit(url).scheme, host, port


def read_credentials(variables: Mapping[str, str]) -> dict[str, Credential]:
    """The credentials by name, from `PLOTI_SOURCE_<NAME>` and `PLOTI_SOURCE_<NAME>_HOSTS`.

    Raises ConfigError naming the variable that cannot be meant.
    """
    secrets = [name for name in variables if not name.endswith(_HOSTS)]
    for name in variables:
        if name.endswith(_HOSTS) and name.removesuffix(_HOSTS) not in secrets:
            raise ConfigError(f"{name} has no {name.removesuffix(_HOSTS)} beside it")
    found = {
        name: _credential(name, variables[name], variables.get(name + _HOSTS)) for name in secrets
    }
    return {name.removeprefix(OF_SOURCES): credential for name, credential in found.items()}


def _credential(variable: str, secret: str, hosts: str | None) -> Credential:
    if _NAME.fullmatch(variable.removeprefix(OF_SOURCES)) is None:
        raise ConfigError(f"{variable} is not the name of a credential")
    if not secret.strip() or not secret.isascii() or not secret.isprintable():
        raise ConfigError(f"{variable} must be one line of plain characters")
    found = [each.strip().lower() for each in (hosts or "").split(",") if each.strip()]
    if not found:
        raise ConfigError(f"{variable} goes nowhere: name its hosts in {variable}{_HOSTS}")
    wrong = [each for each in found if _HOST.fullmatch(each) is None]
    if wrong:
        raise ConfigError(f"{variable}{_HOSTS}: '{wrong[0]}' is no host such as data.example.org")
    return Credential(secret=secret.strip(), hosts=tuple(found))


def _place(url: str) -> tuple[str, int, int]:
    """The host of an address, its port, and the usual port of its scheme."""
    parts = urlsplit(url)
    usual = _PORTS.get(parts.scheme, 0)
    return (parts.hostname or "").lower(), parts.port or usual, usual
