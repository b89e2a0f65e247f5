"""Writes the pages that are made: `python -m tests.docs.generate`, or `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.docs import reference
from tests.docs.declarations import declarations
from tests.docs.rest import rest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = "llms.txt"
REFERENCE = {
    "commands": reference.commands,
    "rest": rest,
    "declarations": declarations,
    "settings": reference.settings,
    "errors": reference.errors_page,
    "events": reference.events,
    "destinations": reference.destinations,
}
SECTIONS = {
    "tutorial": "Tutorial",
    "howto": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "decisions": "Decisions",
}


def made_pages() -> dict[str, str]:
    """The pages of reference by their path below docs/."""
    return {f"reference/{name}.md": make() for name, make in REFERENCE.items()}


def index(docs: Path) -> str:
    """`llms.txt`: every page of the tree with its title and its first sentence (R-209)."""
    lines = [
        "# ploti",
        "",
        "> Public tables as versioned datasets, a log of their changes, and copies kept in step.",
        "",
        "- [README](../README.md): what it is, and a first feed in five minutes.",
        "- [Architecture](../ARCHITECTURE.md): the code on one page.",
        *(_line(docs, path) for path in sorted(docs.glob("*.md"))),
    ]
    for folder, title in SECTIONS.items():
        pages = sorted((docs / folder).glob("*.md"))
        lines += ["", f"## {title}", "", *(_line(docs, path) for path in pages)]
    return "\n".join(lines) + "\n"


def _line(docs: Path, path: Path) -> str:
    title, told = read_head(path.read_text(encoding="utf-8"))
    if path.parent.name == "decisions":  # a decision's title says it
        told = ""
    return f"- [{title}]({path.relative_to(docs).as_posix()}){': ' + told if told else ''}"


def read_head(text: str) -> tuple[str, str]:
    """A page's title, and the first sentence of its first paragraph."""
    heading, *blocks = text.split("\n\n")
    paragraphs = (" ".join(block.split()) for block in blocks if _is_paragraph(block))
    first = next(paragraphs, "")
    end = first.find(". ")
    return heading.removeprefix("# ").strip(), first if end < 0 else first[: end + 1]


def _is_paragraph(block: str) -> bool:
    return not block.startswith(("<", "#", "|", "```", "- ", "Status:"))


def write() -> Iterator[Path]:
    """Write every made page and the index; gives those that are other than before."""
    texts = {DOCS / name: text for name, text in made_pages().items()}
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            yield path
    path = DOCS / INDEX
    text = index(DOCS)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        yield path


if __name__ == "__main__":
    for changed in write():
        print(changed.relative_to(ROOT))
