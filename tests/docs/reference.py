"""The pages of reference out of the code: commands, settings, errors, events, destinations."""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from unittest.mock import patch

import msgspec
from tests.docs.text import code, codes, first_sentence, page, table

from ploti import errors
from ploti.cli.groups import make_app
from ploti.cli.serve import serve
from ploti.errors import BY_CODE, MEANINGS, ExitStatus, PlotiError
from ploti.model.event import KINDS, Event, EventType, HoldReason, Links, RemovedReason, StaleReason
from ploti.model.schema import (
    TYPES,
    AddedColumn,
    Geometry,
    GeometryChange,
    KeyChange,
    RetypedColumn,
    SchemaChange,
)
from ploti.model.version import Counts, ResyncReason
from ploti.sync.destinations import FORMS
from ploti.sync.destinations.duckdb import tables
from ploti.sync.destinations.postgres.values import TYPES as POSTGRES_TYPES
from ploti.sync.destinations.postgres.values import declared as postgres_type
from ploti.sync.destinations.sqlite import GeoPackage
from ploti.sync.destinations.sqlite.layout import Layout
from ploti.sync.destinations.sqlite.values import TYPES as SQLITE_TYPES
from ploti.sync.held import State
from ploti.sync.status import Standing

EXIT_STATUSES = {
    ExitStatus.DONE: "It was done. A push that is held for review is done too.",
    ExitStatus.FAILED: "It failed; the line on standard error says why.",
    ExitStatus.USAGE: "The command, a setting or a declaration's file is wrong.",
    ExitStatus.BEHIND: "A dataset of the destination is not up to date.",
    ExitStatus.BUSY: "The destination is locked or in use.",
    ExitStatus.DIFFERS: "A table is not equal to the version that it holds.",
    ExitStatus.REFUSED: "The key is refused, or lacks the permission.",
    ExitStatus.UNREACHABLE: "The server cannot be reached.",
}


def commands() -> str:
    """`commands.md`: every command, out of the command line itself."""
    with patch.object(sys, "argv", ["ploti"]):  # a usage line has the name of what is run
        made = make_app().generate_docs(output_format="markdown", recursive=True)
    _, _, rest = made.partition("\n")
    about = (
        "Every command has `--help`. Commands that print results have `--json`. Options come after "
        "the arguments or before them. What a command's exit status means is in "
        "[Errors](errors.md); the settings of `ploti serve` are in [Settings](settings.md)."
    )
    return page("Commands", about, rest)


def settings() -> str:
    """`settings.md`: what the operator of a server sets."""
    from ploti.server.settings import Settings

    told = dict(_parameters_told(inspect.getdoc(serve) or ""))
    parameters = inspect.signature(serve, eval_str=True).parameters
    told |= dict(_annotations_told(parameters.values()))
    given = {field.name: field.default for field in msgspec.structs.fields(Settings)}
    rows = [
        [
            code("--" + name.replace("_", "-")),
            code(f"PLOTI_{name.upper()}") if parameter.default is None else "-",
            _default(name, given[name]),
            told[name],
        ]
        for name, parameter in parameters.items()
    ]
    client = [
        ["`PLOTI_API_KEY`", "-", "The key that opens the API."],
        ["`PLOTI_API_URL`", "`http://127.0.0.1:8080`", "The address of the server."],
        [
            "`PLOTI_PROFILE`",
            "the one in use",
            "The profile of `ploti config` to take; key and address above win over it.",
        ],
        ["`PLOTI_CONFIG`", "`~/.config/ploti/config.toml`", "The file of profiles."],
        ["`PLOTI_WEBHOOK_SECRET`", "-", "The secret that webhooks are verified with here."],
    ]
    return page(
        "Settings",
        "## The server",
        "`ploti serve` takes each setting as a flag. Some are read from a variable too; the flag "
        "wins. A variable with the prefix `PLOTI_` that is no setting is an error.",
        table(["flag", "variable", "default", "meaning"], rows),
        "Sizes are written `2GiB`, `500MiB` or as a number of bytes.",
        "`PLOTI_SOURCE_NAME` is a secret that a source is asked with, and "
        "`PLOTI_SOURCE_NAME_HOSTS` names the hosts that may get it; NAME is what declarations "
        "call it. [Declarations](declarations.md#credential) tells more.",
        "## The client",
        "The commands and `import ploti` read these variables.",
        table(["variable", "default", "meaning"], client),
    )


