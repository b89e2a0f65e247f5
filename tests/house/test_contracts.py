"""That the import contracts cover what is there, and nothing is excused from them."""

import tomllib

from tests.house.source import PACKAGE, ROOT

# Rooms of the server that may do IO, or that put the others together.
WITH_IO = {"adapters", "api", "app", "console", "guard", "settings", "worker"}


def contracts() -> dict[str, dict[str, object]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {each["id"]: each for each in settings["tool"]["importlinter"]["contracts"]}


def test_no_import_is_excused_from_a_contract() -> None:
    assert [id_ for id_, contract in contracts().items() if "ignore_imports" in contract] == []


def test_every_stage_and_the_use_cases_are_under_the_contract_that_policy_does_no_io() -> None:
    rooms = {
        path.stem
        for path in (PACKAGE / "server").iterdir()
        if (path.is_dir() or path.suffix == ".py") and not path.name.startswith("_")
    }
    pure = contracts()["pure"]["source_modules"]
    assert {f"ploti.server.{room}" for room in rooms - WITH_IO} <= set(pure)
