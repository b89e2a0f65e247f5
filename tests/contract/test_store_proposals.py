"""What every store keeps of record ids: proposals, lists of removed records, maps of ids."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace
from tests.contract.conftest import Play
from tests.fakes.releases import NOW, declare, release

from ploti.model.admin import ProposalKind, ProposalState
from ploti.model.ids import DatasetId, ProposalId
from ploti.model.schema import Schema
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import Instant
from ploti.server.build.candidate import FileRole, Proposed
from ploti.server.ports.proposals import ProposalRow
from ploti.server.ports.rows import AttemptId, FileRow, VersionContent
from ploti.server.ports.store import Store, Transaction

A = DatasetId("ds_a")


def proposal(number: int, state: ProposalState = ProposalState.OPEN) -> ProposalRow:
    return ProposalRow(
        id=ProposalId(f"prop_{number}"),
        dataset_id=A,
        kind=ProposalKind.CONTINUE if number % 2 else ProposalKind.REPLACE,
        state=state,
        version=number,
        column=None if number % 2 else "name",
        proposed=Proposed(records=number, estimate=0.25, examples=["was {}; is {}"]),
        made_at=Instant.of(NOW + timedelta(seconds=number)),
        made_by=None,
    )


def test_proposals_are_paged_newest_first_without_those_that_wait(play: Play) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(1, 5):
            tx.proposals.add(proposal(number))
        tx.proposals.add(proposal(5, ProposalState.WAITING))
        tx.proposals.save(replace(proposal(2), state=ProposalState.REJECTED, note="no"))
        tx.proposals.drop(ProposalId("prop_4"))

    def look(tx: Transaction) -> None:
        page = tx.proposals.page(A, before=None, limit=2)
        assert [each.id for each in page] == ["prop_3", "prop_2"]
        assert page[1] == replace(proposal(2), state=ProposalState.REJECTED, note="no")
        rest = tx.proposals.page(A, before=(page[1].made_at, page[1].id), limit=2)
        assert rest == [proposal(1)]
        assert tx.proposals.page(DatasetId("ds_b"), before=None, limit=2) == []
        assert tx.proposals.get(ProposalId("prop_4")) is None
        assert tx.proposals.of_version(A, 5) == [proposal(5, ProposalState.WAITING)]
        assert tx.proposals.of_version(A, 2) == []

    async def story(store: Store) -> None:
        await store.write(fill)
        await store.read(look)

    play(story)


def file(number: int, role: FileRole) -> FileRow:
    return FileRow(
        dataset_id=A,
        version=number,
        role=role,
        format="parquet",
        blob=f"{number}/{role}",
        rows=1,
        bytes=1,
        sha256="0",
    )


def test_versions_tell_what_they_replaced_and_let_go_of_lists(play: Play) -> None:
    def fill(tx: Transaction) -> None:
        declare(tx, A)
        for _ in range(3):
            release(tx, A)
        for number in (1, 2, 3):
            tx.versions.add_files([file(number, FileRole.GONE), file(number, FileRole.LINKS)])
        version = tx.versions.get(A, 2)
        assert version is not None
        counts = Counts(added=0, changed=0, removed=0)
        tx.versions.fill(
            replace(version, reason=ResyncReason.RECORD_IDS_CHANGED, counts=counts),
            content=VersionContent(
                schema=Schema(columns=[], key_columns=["id"], geometry=None), buckets=[]
            ),
            files=[file(2, FileRole.ID_MAP)],
        )

    def look(tx: Transaction) -> None:
        assert tx.versions.replaced(A, after=0) == [2]
        assert tx.versions.replaced(A, after=2) == []
        assert tx.versions.content(A, 2).schema.key_columns == ["id"]
        first = tx.versions.get(A, 1)
        assert first is not None
        assert first.published_at is not None
        assert tx.versions.first_since(A, first.published_at) == 1
        assert tx.versions.first_since(A, Instant.of(NOW + timedelta(days=9))) == 0

    def drop(tx: Transaction) -> None:
        tx.versions.drop_links(A, 2)
        assert tx.versions.drop_gone(A, before=2) == [AttemptId(_built_by(tx, 1))]
        roles = {n: {f.role for f in tx.versions.files(A, n)} for n in (1, 2, 3)}
        both = {FileRole.GONE, FileRole.LINKS}
        assert [roles[n] & both for n in (1, 2, 3)] == [{FileRole.LINKS}, {FileRole.GONE}, both]
        assert FileRole.ID_MAP in roles[2]

    async def story(store: Store) -> None:
        await store.write(fill)
        await store.read(look)
        await store.write(drop)

    play(story)


def _built_by(tx: Transaction, number: int) -> str:
    version = tx.versions.get(A, number)
    assert version is not None
    return version.attempt_id
