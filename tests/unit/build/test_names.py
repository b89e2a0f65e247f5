"""Names of columns: the source's own, made safe only where they clash (domain, A30)."""

import pytest

from ploti.server.build.names import name_columns


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (["id", "Status"], ["id", "Status"]),
        ([" id ", "a b"], ["id", "a b"]),
        (["\ufeffid", "\u200bname\u2003", "a\u200bb"], ["id", "name", "a\u200bb"]),
        (["name", "name"], ["name", "name_2"]),
        (["name", "NAME", "Name"], ["name", "NAME_2", "Name_3"]),
        (["name", "name", "name_2"], ["name", "name_3", "name_2"]),
        (["", " ", "x"], ["unnamed", "unnamed_2", "x"]),
        (["_ploti_op", "_PLOTI_x"], ["source_ploti_op", "source_PLOTI_x"]),
        (
            ["file_row_number", "File_Row_Number"],
            ["source_file_row_number", "source_File_Row_Number_2"],
        ),
        (["source_ploti_op", "_ploti_op"], ["source_ploti_op", "source_ploti_op_2"]),
    ],
    ids=[
        "as they are",
        "outer blanks",
        "outer blanks that nobody sees",
        "twice",
        "but for case",
        "a number that is taken",
        "empty",
        "reserved",
        "the row number",
        "reserved and taken",
    ],
)
def test_names_are_the_sources_made_safe_where_they_clash(
    source: list[str], names: list[str]
) -> None:
    assert name_columns(source) == names


def test_a_column_that_comes_later_renames_none_before_it() -> None:
    assert name_columns(["a", "name", "name"]) == ["a", "name", "name_2"]
    assert name_columns(["name", "name", "b"])[:2] == ["name", "name_2"]


def test_a_sources_geometry_column_gives_way_to_the_geometry() -> None:
    assert name_columns(["Geometry", "x"], taken=["geometry"]) == ["Geometry_2", "x"]
