"""XML read piece by piece: no document types, no entities of its own, no depth without end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NoReturn, Protocol
from xml.parsers import expat

from ploti.errors import SourceError

_BLOCK = 1 << 16
_DEEPEST = 256


class Handler(Protocol):
    """Gets the elements as they begin and end, by their names as they are written."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        ...

    def end(self, name: str) -> None:
        """An element ends."""
        ...

    def text(self, text: str) -> None:
        """Text stands in the element that began last and has not ended, perhaps a part of it."""
        ...


def stream(file: IO[bytes], handler: Handler) -> Iterator[int]:
    """Feed a file to a handler; the line that was reached, after each piece.

    Raises SourceError with the line where the XML is broken, nested too deep, or has a document
    type, which may define entities that unpack to more than any memory.
    """
    # no namespaces: a separator for them would let text grow with the length of their names
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise SourceError(f"line {parser.CurrentLineNumber}: elements are nested too deep")
        handler.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(name)

    def refuse(*_: object) -> NoReturn:
        raise SourceError("the XML has a document type, which may hide entities: it is not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = refuse
    try:
        while block := file.read(_BLOCK):
            parser.Parse(block, False)
            yield parser.CurrentLineNumber
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise SourceError(
            f"line {error.lineno}: broken XML ({expat.ErrorString(error.code)})"
        ) from None
    yield parser.CurrentLineNumber


def local_name(name: str) -> str:
    """A name without its prefix."""
    return name.rpartition(":")[2]
