"""The flag `--profile NAME`, which every command has: the server to speak to, and its key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ploti.errors import ConfigError

FLAG = "--profile"


@contextmanager
def profile_chosen(arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments without the flag; meanwhile its profile is that of the environment.

    It was typed, and so wins over PLOTI_API_KEY and PLOTI_API_URL.

    Raises:
        ConfigError: The flag has no name, or comes twice.
    """
    rest, names = _split(arguments)
    if not names:
        yield rest
        return
    if len(names) > 1 or not names[0]:
        raise ConfigError(f"{FLAG} takes the name of one profile: `ploti config list` shows them")
    before = dict(os.environ)
    os.environ["PLOTI_PROFILE"] = names[0]
    for name in ("PLOTI_API_KEY", "PLOTI_API_URL"):
        os.environ.pop(name, None)
    try:
        yield rest
    finally:
        os.environ.clear()
        os.environ.update(before)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    rest: list[str] = []
    names: list[str] = []
    left = iter(arguments)
    for each in left:
        if each == "--":
            rest += [each, *left]
        elif each == FLAG:
            names.append(next(left, ""))
        elif each.startswith(f"{FLAG}="):
            names.append(each.removeprefix(f"{FLAG}="))
        else:
            rest.append(each)
    return rest, names
