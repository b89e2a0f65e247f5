"""Declarations as they are written, stored and compared."""

from __future__ import annotations

import hashlib
import json

from msgspec.structs import asdict

from ploti.server.sources.declaration import (
    BAD_ROWS,
    CONTINUATION,
    REPEATED_KEYS,
    Declaration,
    Holds,
)
from ploti.server.sources.interval import written_interval
from ploti.server.sources.reference_systems import usual_precision

READER = 3
"""Raise it when a reader reads the same bytes otherwise: every dataset is then read again.

`tests/data/readers.json` has what is read of many files under this number. Bytes that were refused
before, and are read now, need no other number: no state stands for them.
"""

_READING = {"source", "key", "geometry", "columns", "repeated_keys", "continuation"} | {
    *("rename", "null_values", "trim", "timezone", "ignore_changes", "compare", "bad_rows")
}
_PLACE = {"source.kind", "source.url", "source.credential", "source.length_check"}


def as_written(declaration: Declaration) -> dict[str, object]:
    """The settings as a declaration's file has them, without those that are as if left out.

    `parse_declaration` of it gives an equal declaration.
    """
    source, geometry = declaration.source, declaration.geometry
    written: dict[str, object] = {
        "id": declaration.id,
        "title": declaration.title,
        "place": declaration.place,
        "topic": declaration.topic,
        "license": declaration.license,
        "attribution": declaration.attribution,
        "source": _given(asdict(source) | {"length_check": None if source.length_check else "off"}),
        "key": declaration.key,
        "geometry": _given(
            {
                "longitude": geometry and geometry.longitude,
                "latitude": geometry and geometry.latitude,
                "crs": declaration.crs,
                "precision": _unless(usual_precision(declaration.system), declaration.precision),
            }
        ),
        "columns": declaration.columns,
        "holds": _given(
            {
                name: _unless(default, getattr(declaration.holds, name))
                for name, default in asdict(Holds()).items()
            }
        ),
        "repeated_keys": _other(REPEATED_KEYS, declaration.repeated_keys),
        "continuation": _other(CONTINUATION, declaration.continuation),
        "rename": declaration.rename,
        "null_values": declaration.null_values,
        "trim": declaration.trim or None,
        "timezone": declaration.timezone,
        "ignore_changes": declaration.ignore_changes,
        "compare": declaration.compare,
        "bad_rows": _other(BAD_ROWS, declaration.bad_rows),
        "check_every": declaration.check_every and written_interval(declaration.check_every),
        "paused": declaration.paused,
    }
    return _given(written)


def canonical(declaration: Declaration) -> bytes:
    """One JSON text for all ways to write the same declaration."""
    return _sorted_json(as_written(declaration))


def reading_key(declaration: Declaration) -> str:
    """What makes two reads of the same bytes alike: equal keys, equal builds.

    A sha256 over the settings that a build obeys and the number of the readers' behaviour; filing,
    texts for people and the thresholds of review are not in it.
    """
    obeyed = {
        name: value
        for name, value in _flat(as_written(declaration)).items()
        if name.partition(".")[0] in _READING and name not in _PLACE
    }
    obeyed["reader"] = READER
    return hashlib.sha256(_sorted_json(obeyed)).hexdigest()


def changed_settings(before: Declaration | None, after: Declaration) -> list[str]:
    """The settings that are other than before, such as `title` or `source.url`, sorted.

    Before the first declaration every setting was left out.
    """
    old = _flat(as_written(before)) if before else {}
    new = _flat(as_written(after))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _given(settings: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if value not in (None, [], {})}


def _unless(default: float, value: float | None) -> float | str | None:
    if value is None:
        return "off"
    return None if value == default else value


def _other(default: str, value: str) -> str | None:
    return None if value == default else value


def _flat(settings: dict[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            flat[name] = value
    return flat


def _sorted_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
