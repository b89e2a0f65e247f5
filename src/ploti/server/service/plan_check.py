"""What a check's build starts from, and what is to become of its result."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from ploti.errors import Expired, SourceError
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant, Value
from ploti.server.build.candidate import (
    Base,
    Broken,
    BuildResult,
    Candidate,
    FileRole,
    Replacement,
    Unchanged,
)
from ploti.server.build.limits import Limit
from ploti.server.ports.rows import AttemptRow, DatasetRow, HoldRow, StateRow
from ploti.server.ports.store import Transaction
from ploti.server.release.accepted import Accepted
from ploti.server.release.decide import Verdict, review
from ploti.server.release.known import (
    Known,
    Role,
    records_key,
    same_bytes,
    same_records,
    settings_key,
)
from ploti.server.service.prune_old import KEPT
from ploti.server.service.show_dataset import find_dataset
from ploti.server.service.show_version import snapshot_of
from ploti.server.sources.source import Source

RESTORED = "restored"
"""The settings of a state that is an older version's snapshot, which no reader reads."""

READ_WHOLE_EVERY = timedelta(days=7)
"""A source is read whole this often, whatever its `ETag` and `Last-Modified` say."""


class Job(Value, kw_only=True):
    """What a build starts from, as it stood when the source's bytes were there.

    The `snapshot` of a base, and its `gone`, are names of blobs until paths are put in their
    place. With `always` it ends as a version, even where nothing differs. `matched_to` is the
    version released again, where that is not the base (S-21).
    """

    attempt: AttemptRow
    dataset: DatasetRow
    hold: HoldRow | None
    known: list[Known]
    accepted: list[Accepted]
    base: Base | None
    always: bool = False
    restores: Base | None = None
    matched_to: Base | None = None
    gone_since: int = 0
    replaces: Replacement | None = None
    id_maps: list[str] = []
    lifted: Limit | None = None

    @property
    def settings(self) -> str:
        """The key of the settings that the build obeys; of what is restored, one of no settings."""
        return RESTORED if self.restores else settings_key(self.dataset.declaration)


class Failed(Value, kw_only=True):
    """The source could not be read."""

    detail: str


class Same(Value, kw_only=True):
    """The state is the one that is current, on hold, or discarded last."""

    role: Role


class Take(Value, kw_only=True):
    """A new version, with its review."""

    candidate: Candidate
    verdict: Verdict


Plan = Failed | Same | Take


def prepare(
    tx: Transaction,
    attempt: AttemptRow,
    *,
    now: Instant,
    source: Source | None,
    always: bool = False,
    restores: int | None = None,
) -> Job:
    """Everything that the build and the plan depend on, read as one moment.

    Raises SourceError where the bytes came from `source` and another is declared by now.
    """
    dataset = find_dataset(tx, attempt.dataset_id)
    if source is not None and dataset.declaration.source != source:
        raise SourceError("The source was declared anew while it was read: check again")
    states = tx.states.of(dataset.id)
    return Job(
        attempt=attempt,
        dataset=dataset,
        hold=tx.holds.open_of(dataset.id),
        known=list(states.values()),
        accepted=tx.holds.accepted(dataset.id),
        base=find_base(tx, dataset, dataset.current_version),
        always=always,
        restores=find_base(tx, dataset, restores),
        matched_to=_matched_to(tx, dataset),
        id_maps=find_maps(tx, dataset, after=restores or dataset.released_again),
        gone_since=tx.versions.first_since(dataset.id, Instant.of(now - KEPT))
        or dataset.next_number,
    )


def recognise(job: Job, sha256: str) -> Same | None:
    """Whether these bytes were met before, so that nothing need be built."""
    if job.always:
        return None
    role = same_bytes(job.known, sha256=sha256, settings=job.settings)
    return None if role is None else Same(role=role)


def trusted_state(tx: Transaction, dataset_id: DatasetId, *, now: Instant) -> StateRow | None:
    """The state that the source may be asked about, by what was said of it.

    It was built under the present declaration, from the present address, and read whole not long
    ago: what servers say of their files is wrong now and then.
    """
    dataset = find_dataset(tx, dataset_id)
    settings, url = settings_key(dataset.declaration), dataset.declaration.source.url
    trusted = [
        (state.whole_at, state)
        for state in tx.states.of(dataset_id).values()
        if state.whole_at and now - state.whole_at < READ_WHOLE_EVERY
        if state.validators and state.validators.url == url and state.settings == settings
    ]
    return max(trusted, key=lambda found: found[0])[1] if trusted else None


def plan(job: Job, result: BuildResult) -> Plan:
    """What becomes of a build's result."""
    match result:
        case Broken(detail=detail):
            return Failed(detail=detail)
        case Unchanged():
            return Same(role=Role.CURRENT)
        case Candidate():
            records = records_key(result)
            role = same_records(job.known, records=records, settings=job.settings)
            if role is not None and not job.always:
                return Same(role=role)
            holds = job.dataset.declaration.holds
            verdict = review(result, base=job.base, holds=holds, accepted=job.accepted)
            return Take(candidate=result, verdict=verdict)
        case _:
            assert_never(result)


def find_maps(tx: Transaction, dataset: DatasetRow, *, after: int | None) -> list[str]:
    """The blobs of the id maps of versions after one, oldest first; none without one.

    Raises Expired where one is past retention: ids that were replaced since stay replaced (S-23).
    """
    if after is None or dataset.current_version is None:
        return []
    maps = []
    for number in tx.versions.replaced(dataset.id, after=after):
        files = tx.versions.files(dataset.id, number)
        found = [f.blob for f in files if f.role is FileRole.ID_MAP and f.format == "parquet"]
        if not found:
            raise Expired(
                f"The id map of version {number} of {dataset.id} is past retention: the ids of"
                f" version {after} cannot be told from it any more"
            )
        maps += found
    return maps


def _matched_to(tx: Transaction, dataset: DatasetRow) -> Base | None:
    """The version released again, while its snapshot is kept and it is not the base."""
    number = dataset.released_again
    if number is None or number == dataset.current_version:
        return None
    files = tx.versions.files(dataset.id, number)
    kept = any(file.role is FileRole.SNAPSHOT for file in files)
    return find_base(tx, dataset, number) if kept else None


def find_base(tx: Transaction, dataset: DatasetRow, number: int | None) -> Base | None:
    """A version with the names of the blobs that a build reads of it."""
    version = None if number is None else tx.versions.get(dataset.id, number)
    if version is None:
        return None
    content = tx.versions.content(dataset.id, version.version)
    files = tx.versions.files(dataset.id, version.version)
    snapshot = snapshot_of(files)
    return Base(
        version=version.version,
        schema=content.schema,
        schema_version=version.schema_version,
        row_count=version.row_count,
        snapshot=snapshot.blob,
        buckets=content.buckets,
        gone=next((file.blob for file in files if file.role is FileRole.GONE), None),
    )
