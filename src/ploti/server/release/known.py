"""Which states of a source were seen before, so that they are not built again (S-27)."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from ploti.model import wire
from ploti.model.wire import Value
from ploti.server.build.candidate import Candidate
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.written import reading_key


class Role(StrEnum):
    """What became of a source's state."""

    CURRENT = "current"
    ON_HOLD = "on_hold"
    DISCARDED = "discarded"


class Known(Value, kw_only=True):
    """A state that was built: its bytes, the key of its records, and under which settings."""

    role: Role
    sha256: str
    records: str
    settings: str


def settings_key(declaration: Declaration) -> str:
    """Equal for declarations under which a state is read and reviewed alike."""
    obeyed = reading_key(declaration).encode() + wire.encode(declaration.holds)
    return hashlib.sha256(obeyed).hexdigest()


def records_key(candidate: Candidate) -> str:
    """Equal for states with the same records under the same columns."""
    told = candidate.state_digest.encode() + wire.encode(candidate.schema)
    return hashlib.sha256(told).hexdigest()


def same_bytes(known: list[Known], *, sha256: str, settings: str) -> Role | None:
    """What became of these bytes when they were met before under the same settings."""
    alike = {state.role for state in known if (state.sha256, state.settings) == (sha256, settings)}
    return _telling(alike)


def same_records(known: list[Known], *, records: str, settings: str) -> Role | None:
    """What became of a state with the same records under the same settings.

    The current state is not looked at: a build compares with it row by row.
    """
    alike = {
        state.role for state in known if (state.records, state.settings) == (records, settings)
    }
    return _telling(alike - {Role.CURRENT})


def _telling(roles: set[Role]) -> Role | None:
    return next((role for role in Role if role in roles), None)
