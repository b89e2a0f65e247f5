"""What a build finds of keys: dealt anew, given anew to some records, and not matched at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.builds import Builds, declare
from tests.unit.matching.tables import permits

from ploti.model.event import HoldReason
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.build.candidate import BuildResult, Candidate
from ploti.server.build.limits import Limit
from ploti.server.build.matching.question import OverBudget
from ploti.server.release.decide import review
from ploti.server.sources.declaration import Holds

ROWS = 200


def csv(rows: list[dict[str, Any]]) -> bytes:
    lines = [rows[0].keys(), *(row.values() for row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines).encode()


def reviewed(result: BuildResult, builds: Builds) -> tuple[Candidate, HoldReason | None]:
    assert isinstance(result, Candidate), result
    return result, review(result, base=builds.base, holds=Holds()).reason


def first(folder: Path, **settings: Any) -> tuple[Builds, dict[object, object]]:
    builds = Builds(folder, declare(key=["permit"], **settings))
    result = builds.build(csv(permits(ROWS)))
    return builds, {row["permit"]: row["_ploti_record_id"] for row in builds.rows(result)}


def test_keys_that_were_dealt_anew_hold_and_records_keep_their_ids_r074(tmp_path: Path) -> None:
    builds, ids = first(tmp_path)
    rows = permits(ROWS)
    dealt = [{**row, "permit": rows[(i * 7 + 3) % ROWS]["permit"]} for i, row in enumerate(rows)]
    built, reason = reviewed(builds.build(csv(dealt)), builds)
    assert reason is HoldReason.DATA_CHECK
    assert [finding.kind for finding in built.findings if finding.reason] == ["keys_dealt_anew"]
    assert built.counts is not None
    assert (built.counts.added, built.counts.removed) == (0, 0)
    known = {row["permit"]: ids[row["permit"]] for row in rows}
    found = {row["_ploti_record_id"]: row["permit"] for row in builds.rows(built)}
    assert all(found[known[a["permit"]]] == b["permit"] for a, b in zip(rows, dealt, strict=True))


def renamed() -> list[dict[str, Any]]:
    """A third of the permits under keys that tell nothing of the old ones, each with one edit."""
    return [
        {**row, "permit": f"Q{i * 7919 % 100_003}", "work": "reopened"} if i % 3 == 0 else row
        for i, row in enumerate(permits(ROWS))
    ]


@pytest.mark.parametrize(
    ("continuation", "reason", "kept"),
    [("review", HoldReason.DATA_CHECK, True), ("auto", None, True), ("off", None, False)],
)
def test_records_under_new_keys_are_found_by_likeness(
    continuation: str, reason: HoldReason | None, kept: bool, tmp_path: Path
) -> None:
    builds, ids = first(tmp_path, continuation=continuation)
    built, found = reviewed(builds.build(csv(renamed())), builds)
    assert found is reason
    went_on = {row["_ploti_record_id"] for row in builds.rows(built)} & set(ids.values())
    assert (len(went_on) > 0.95 * ROWS) == kept
    told = [finding for finding in built.findings if finding.kind == "continuations"]
    assert bool(told) == kept
    if told:
        assert " is now Q" in told[0].examples[0]
        assert "another work" in told[0].examples[0]


def test_a_matching_that_runs_past_its_budget_holds_for_processing_r075(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds, _ = first(tmp_path)

    def no_room(_engine: DuckEngine, sql: str) -> list[tuple[object, ...]]:
        raise OverBudget("the matching needs more memory than the build has", limit=Limit.MEMORY)

    monkeypatch.setattr(DuckEngine, "match", no_room)
    built, reason = reviewed(builds.build(csv(renamed())), builds)
    assert reason is HoldReason.PROCESSING
    assert (built.counts, built.files) == (None, [])
    assert not review(built, base=builds.base, holds=Holds()).matched
