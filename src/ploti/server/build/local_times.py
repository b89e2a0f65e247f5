"""Stage: the instants of local date-times, and what is told of those that clocks skip or repeat."""

from __future__ import annotations

from typing import NamedTuple, cast

from ploti.model.admin import Finding
from ploti.model.sql import identifier, literal
from ploti.server.build import texts


class LocalTimes(NamedTuple):
    """A column of texts of which some may be local date-times of a zone."""

    name: str
    field: str
    zone: str

    @property
    def instant(self) -> str:
        """SQL of a text with a local date-time as its instant, of any other text as it stands.

        Of an hour met twice, the first is meant; a time that was skipped is as late as by the
        clock before it was put forward.
        """
        first = f"CASE WHEN {self._is_shown(self._before)} THEN {self._before} ELSE {self._any} END"
        written = texts.moment_text("timestamp", f"({first})")
        return f"CASE WHEN {self._is_local} THEN {written} ELSE {identifier(self.field)} END"

    @property
    def skipped(self) -> str:
        """SQL of whether no clock of the zone ever showed a text's date-time."""
        return f"(NOT {self._is_shown(self._any)})"

    @property
    def repeated(self) -> str:
        """SQL of whether the clocks of the zone showed a text's date-time twice."""
        return f"({self._is_shown(self._before)} AND {self._before} <> {self._any})"

    @property
    def _is_local(self) -> str:
        return f"regexp_full_match({identifier(self.field)}, '{texts.MOMENT}')"

    @property
    def _local(self) -> str:
        return (
            f"TRY_CAST(CASE WHEN {self._is_local} THEN {identifier(self.field)} END AS TIMESTAMP)"
        )

    @property
    def _any(self) -> str:
        """SQL of the instant that DuckDB gives: of an hour met twice, the last."""
        return f"({self._local} AT TIME ZONE {literal(self.zone)})"

    @property
    def _before(self) -> str:
        """SQL of the instant by the zone's offset of a day earlier."""
        day = f"({self._any} - INTERVAL 24 HOURS)"
        offset = f"(({day} AT TIME ZONE {literal(self.zone)}) - ({day} AT TIME ZONE 'UTC'))"
        return f"(({self._local} - {offset}) AT TIME ZONE 'UTC')"

    def _is_shown(self, instant: str) -> str:
        """SQL of whether clocks showed the text's date-time at an instant."""
        return f"(({instant} AT TIME ZONE {literal(self.zone)}) = {self._local})"


def unclear_sql(relation: str, times: LocalTimes) -> str:
    """SQL of one row: how many texts are skipped times and one of them, the same of repeated."""
    field = identifier(times.field)
    found = [
        f"count(*) FILTER ({which}), min({field}) FILTER ({which})"
        for which in (times.skipped, times.repeated)
    ]
    return f"SELECT {', '.join(found)} FROM {relation}"


def unclear_findings(times: LocalTimes, found: tuple[object, ...]) -> list[Finding]:
    """What the row of `unclear_sql` tells: nothing, or a finding for each of its two counts."""
    skipped, a_skipped, repeated, a_repeated = found
    told = (
        ("skipped_times", "never showed", skipped, a_skipped),
        ("repeated_times", "showed twice, read as the first", repeated, a_repeated),
    )
    return [
        Finding(
            reason=None,
            kind=kind,
            subject=times.name,
            message=(
                f"{times.name} has date-times that clocks of {times.zone} {which}: {count} of them"
            ),
            examples=[cast("str", example)],
        )
        for kind, which, count, example in told
        if count
    ]
