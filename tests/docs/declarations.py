"""The page of a declaration's settings, which fails to be made when one is not told."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from tests.docs.text import code, codes, page, table

from ploti.model.schema import TYPES
from ploti.server.sources import declaration, reference_systems
from ploti.server.sources.formats import FORMATS, SPATIAL
from ploti.server.sources.source import FETCHING, OPTIONS, SETTINGS

TOP = {
    "id": ("required", "The dataset's id: `ds_` and lower-case words joined by `_`."),
    "title": ("required", "What people call it."),
    "place": ("required", "The place, from the large to the small: `us/fl/orange`."),
    "topic": ("required", "The topic, in the same form: `nature/trees`."),
    "license": ("-", "The licence under which the source gives it."),
    "attribution": ("-", "Whom to name."),
    "source": ("pushed only", "Where the bytes come from and how they are read; see below."),
    "key": ("`[]`", "The columns that identify a record, as the source calls them."),
    "geometry": ("-", "Geometry made of two columns, its CRS and precision; see below."),
    "columns": ("`{}`", "Types of columns that are not to be told from the values; see below."),
    "holds": ("see below", "When a version is held for review, or `off`; see below."),
    "repeated_keys": (
        "`hold`",
        (
            "Keys that are there more than once: `hold` the version, or `number` the rows of each,"
            " so that each is a record, told apart by what else it has."
        ),
    ),
    "continuation": (
        "`review`",
        (
            "Where many keys went and came, records are found again by what else they have:"
            " `review` holds what was found by likeness only, `auto` releases it,"
            " `off` goes by keys alone."
        ),
    ),
    "rename": (
        "`{}`",
        (
            "The dataset's name for a source's, such as `lng: lon`: a renamed column goes on as it"
            " was. All other settings name columns as the dataset does."
        ),
    ),
    "null_values": ("`[]`", 'Texts that mean null, such as `["-", "n/a"]`.'),
    "trim": ("`false`", "`true` takes outer blanks off values. Names are always trimmed."),
    "timezone": (
        "-",
        (
            "Where local date-times are from, such as `America/New_York`: they become instants. Of "
            "an hour that a clock shows twice, the first is meant; such times, and those that no "
            "clock shows, are told as findings."
        ),
    ),
    "ignore_changes": (
        "`[]`",
        "Columns that are delivered, but whose change alone makes no record changed.",
    ),
    "compare": (
        "`{}`",
        (
            "The difference up to which two numbers of a column are the same, such as `lat: 1e-6`,"
            " always from the value held."
        ),
    ),
    "bad_rows": (
        "`fail`",
        "Rows of csv and tsv that cannot be read: `fail` the check, or `set_aside` those rows.",
    ),
    "check_every": (
        "-",
        "How often the source is checked: `24h`, `30m`, `7d`. Left out, only by hand.",
    ),
    "paused": (
        "as it was",
        "`true` has no check due. See `ploti admin datasets pause` and `resume`.",
    ),
}
SOURCE = {
    "kind": "`file`, `http`, `arcgis`, `socrata` or `ckan`. Left out with `url`, the dataset is "
    "only pushed.",
    "url": "An absolute path below `--file-roots` for `file`, an address for the others: of "
    "`arcgis` a layer's `.../FeatureServer/0` or `.../MapServer/0`, with `?where=...` for some of "
    "its rows; of `socrata` `.../resource/abcd-1234.json`; of `ckan` "
    "`.../api/3/action/datastore_search?resource_id=...` for a table, or "
    "`.../api/3/action/resource_show?id=...`, or the page `.../dataset/.../resource/...`, for the "
    "file that a resource leads to.",
    "format": f"One of {codes(FORMATS)}. Left out, it is told by the name and the first bytes.",
    "layer": "The layer, where a file has several; in JSON, where the rows are.",
    "sheet": "The sheet of a workbook.",
    "member": "The file inside an archive, where it has several.",
    "header_row": "The row that has the names, from 1.",
    "encoding": "The encoding, where it is not UTF-8: `cp1252`.",
    "delimiter": "The character between values.",
    "length_check": "`off` takes a file as it came from a server that states wrong lengths: a file "
    "that was cut short is then not told from a whole one.",
    "credential": "The name of a secret that the operator keeps for the source; see below.",
}
GEOMETRY = {
    "longitude": ("-", "The column with the longitude, or x in a CRS of another kind."),
    "latitude": ("-", "The column with the latitude, or y."),
    "crs": (
        f"`{reference_systems.DEGREES}`",
        (
            "The dataset's CRS, by its EPSG number. Two columns are in it; the geometry of a "
            "spatial format is brought to it, and is taken to be in it where the source does not "
            "say its own."
        ),
    ),
    "precision": (
        f"`{reference_systems.IN_DEGREES:g}` or `{reference_systems.IN_METRES:g}`",
        (
            "Coordinates are rounded to it, in degrees or in the units of a projected CRS: a power "
            "of ten, or `off`."
        ),
    ),
}
HOLDS = {
    "min_row_ratio": (
        f"`{declaration.MIN_ROW_RATIO}`",
        "A version with less than this share of the rows before is held, from 20 rows on.",
    ),
    "max_id_turnover": (
        f"`{declaration.MAX_ID_TURNOVER}`",
        "More than this share of the record ids gone is held; `off` never. From 20 rows on.",
    ),
    "min_filled_ratio": (
        f"`{declaration.MIN_FILLED_RATIO}`",
        (
            "A column whose share of values falls to this part of what it was is held; `off` "
            "never. From 20 values on."
        ),
    ),
    "max_extent_shift": (
        f"`{declaration.MAX_EXTENT_SHIFT:g}`",
        (
            "A box that reaches beyond the one before by more than so many times its size is held; "
            "`off` never. From 20 rows on."
        ),
    ),
}


def declarations() -> str:
    """`declarations.md`: every setting of a declaration."""
    types = codes([*sorted(TYPES - {"geometry"}), "decimal(p,s)"])
    source = (*SETTINGS, *OPTIONS, *FETCHING)
    heads = ["setting", "default", "meaning"]
    return page(
        "Declarations",
        "A declaration says what a dataset is and where it comes from. It is a YAML file; several "
        "may stand in one file, with `---` between. `ploti admin datasets apply FILE` checks all "
        "of it before anything changes. An unknown setting is an error. "
        "[Declare a source](../howto/declare-a-source.md) has examples.",
        table(heads, _rows(TOP, declaration._SETTINGS)),
        "## source",
        table(
            ["setting", "for", "meaning"],
            [[code(name), _formats(name), SOURCE[name]] for name in source],
        ),
        "A setting that the format has no use for, declared or told, is refused. "
        f"These formats bring their own geometry: {codes(f for f in FORMATS if f in SPATIAL)}.",
        "## Sources that give rows",
        "`arcgis`, `socrata` and tables of `ckan` are read in pages, in the order of their own "
        "ids, and proved whole by the source's own count; an ArcGIS layer by its list of object "
        "ids too, and one without any in the order of all its columns. Columns that the address "
        "chooses (`$select` of Socrata, `fields` of CKAN) are the ones that are read. Their "
        "columns and types are those that the source states. Columns that the "
        "server makes up (`OBJECTID`, `GlobalID`, lengths and areas of shapes, `:id`, `_id`) are "
        "left out unless `key` or `columns` names them. The first column of Socrata that has "
        "places is the geometry; one with addresses in it stays a column too. What an ArcGIS layer "
        "or a data dictionary says of a column in words, the meaning of its codes with it, is the "
        "column's description in the schema: the codes themselves are the values.",
        "## credential",
        "`credential: PERMITS` sends the secret in the server's variable `PLOTI_SOURCE_PERMITS` to "
        "the hosts in `PLOTI_SOURCE_PERMITS_HOSTS` (with commas between, `host:port` where the "
        "port is not the usual one), and to no other: not after a redirect to another server "
        "either. It is in no answer, no log and no reason of a failed check. How it is sent:",
        table(
            ["kind", "header"],
            [
                ["`http`", "`Authorization: Bearer SECRET`"],
                ["`arcgis`", "the same, and `X-Esri-Authorization: Bearer SECRET`"],
                ["`socrata`", "`X-App-Token: SECRET`"],
                ["`ckan`", "`Authorization: SECRET`"],
            ],
        ),
        "A secret that is written as a whole header, such as `X-Api-Key: 1234` or "
        "`Authorization: Basic ...`, is sent as it stands.",
        "## geometry",
        table(heads, _rows(GEOMETRY, declaration._GEOMETRY)),
        "## columns",
        "A column of the source and its type, such as `zip: string`. Without it a column gets the "
        "narrowest type that every value of the column fits, and a value such as `0012` keeps its "
        f"column a text. Key columns stay texts unless a type is given. Types: {types}.",
        "## holds",
        table(heads, _rows(HOLDS, _names(declaration.Holds))),
        "`holds: off` switches all thresholds off. A MAJOR schema change and a key that does not "
        "tell the rows apart are held all the same.",
    )


def _names(kind: type) -> list[str]:
    return [field.name for field in msgspec.structs.fields(kind)]


def _rows(told: dict[str, tuple[str, str]], names: Iterable[str]) -> list[list[str]]:
    """A row for each setting that there is; one that is not told fails here."""
    return [[code(name), *told[name]] for name in names]


def _formats(name: str) -> str:
    formats = OPTIONS.get(name)
    return "sources on the web" if name in FETCHING else codes(formats) if formats else "all"
