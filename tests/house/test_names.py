"""What a module is called, and the sentence that says what it is for."""

import ast

from tests.house.source import MODULES, PACKAGE, name, parse

SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}


def test_every_module_opens_with_a_sentence_that_says_what_it_is_for() -> None:
    first_lines = {
        name(path): (ast.get_docstring(parse(path)) or "").partition("\n")[0] for path in MODULES
    }
    assert [module for module, line in first_lines.items() if not line.endswith(".")] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    found = [
        name(path)
        for path in MODULES
        if SAYS_NOTHING
        & {part.lstrip("_") for part in path.relative_to(PACKAGE).with_suffix("").parts}
    ]
    assert found == []


def test_no_module_shadows_the_public_names_feeds_and_webhooks() -> None:
    shadows = [PACKAGE / "feeds", PACKAGE / "webhooks"]
    found = [path for path in shadows if path.exists() or path.with_suffix(".py").exists()]
    assert found == []
