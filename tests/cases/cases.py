"""The collected cases: their text, their files, and what they expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "data" / "cases"


def case(number: str) -> dict[str, Any]:
    """A case as it is written."""
    text = (FOLDER / f"{number}.case.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def rows(name: str) -> list[dict[str, str | None]]:
    """The rows that a case expects, as texts."""
    table = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
