"""`ploti config`: servers by name, each with its key, kept in a file of one's own."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.output import Json, print_fields, print_json, print_next, print_table
from ploti.client.config import DEFAULT_URL, KEY_VARIABLE, URL_VARIABLE, check_key, check_url
from ploti.client.profiles import (
    Profile,
    Profiles,
    check_name,
    config_path,
    read_profiles,
    write_profiles,
)

app = App(
    name="config",
    help="Servers by name, each with its key, for the commands and import ploti.",
    help_epilogue="Next: ploti config set NAME --url URL, then any command with --profile NAME",
)

Name = Annotated[str, Parameter(help="The profile's name.")]
_SHOWN = 12


@app.command(name="list")
def list_profiles(*, json: Json = False) -> None:
    """List the profiles, and say which one is in use."""
    profiles = read_profiles(config_path())
    if json:
        print_json([_tell(profiles, name) for name in profiles.named])
        return
    print_table(
        ["name", "in use", "url", "key"],
        [
            [name, name == profiles.used, each.url, _hide(each.key)]
            for name, each in profiles.named.items()
        ],
        empty="No profiles. Make one with: ploti config set NAME --url URL",
    )
    _say_environment()


@app.command(name="set")
def set_profile(
    name: Name,
    /,
    *,
    url: Annotated[
        str | None, Parameter(help=f"The server's address; {DEFAULT_URL} for a new profile.")
    ] = None,
    key_file: Annotated[
        Path | None,
        Parameter(help="A file with the key; else it is asked for, or read from standard input."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a profile or change it; the first one is in use from then on.

    The key is never an argument, which the shell's history and other users would see.
    """
    path = config_path()
    profiles = read_profiles(path)
    before = profiles.named.get(check_name(name))
    address = check_url(url or (before.url if before else DEFAULT_URL))
    if before is not None and url is not None and key_file is None and address == before.url:
        key = before.key
    else:
        key = check_key(_read_key(key_file).strip())
    named = {**profiles.named, name: Profile(url=address, key=key)}
    changed = Profiles(used=profiles.used or name, named=named)
    write_profiles(path, changed)
    _answer(changed, name, json=json)


@app.command
def use(name: Name, /, *, json: Json = False) -> None:
    """Take this profile from now on, where no other is named."""
    path = config_path()
    profiles = read_profiles(path)
    profiles.find(name)
    changed = replace(profiles, used=name)
    write_profiles(path, changed)
    _answer(changed, name, json=json)


@app.command
def show(
    name: Annotated[str | None, Parameter(help="The profile's name; the one in use.")] = None,
    /,
    *,
    json: Json = False,
) -> None:
    """Show a profile, its key but for the beginning hidden."""
    profiles = read_profiles(config_path())
    wanted = name or os.environ.get("PLOTI_PROFILE") or profiles.used or ""
    profiles.find(wanted)
    _answer(profiles, wanted, json=json)


@app.command
def remove(name: Name, /, *, json: Json = False) -> None:
    """Forget a profile with its key; the key itself stays good until it is revoked."""
    path = config_path()
    profiles = read_profiles(path)
    profiles.find(name)
    named = {each: profile for each, profile in profiles.named.items() if each != name}
    used = None if profiles.used == name else profiles.used
    write_profiles(path, Profiles(used=used, named=named))
    if json:
        print_json({"name": name, "removed": True})
    else:
        print(f"{name} is removed.")


def _read_key(file: Path | None) -> str:
    if file is not None:
        return file.read_text("utf-8")
    if sys.stdin.isatty():
        return getpass.getpass("Key (not shown): ")
    return sys.stdin.readline()


def _answer(profiles: Profiles, name: str, *, json: bool) -> None:
    told = _tell(profiles, name)
    if json:
        print_json(told)
        return
    print_fields({"name": name, "in use": told["inUse"], "url": told["url"], "key": told["key"]})
    print_fields({"file": str(config_path())})
    _say_environment()
    print_next(f"ploti feeds datasets list --profile {name}")


def _tell(profiles: Profiles, name: str) -> Mapping[str, object]:
    profile = profiles.named[name]
    return {
        "name": name,
        "inUse": name == profiles.used,
        "url": profile.url,
        "key": _hide(profile.key),
    }


def _hide(key: str) -> str:
    return f"{key[:_SHOWN]}…"


def _say_environment() -> None:
    there = [name for name in (KEY_VARIABLE, URL_VARIABLE) if name in os.environ]
    if there:
        print(f"{' and '.join(there)} in the environment win, unless --profile is given.")
