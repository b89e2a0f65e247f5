"""`ploti feeds diff`: the net change between two versions of a dataset."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ploti.cli.datasets import Id
from ploti.cli.output import Json, print_line, print_next, say_counts
from ploti.client.connection import Client
from ploti.model.version import ChangeRow
from ploti.model.wire import encode

if TYPE_CHECKING:
    from ploti.sync.differences import Difference

From = Annotated[int, Parameter(help="The earlier version's number.")]
To = Annotated[int, Parameter(help="The later version's number.")]

_JSON = msgspec.json.Encoder(decimal_format="number")


def diff(dataset: Id, start: From, end: To, /, *, json: Json = False) -> None:
    """Show which records one version has that another has not, or has otherwise.

    It reads all changes files between the two or both snapshots, whichever is less. A record that
    was changed and changed back is no difference. Where ids were replaced in between, records are
    told by their new ones.
    """
    from ploti.sync import calls

    with Client() as client, calls.diff(client, dataset, start, end) as found:
        if json:
            _print_document(found)
            return
        for row in found.rows:
            print_line(row.change, row.record_id, _record(row))
        print_line(f"{say_counts(found.counts)}, by {found.by}")
        print_next(f"ploti feeds datasets download {dataset} {end} --to .")


def _record(row: ChangeRow) -> str:
    return "" if row.record is None else _JSON.encode(row.record).decode()


def _print_document(found: Difference) -> None:
    """One document, written while the rows come: there may be millions of them."""
    head = {
        "datasetId": found.dataset_id,
        "from": found.from_version,
        "to": found.to_version,
        "by": found.by,
        "counts": found.counts,
    }
    sys.stdout.write(encode(head).decode().removesuffix("}") + ',"changes":[')
    for number, row in enumerate(found.rows):
        told = {"op": row.op, "change": row.change, "recordId": row.record_id, "record": row.record}
        sys.stdout.write((",\n" if number else "\n") + _JSON.encode(told).decode())
    sys.stdout.write("]}\n")
