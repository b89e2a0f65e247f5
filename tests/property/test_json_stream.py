"""The JSON stream: values come out whole wherever the blocks of the file end."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ploti.errors import SourceError
from ploti.server.adapters.readers.json_stream import JsonStream

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
LAYOUTS = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n", " :\t")]),
        "ensure_ascii": st.booleans(),
    }
)
TRICKY = st.text(alphabet='{}[]",:\\ a\n')


def stream(text: bytes, block: int) -> JsonStream:
    return JsonStream(io.BytesIO(text), block=block)


@given(st.lists(VALUES, max_size=6), LAYOUTS, st.integers(1, 40))
def test_the_elements_of_an_array_are_its_values(
    values: list[object], layout: dict[str, object], block: int
) -> None:
    text = json.dumps(values, **layout).encode()  # type: ignore[arg-type]
    parts = stream(text, block)
    assert [json.loads(part) for part in parts.elements()] == values
    parts.end()


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=5), LAYOUTS, st.integers(1, 40))
def test_the_members_of_an_object_are_its_values(
    members: dict[str, object], layout: dict[str, object], block: int
) -> None:
    text = b"\xef\xbb\xbf" + json.dumps(members, **layout).encode()  # type: ignore[arg-type]
    parts = stream(text, block)
    assert {name: json.loads(parts.value()) for name in parts.members()} == members
    parts.end()


@given(st.lists(st.dictionaries(TRICKY, TRICKY | VALUES, max_size=3), max_size=5), LAYOUTS)
def test_what_looks_like_the_end_of_an_object_inside_a_text_is_none(
    values: list[object], layout: dict[str, object]
) -> None:
    text = json.dumps([{"a": values}, {"b": values}], **layout).encode()  # type: ignore[arg-type]
    parts = [json.loads(part) for part in stream(text, 1 << 16).elements()]
    assert parts == [{"a": values}, {"b": values}]


@given(st.lists(VALUES, min_size=1, max_size=4), st.data(), st.integers(1, 40))
def test_a_text_that_is_cut_anywhere_is_never_taken_for_whole(
    values: list[object], data: st.DataObject, block: int
) -> None:
    text = json.dumps(values).encode()
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    parts = stream(cut, block)
    with pytest.raises(SourceError, match="cut short"):
        list(parts.elements())
