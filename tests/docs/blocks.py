"""What stands in a page between fences, and the commands of a console block with their output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w-]+\.[a-z]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the last file that is named before it."""

    language: str
    text: str
    file: str | None


@dataclass(frozen=True)
class Step:
    """A command and the output shown below it; None where none is shown."""

    command: str
    shown: str | None


def read_blocks(page: str, *, section: str | None = None) -> list[Block]:
    """The blocks of a page, or of the section with this heading."""
    if section is not None:
        page = page.split(f"\n## {section}\n")[1].split("\n## ", maxsplit=1)[0]
    blocks = []
    for found in _FENCE.finditer(page):
        files = _FILE.findall(page[: found.start()])
        blocks.append(Block(found[1], found[2], files[-1] if files else None))
    return blocks


def read_steps(block: Block) -> Iterator[Step]:
    """The commands of a console block: lines after `$ `, or all lines where there is no prompt."""
    lines = block.text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        yield from (Step(line, None) for line in lines)
        return
    command, shown = "", list[str]()
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield Step(command, "\n".join(shown).strip("\n") or None)
            command, shown = line.removeprefix("$ "), []
        elif line.startswith("> ") and not shown:
            command += "\n" + line.removeprefix("> ")
        else:
            shown.append(line)
    yield Step(command, "\n".join(shown).strip("\n") or None)
