"""The tutorial, the README and the guides, done as they stand by a reader with a real server."""

from pathlib import Path

import duckdb
import pytest
from tests.docs.blocks import Block, Step, read_blocks, read_steps
from tests.docs.generate import DOCS, ROOT
from tests.docs.session import compare, session

GUIDES = sorted(path.name for path in (DOCS / "howto").glob("*.md"))


def test_the_tutorial_works_as_it_is_written(tmp_path: Path) -> None:
    page = (DOCS / "tutorial/first-feed.md").read_text()
    with session(tmp_path) as reader:
        reader.read(read_blocks(page))


def test_the_first_feed_of_the_readme_works_as_it_is_written(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text()
    with session(tmp_path) as reader:
        reader.read(read_blocks(page, section="Your first feed, in five minutes"))
        said = "\n".join(reader.said)
        assert "1 added, 1 changed, 0 removed" in page
        assert "1 added, 1 changed, 0 removed" in said
        assert said.split()[-4:] == ["city_trees", "2", "equal", "-"]
        with duckdb.connect(str(reader.folder / "copy.duckdb"), read_only=True) as copy:
            trees = copy.sql("SELECT tree, species, height FROM city_trees ORDER BY 1").fetchall()
        assert trees == [
            ("0001", "Live oak", 13.0),
            ("0002", "Magnolia", 8.0),
            ("0003", "Bald cypress", 4.0),
        ]


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_works_as_it_is_written(tmp_path: Path, name: str) -> None:
    with session(tmp_path) as reader:
        reader.read(read_blocks((DOCS / "howto" / name).read_text()))


def test_a_page_that_shows_what_is_not_said_fails(tmp_path: Path) -> None:
    with session(tmp_path) as reader:
        reader.read([Block("console", "$ echo one\none\n", None)])
        with pytest.raises(AssertionError, match="shown"):
            reader.read([Block("console", "$ echo one\ntwo\n", None)])
        with pytest.raises(AssertionError, match="false"):
            reader.read([Block("console", "$ false\n", None)])


def test_ids_times_ports_and_widths_are_all_that_may_differ() -> None:
    shown = "sub_…   at 2026-01-01T00:00:00.000Z\n…\nhttp://127.0.0.1:8080/x"
    said = "sub_02k05fpg57a41adr  at 2026-11-30T22:22:45.016Z\na\nb\nhttp://127.0.0.1:39/x\n"
    compare("c", shown, said)
    with pytest.raises(AssertionError):
        compare("c", shown, said.replace("/x", "/y"))


def test_a_console_block_is_commands_with_their_output() -> None:
    with_prompts = Block("console", "$ a \\\n> b\nout\n$ c\n", None)
    assert [*read_steps(with_prompts)] == [Step("a \\\nb", "out"), Step("c", None)]
    assert [*read_steps(Block("console", "a\nb\n", None))] == [Step("a", None), Step("b", None)]