def _annotations_told(parameters: Iterable[inspect.Parameter]) -> Iterator[tuple[str, str]]:
    """What is too long for a line of the docstring, which help would break where it breaks."""
    for parameter in parameters:
        for each in getattr(parameter.annotation, "__metadata__", ()):
            if each.help is not None:
                yield parameter.name, each.help


def _parameters_told(doc: str) -> Iterator[tuple[str, str]]:
    """Each parameter with its meaning, which may go over several lines."""
    for told in re.split(r"\n(?=\S)", doc.partition("----------\n")[2]):
        name, *meaning = told.split()
        yield name, " ".join(meaning)


def _default(name: str, value: object) -> str:
    if value is msgspec.NODEFAULT:
        return "required"
    if value is None or value == ():
        return "-"
    if name in {"build_memory", "max_source", "min_free"}:
        return code(f"{typing.cast('int', value) >> 30}GiB")
    return "off" if value is False else code(value)


def errors_page() -> str:
    """`errors.md`: every code and every class, with its statuses."""
    rows = [
        [
            code(each.value),
            meaning.status,
            code(f"ploti.{BY_CODE[each].__name__}"),
            meaning.exit_status.value,
            "yes" if meaning.retry else "no",
            first_sentence(BY_CODE[each].__doc__),
        ]
        for each, meaning in MEANINGS.items()
    ]
    ours = [
        [code(f"ploti.{kind.__name__}"), kind.exit_status.value, first_sentence(kind.__doc__)]
        for kind in _own_classes()
    ]
    return page(
        "Errors",
        "The server answers an error as `application/problem+json` with `type`, `title`, `status`, "
        "`detail` and `code`; `invalid_input` also has `errors`, a list of `field` and `message`. "
        "The SDK raises the class of the code. A command prints one line on standard error and "
        "ends with the exit status.",
        "## Codes of the server",
        table(["code", "HTTP", "class", "exit", "try again", "meaning"], rows),
        "## Errors of the client's side",
        "All of them, and those above, are `ploti.PlotiError`.",
        table(["class", "exit", "meaning"], ours),
        "## Exit statuses",
        table(["exit", "meaning"], [[s.value, EXIT_STATUSES[s]] for s in ExitStatus]),
        "A command that Ctrl-C ends has the status 130.",
    )


def _own_classes() -> list[type[PlotiError]]:
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, PlotiError)
        and kind is not PlotiError
        and not issubclass(kind, errors.ApiError)
    ]


def events() -> str:
    """`events.md`: the types of events, their fields, and what those may be."""
    sections = [part for name, kind in KINDS.items() for part in _event(name, kind)]
    parts = [Counts, Links, SchemaChange, AddedColumn, RetypedColumn, KeyChange, GeometryChange]
    enums = [HoldReason, RemovedReason, ResyncReason, StaleReason]
    return page(
        "Events",
        "A subscription's log is a list of events, oldest first, numbered without a gap. How to "
        "read and replay it is in [The log](../explanation/log.md).",
        "## Every event",
        table(["field", "type"], _fields(Event)),
        "`data` has the fields below, by `type`. A reader passes over fields and types that it "
        "does not know.",
        *sections,
        "## Parts",
        *(part for kind in [*parts, Geometry] for part in _part(kind)),
        "## Reasons",
        table(["kind", "values", "meaning"], [_enum(kind) for kind in enums]),
    )


def _event(name: EventType, kind: type) -> Iterator[str]:
    yield f"## {name.value}"
    yield first_sentence(kind.__doc__)
    yield table(["field", "type"], _fields(kind))


def _part(kind: type) -> Iterator[str]:
    yield f"### {kind.__name__}"
    yield first_sentence(kind.__doc__)
    yield table(["field", "type"], _fields(kind))


def _enum(kind: type[typing.Any]) -> list[str]:
    return [code(kind.__name__), codes(kind), first_sentence(kind.__doc__)]


def _fields(kind: type) -> list[list[str]]:
    return [
        [code(field.encode_name), type_name(field.type)] for field in msgspec.structs.fields(kind)
    ]


