"""JSON values gathered into columns of text, and written as Parquet batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import NoneType

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.sql import literal
from ploti.server.ports.building import RawKind

MOST_COLUMNS = 2000
"""A source with more names than this has data where names belong."""


GEOMETRY = "geometry"
"""The field of the WKB, beside `c0`, `c1`, …"""


class Number(str):
    """A number with a fraction or an exponent, as its text stands."""

    __slots__ = ()


class Row(msgspec.Struct):
    """One record's values by name, and the JSON text that they came from."""

    values: dict[str, object]
    text: msgspec.Raw


_texts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NESTED = {dict, list}


class Columns:
    """The columns of all batches so far: names in the order in which they came, kinds of values.

    `as_json` names columns whose values are given as JSON texts, strings in quotes; `as_text`
    those in which nested values are texts among others; `names` are columns that there are even
    where no row has a value of them.
    """

    def __init__(
        self, *, as_json: frozenset[str], as_text: frozenset[str], names: Sequence[str] = ()
    ) -> None:
        self._as_json = as_json
        self._as_text = as_text
        self._kinds: dict[str, set[type]] = {name: set() for name in names}

    def arrays(self, rows: Sequence[Row]) -> list[pa.StringArray]:
        """The values of a batch, a column each in the order of `names`; null where there is none.

        Raises SourceError where there are too many columns.
        """
        for row in rows:
            if not row.values.keys() <= self._kinds.keys():
                self._add(row.values)
        return [self._array(name, rows) for name in self._kinds]

    @property
    def names(self) -> list[str]:
        """The names, in the order in which they came."""
        return list(self._kinds)

    def kind(self, name: str) -> RawKind:
        """What the values of a column are, over all batches."""
        kinds = self._kinds[name]
        if name in self._as_json or (kinds & _NESTED and name not in self._as_text):
            return RawKind.JSON
        if kinds == {int}:
            return RawKind.INTEGER
        if kinds and kinds <= {int, Number}:
            return RawKind.NUMBER
        return RawKind.BOOLEAN if kinds == {bool} else RawKind.STRING

    def unclear(self) -> frozenset[str]:
        """Columns in which strings stand beside nested values, and are not in quotes."""
        return frozenset(
            name
            for name, kinds in self._kinds.items()
            if str in kinds and kinds & _NESTED and name not in self._as_json | self._as_text
        )

    def _add(self, values: dict[str, object]) -> None:
        for name in values:
            self._kinds.setdefault(name, set())
        if len(self._kinds) > MOST_COLUMNS:
            raise SourceError(
                f"the source has more than {MOST_COLUMNS:,} columns, the last of them '{name}'"
            )

    def _array(self, name: str, rows: Sequence[Row]) -> pa.StringArray:
        values = [row.values.get(name) for row in rows]
        kinds = set(map(type, values)) - {NoneType}
        self._kinds[name] |= kinds
        if name in self._as_json or kinds & _NESTED:
            values = [_json_text(name, row, quoted=name in self._as_json) for row in rows]
        elif not kinds <= {str, Number}:
            values = [None if value is None else _text(value) for value in values]
        return pa.array(values, pa.string())


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _json_text(name: str, row: Row, *, quoted: bool) -> str | None:
    value = row.values.get(name)
    if value is None or (isinstance(value, str) and not quoted):
        return value
    return bytes(_texts.decode(row.text)[name]).decode()


class Parts:
    """Parquet files of one table, a row group a batch: a new file where columns were added.

    Columns of text are named `c0`, `c1`, … and never change their place.
    """

    def __init__(self, folder: str, *, name: str) -> None:
        self._folder = Path(folder)
        self._name = name
        self._paths: list[str] = []
        self._writer: pq.ParquetWriter | None = None
        self._width = -1

    def write(self, columns: Sequence[pa.StringArray], *, geometry: Sequence[bytes | None]) -> None:
        """Append a batch: its columns of text, and the WKB of each row."""
        if self._writer is None or len(columns) != self._width:
            self._open(len(columns))
        fields = [*(f"c{number}" for number in range(len(columns))), GEOMETRY]
        batch = pa.table([*columns, pa.array(geometry, pa.binary())], names=fields)
        if self._writer:
            self._writer.write_table(batch, row_group_size=max(batch.num_rows, 1))

    def close(self) -> None:
        """Finish the last file; nothing can be written afterwards."""
        if self._writer:
            self._writer.close()
            self._writer = None

    def relation(self) -> str:
        """The SQL text of the whole table, rows in the order in which they were written."""
        listed = ", ".join(literal(path) for path in self._paths)
        return f"read_parquet([{listed}], union_by_name = true)"

    def _open(self, width: int) -> None:
        self.close()
        path = str(self._folder / f"{self._name}-{len(self._paths)}.parquet")
        schema = pa.schema(
            [(f"c{number}", pa.string()) for number in range(width)] + [(GEOMETRY, pa.binary())]
        )
        self._writer = pq.ParquetWriter(path, schema, compression="snappy")
        self._paths.append(path)
        self._width = width
