"""Declarations out of YAML files, read so that a plain word stays the word that it is."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import yaml

from ploti.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Declared:
    """One document of a file: where it stands, for messages, and what it says."""

    place: str
    settings: dict[str, object]


def read_declarations(path: Path) -> list[Declared]:
    """Every document of a file that says something; raises ConfigError naming file and line."""
    try:
        documents = [*yaml.load_all(path.read_text(encoding="utf-8"), _Loader)]
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: is it a declaration in YAML?") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_place(error)}: {_problem(error)}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: its lists lie too deep in each other") from error
    found = [each for each in documents if each is not None]
    if not found:
        raise ConfigError(f"{path} holds no declaration")
    return [_declared(path, number, each) for number, each in enumerate(found, 1)]


def _declared(path: Path, number: int, document: object) -> Declared:
    place = f"{path}, document {number}" if number > 1 else str(path)
    if not isinstance(document, dict) or not all(isinstance(name, str) for name in document):
        raise ConfigError(f"{place}: a declaration is a list of settings such as `id: ds_…`")
    if not isinstance(document.get("id"), str):
        raise ConfigError(f"{place}: it needs the dataset's id: `id: ds_…`")
    return Declared(place, document)


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or "it holds what is not text")


class _Loader(yaml.SafeLoader):
    """YAML's core schema: `no`, `off`, `2026-01-01`, `012` and `1:30` are texts."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Hashable, object]:
        """As in YAML, but a name that comes twice is an error and not the later of the two."""
        names = [each.value for each, _ in node.value if isinstance(each, yaml.ScalarNode)]
        for name, (key, _) in zip(names, node.value, strict=False):
            if names.count(name) > 1:
                raise yaml.constructor.ConstructorError(
                    problem=f"{name} is set twice", problem_mark=key.start_mark
                )
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _firsts in (
    ("null", r"|~|null|Null|NULL", ["", "~", "n", "N"]),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), [*_firsts]
    )