def type_name(kind: object) -> str:
    """A field's type as the JSON has it."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        members = typing.get_args(kind)
        if set(members) == set(KINDS.values()):
            return "object, by `type`"
        names = [type_name(each) for each in members if each is not msgspec.UnsetType]
        return " or ".join(names) + (", may be left out" if msgspec.UnsetType in members else "")
    if typing.get_origin(kind) is list:
        return f"list of {type_name(typing.get_args(kind)[0])}"
    supertype = getattr(kind, "__supertype__", None)
    if supertype is not None:
        return type_name(supertype)
    plain = {int: "number", str: "text", bool: "true or false", types.NoneType: "null"}
    name = getattr(kind, "__name__", str(kind))
    return plain.get(typing.cast("type", kind)) or {"Instant": "time"}.get(name, code(name))


POSTGIS = "`geometry` with PostGIS, `bytea` without"


def destinations() -> str:
    """`destinations.md`: what sync writes into each kind of destination."""
    assert tables._TYPES.keys() == TYPES == SQLITE_TYPES.keys() == {*POSTGRES_TYPES, "geometry"}
    kinds = [*sorted(TYPES), "decimal(p,s)"]
    plain, geopackage = Layout(), GeoPackage()
    rows = [
        [
            code(each),
            code(tables._type(each)),
            POSTGIS if each == "geometry" else code(postgres_type(each, has_postgis=True)),
            code(plain.declared(each)),
            code(geopackage.declared(each)),
        ]
        for each in kinds
    ]
    return page(
        "Destinations",
        "`ploti feeds sync SUB --to DESTINATION` keeps a database in step with a subscription: "
        f"{', '.join(map(code, FORMS))}.",
        "## Tables",
        "A dataset becomes a table of the default schema, named after its id without `ds_`; "
        "`--table-name` gives another name to a single `--dataset`. It has the column "
        "`_ploti_record_id` and the dataset's own columns. In PostgreSQL and SQLite "
        "`_ploti_record_id` is the primary key; in DuckDB there is none. Columns that you "
        "add yourself stay until the dataset loses or retypes one (a MAJOR schema version), or has "
        "one of the same name.",
        table(["type of the column", "DuckDB", "PostgreSQL", "SQLite", "GeoPackage"], rows),
        "In DuckDB the type of a geometry carries its reference system: `GEOMETRY('OGC:CRS84')` is "
        "longitude and latitude. Any other stands there in full, as PROJJSON. That is long in a "
        "`DESCRIBE`, but by it DuckDB writes GeoParquet without an extension; by a mere "
        "`EPSG:2236` it cannot.",
        "In PostgreSQL (14 or newer) a table with the right columns is never emptied: a load "
        "writes only what differs, so that indexes, grants, views and foreign keys stay. Where "
        "the columns change for good (a MAJOR schema version), the table is made anew: its grants "
        "go along, and views over it stop it with an error that lists them, unless "
        "`--replace-views` has them made again over the new table, materialized ones with their "
        "indexes. Foreign keys to it and row security stop it too, for its dataset alone; indexes, "
        "triggers and grants on single columns that you added are to be made again. An index of "
        "your own may be unique: records exchange their values under it. A geometry has the SRID "
        "of its EPSG number in every row (4326 for longitude and latitude); the column takes every "
        "kind, with Z and M and without. What is synced goes into the first schema of the user's "
        "`search_path`; the user needs `CREATE` on it and on the database.",
        "In SQLite a geometry is WKB, a boolean is 0 or 1, and what SQLite has no exact type for "
        "is text: `0.50`, `2026-01-31`, `2026-01-31T06:13:02.000Z` (six decimals where there are "
        "microseconds; no `Z` for a `datetime`, which has no zone). So texts of one column sort as "
        "their dates do, down to the millisecond; cast a decimal to compare it as a number.",
        "A GeoPackage is such a SQLite file too, with a header before each WKB and the lists by "
        "which QGIS and GDAL know layers. A table has the column `_ploti_fid`, which numbers rows "
        "for these programs and is no record's for good. A reference system is told by authority "
        "and number. Each layer has a spatial index, which sync keeps right, and so do QGIS and "
        "GDAL when they edit it; a plain SQLite needs the functions of their library (`ST_MinX` "
        "and so on) to write to it. GDAL reads microseconds cut to milliseconds, and lists the "
        "two tables of what sync records as well.",
        "A folder has one GeoParquet file for each dataset, such as `permits.parquet`; a dataset "
        "without geometry gets plain Parquet with the same types. A snapshot is taken as it comes, "
        "byte for byte. Changes are folded into a new file, which takes the old one's place by one "
        "rename: whoever reads sees the one or the other, whole. A column that is new comes with "
        "the version that brings it, and columns of your own do not stay. Read it by anything: "
        '`geopandas.read_parquet("copy/permits.parquet")`. A library that opens a file by its name '
        "twice, as this one does, may meet one version after the other and fail: read again, or "
        "give it the open file.",
        "## Names",
        "A name that a destination cannot hold gets another one there, once: it stays, whatever "
        "comes later. In SQLite a table whose name begins with `sqlite_` or `_ploti_` (in a "
        "GeoPackage also `gpkg_` or `rtree_`) begins with `t_` in addition. In PostgreSQL a name "
        "of more than 63 bytes is cut and ends with eight digits made from the whole of it, and a "
        "column called as one of PostgreSQL's own (`ctid`, `xmin`, …) ends with `_`. The table "
        "`_ploti.names` there lists such columns with both names.",
        "## Limits",
        "SQLite holds 2,000 columns. PostgreSQL holds 1,600, the record id among them: a dataset "
        "of 1,599 columns is loaded whole with each version, for changes go through a stage with "
        "one column more. Of two columns whose names differ in the case of ASCII letters alone, "
        "DuckDB, by which sync reads files, would take one for the other: such a dataset, which no "
        "`ploti serve` makes, stays behind, with a reason that says what else to do.",
        "A load takes up to 500 MB of memory, whatever the number of rows. Into DuckDB, rows of "
        "many kilobytes each or of hundreds of columns of text may need more: such a load begins "
        "again, in the same transaction, with as much as DuckDB takes by itself, four fifths of "
        "the machine's memory.",
        "## What sync records",
        "The schema `_ploti` of the same database has two tables, `subscriptions` and `datasets`: "
        "the cursor, and which version each table holds. In SQLite and GeoPackages they are "
        "`_ploti_subscriptions` and `_ploti_datasets`. They change in the transaction that "
        "changes the data. Do not write to them.",
        "## Rows that others write",
        "A version is committed only where the table has as many rows as it. So rows that others "
        "added or took away are found at the next version, and the table is loaded anew; values "
        "that they changed are found by `--verify`, or by `ploti feeds verify` at any time. In "
        "PostgreSQL and SQLite rows are counted at a run's first change of a table, and added up "
        "from then on, for as long as it is proved that nobody else has written. They are counted "
        "each time where others write all the time (in PostgreSQL anywhere on the server), where "
        "the table has triggers, foreign keys, rules or row security, in PostgreSQL also where it "
        "has further unique indexes, and in SQLite where it has an `ON CONFLICT` clause: a tenth "
        "of a CPU second for a million rows in PostgreSQL, a hundredth in SQLite.",
        "## States",
        f"A dataset in the result of `sync` is in one of these states: {codes(State)}. "
        "The table for people has `current` in place of `held`. "
        f"`ploti feeds status` says of each dataset: {codes(Standing)}.",
        "## One at a time",
        "DuckDB lets one process write to a file, and no other read it meanwhile. Sync opens the "
        "file only for its transactions, and waits up to `--lock-timeout` seconds while another "
        "program has it open.",
        "PostgreSQL has readers and writers beside sync. Two clients of one subscription keep each "
        "other out by an advisory lock, so connect to the server itself or through a pooler that "
        "pools sessions; other subscriptions may share the database. Sync waits up to "
        "`--lock-timeout` seconds for a lock that another program has on a table. With `--follow` "
        "a lost connection is taken up again.",
        "A folder's files may be read at any time. One sync at a time is let in; `status` and "
        "`verify` wait up to `--lock-timeout` seconds for a commit, and a commit for them.",
        "SQLite, and so a GeoPackage, has readers beside the writer: they see the version "
        "before until the new one is committed. A commit waits up to `--lock-timeout` "
        "seconds for those that are reading. Between two versions sync keeps the file open, but "
        "locks it for nobody; a file in WAL mode it closes, so that it is whole.",
        "SIGTERM and Ctrl-C end a wait at once, and what PostgreSQL is at is broken off and taken "
        "back.",
    )
