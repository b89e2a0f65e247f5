"""Which states are not built again."""

import msgspec
import pytest

from ploti.model.schema import Column, Schema
from ploti.server.build.candidate import Candidate
from ploti.server.release.known import (
    Known,
    Role,
    records_key,
    same_bytes,
    same_records,
    settings_key,
)
from ploti.server.sources.declaration import parse_declaration

STATES = [
    Known(role=Role.CURRENT, sha256="1", records="r1", settings="s"),
    Known(role=Role.ON_HOLD, sha256="2", records="r2", settings="s"),
    Known(role=Role.DISCARDED, sha256="3", records="r3", settings="s"),
]


@pytest.mark.parametrize(
    ("sha256", "role"),
    [("1", Role.CURRENT), ("2", Role.ON_HOLD), ("3", Role.DISCARDED), ("4", None)],
)
def test_the_same_bytes_are_known_under_the_same_settings_alone_s27(
    sha256: str, role: Role | None
) -> None:
    assert same_bytes(STATES, sha256=sha256, settings="s") is role
    assert same_bytes(STATES, sha256=sha256, settings="other") is None


def test_the_same_records_as_on_hold_or_discarded_are_known_s27() -> None:
    assert same_records(STATES, records="r1", settings="s") is None
    assert same_records(STATES, records="r2", settings="s") is Role.ON_HOLD
    assert same_records(STATES, records="r3", settings="s") is Role.DISCARDED
    assert same_records(STATES, records="r3", settings="other") is None


def test_settings_are_alike_unless_reading_or_review_changed() -> None:
    raw: dict[str, object] = {"id": "ds_a", "title": "A", "place": "us", "topic": "roads"}
    settings = settings_key(parse_declaration(raw))
    alike = [{"title": "B"}, {"place": "ca"}, {"holds": {"min_row_ratio": 0.7}}]
    other = [{"key": ["id"]}, {"columns": {"a": "date"}}, {"holds": "off"}]
    assert {settings_key(parse_declaration(raw | more)) for more in alike} == {settings}
    found = {settings_key(parse_declaration(raw | more)) for more in other}
    assert len(found | {settings}) == 4


def test_records_are_other_ones_under_other_columns() -> None:
    schema = Schema(columns=[Column(name="a", type="string")], key_columns=[], geometry=None)
    built = Candidate(
        schema=schema,
        schema_change=None,
        row_count=1,
        counts=None,
        state_digest="s",
        content_digest=None,
        buckets=[],
        files=[],
        findings=[],
        key_fault=None,
    )
    renamed = msgspec.structs.replace(schema, columns=[Column(name="b", type="string")])
    assert records_key(built) == records_key(msgspec.structs.replace(built, row_count=2))
    assert records_key(built) != records_key(msgspec.structs.replace(built, schema=renamed))
    assert records_key(built) != records_key(msgspec.structs.replace(built, state_digest="t"))
