"""The pages: made ones are as the code is, links lead somewhere, the index has all of them."""

import itertools
import re
from pathlib import Path

import pytest
from tests.docs import generate
from tests.docs.generate import DOCS, INDEX, ROOT, index, made_pages, read_head
from tests.docs.reference import EXIT_STATUSES

from ploti.errors import MEANINGS, ExitStatus
from ploti.model.event import KINDS

STALE = "is not as the code is: run `make docs`, and commit what it writes"
PAGES = sorted(
    [*DOCS.rglob("*.md"), DOCS / INDEX, *(ROOT / name for name in ("README.md", "ARCHITECTURE.md"))]
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CHANGES_IN_ANCHORS = re.compile(r"[^\w\- ]")


@pytest.mark.parametrize("name", generate.REFERENCE)
def test_a_made_page_is_as_the_code_is(name: str) -> None:
    page = DOCS / "reference" / f"{name}.md"
    assert page.read_text() == generate.REFERENCE[name](), f"{page.name} {STALE}"


def test_the_index_for_machines_lists_every_page_r_209() -> None:
    text = (DOCS / INDEX).read_text()
    assert text == index(DOCS), f"{INDEX} {STALE}"
    for page in DOCS.rglob("*.md"):
        assert f"]({page.relative_to(DOCS).as_posix()})" in text


def test_there_are_concepts_tools_terms_and_an_api_reference_r_209() -> None:
    for page in ("explanation/log.md", "reference/commands.md", "glossary.md", "reference/rest.md"):
        assert f"]({page})" in (DOCS / INDEX).read_text()


def test_every_code_and_exit_status_is_in_the_page_of_errors() -> None:
    page = made_pages()["reference/errors.md"]
    assert all(f"`{code.value}`" in page for code in MEANINGS)
    assert EXIT_STATUSES.keys() == set(ExitStatus)


def test_every_event_type_is_told_and_what_it_asks_of_a_reader() -> None:
    page = made_pages()["reference/events.md"]
    log = (DOCS / "explanation/log.md").read_text()
    for name in KINDS:
        assert f"## {name.value}\n" in page
        assert f"| `{name.value.removeprefix('feed.dataset.')}` |" in log


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def broken_links(page: Path) -> list[str]:
    links = _LINK.findall(_FENCED.sub("", page.read_text()))
    return [link for link in links if "://" not in link and not _leads(page, link)]


def _leads(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists() or not target.resolve().is_relative_to(ROOT):
        return False
    return not anchor or anchor in _anchors(target.read_text())


def _anchors(text: str) -> set[str]:
    headings = _HEADING.findall(_FENCED.sub("", text))
    return {_CHANGES_IN_ANCHORS.sub("", each.lower()).replace(" ", "-") for each in headings}


def test_a_link_to_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("# A\n\n## Two words\n")
    page = tmp_path / "b.md"
    page.write_text("[a](a.md#two-words) [b](a.md#three) [c](c.md) [d](#b) [e](https://e.org)\n")
    assert broken_links(page) == ["a.md#three", "c.md", "#b"]


def test_no_text_of_a_command_is_broken_where_its_code_is() -> None:
    lines = made_pages()["reference/commands.md"].splitlines()
    plain = re.compile(r"[A-Za-z]|    [^\s-]")
    for line, following in itertools.pairwise(lines):
        goes_on = plain.match(line) or line.startswith("* ")
        assert not (goes_on and plain.match(following)), f"{line} / {following}"


def test_the_readme_leads_to_every_guide_and_page_of_reference() -> None:
    page = (ROOT / "README.md").read_text()
    for folder in ("tutorial", "howto", "reference", "explanation"):
        for each in (DOCS / folder).glob("*.md"):
            assert f"]({each.relative_to(ROOT).as_posix()})" in page


def test_each_decision_has_a_row_in_its_index() -> None:
    rows = (DOCS / "decisions/README.md").read_text()
    for page in (DOCS / "decisions").glob("[0-9]*.md"):
        text = page.read_text()
        number, title = read_head(text)[0].split(": ", 1)
        (status,) = re.findall(r"^Status: (accepted|replaced by \[\d{4})", text, re.MULTILINE)
        assert page.name.startswith(number)
        assert f"| [{number}]({page.name}) | {title} | {status.replace('[', '')} |" in rows
