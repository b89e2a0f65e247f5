"""Declarations out of YAML: plain words stay words, and a fault names file and line."""

from pathlib import Path

import pytest

from ploti.cli.declarations import read_declarations
from ploti.errors import ConfigError


def read(folder: Path, text: str | bytes) -> list[dict[str, object]]:
    path = folder / "a.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [each.settings for each in read_declarations(path)]


def test_a_file_holds_one_document_or_several(tmp_path: Path) -> None:
    found = read(tmp_path, "---\nid: ds_a\n---\n# nothing\n---\nid: ds_b\n")
    assert [each["id"] for each in found] == ["ds_a", "ds_b"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("off", "off"),
        ("2026-01-01", "2026-01-01"),
        ("012", "012"),
        ("1:30", "1:30"),
        ("24h", "24h"),
        ("0x1F", "0x1F"),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-9", 1e-9),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("'5'", "5"),
        ('["", "-"]', ["", "-"]),
        ("{lat: y, lng: x}", {"lat": "y", "lng": "x"}),
    ],
)
def test_a_value_is_what_its_reader_takes_it_for(
    tmp_path: Path, written: str, meant: object
) -> None:
    [found] = read(tmp_path, f"id: ds_a\nvalue: {written}\n")
    assert found["value"] == meant
    assert type(found["value"]) is type(meant)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id: ds_a\nkey: [a\ntitle: b\n", "line 3"),
        ("id: ds_a\nplace: us\nid: ds_b\n", "line 1: id is set twice"),
        ("id: ds_a\nsource:\n  kind: http\n  kind: file\n", "line 3: kind is set twice"),
        ("- id: ds_a\n", "list of settings"),
        ("just words", "list of settings"),
        ("1: 2\n", "list of settings"),
        ("title: A\n", "needs the dataset's id"),
        ("id: 5\n", "needs the dataset's id"),
        ("id: ds_a\n---\ntitle: B\n", "document 2: it needs the dataset's id"),
        ("", "holds no declaration"),
        ("# nothing\n---\n", "holds no declaration"),
        ("id: !!python/object:os.system x\n", "line 1"),
        (b"id: \xff\n", "not UTF-8"),
        (b"PK\x03\x04\x00\x00", "a.yaml"),
        ("id: *nothing\n", "line 1"),
        ("[" * 5_000, "too deep"),
    ],
)
def test_a_file_that_cannot_be_meant_is_one_clear_error(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    with pytest.raises(ConfigError, match=r"a\.yaml") as raised:
        read(tmp_path, text)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.yaml: No such file"):
        read_declarations(tmp_path / "gone.yaml")
