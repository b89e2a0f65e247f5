"""The demo's history: real states of a table of airports, and the true counts of each."""

from __future__ import annotations

import json
import tarfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from ploti.model.version import Counts

DATASET = "ds_world_airports"

DECLARATION: dict[str, object] = {
    "id": DATASET,
    "title": "Airports of the world",
    "place": "world",
    "topic": "transport/airports",
    "license": "MIT",
    "attribution": "airportsdata, Mike Borsetti and contributors",
    "key": ["icao"],
    "geometry": {"longitude": "lon", "latitude": "lat"},
    "continuation": "off",
}

_FOLDER = files("ploti.demo") / "airports"


class State(NamedTuple):
    """A state of the source: its file, its rows, and what changed against the one before.

    The numbers were counted by plain Python over the files, not by ploti.
    """

    name: str
    rows: int
    counts: Counts

    @property
    def date(self) -> str:
        """The day of the state, `2021-10-05`."""
        day = self.name.removesuffix(".csv").rpartition("_")[2]
        return f"{day[:4]}-{day[4:6]}-{day[6:]}"


def read_states() -> list[State]:
    """The states in order, with their true counts."""
    listed = json.loads((_FOLDER / "counts.json").read_text("utf-8"))
    return [
        State(
            name=each["file"],
            rows=each["rows"],
            counts=Counts(added=each["added"], changed=each["changed"], removed=each["removed"]),
        )
        for each in listed
    ]


def unpack(folder: Path) -> None:
    """Write the states' files into the folder."""
    with (
        as_file(_FOLDER / "airportsdata.tar.xz") as packed,
        tarfile.open(packed, "r:xz") as archive,
    ):
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                (folder / Path(member.name).name).write_bytes(content.read())
