"""What every store does with workspaces, plans, members, keys, the audit and kept answers."""

import asyncio
from datetime import timedelta

import pytest
from tests.contract.conftest import Play
from tests.fakes.plans import ALL_OPEN
from tests.fakes.releases import NOW, declare

from ploti.model.account import Plan, PlanTerms, WorkspacePatch
from ploti.model.ids import (
    DatasetId,
    KeyId,
    MemberId,
    PlanId,
    SubscriptionId,
    WorkspaceId,
)
from ploti.model.subscription import Selection
from ploti.model.wire import Instant
from ploti.server.adapters.plans import LocalPlans
from ploti.server.membership.rights import Rights, lies_in, opens
from ploti.server.ports.rows import (
    AnswerRow,
    AuditRow,
    JobKind,
    KeyRow,
    MemberRow,
    SubscriptionRow,
    WorkspaceRow,
)
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.bring_workspace import bring_workspace
from ploti.server.service.change_membership import bring_subscription
from ploti.server.service.manage_workspaces import update_workspace
from ploti.server.service.read_plans import PlansChanged, lock_membership

ONE, TWO = WorkspaceId("ws_1"), WorkspaceId("ws_2")
ADA = MemberId("mem_ada")
KEY = KeyId("key_1")
LATER = Instant.of(NOW + timedelta(hours=1))


def set_up(tx: Transaction) -> None:
    tx.plans.add(Plan(id=PlanId("all"), created_at=NOW))
    tx.plans.add(
        Plan(id=PlanId("few"), topics=["roads"], datasets=[DatasetId("ds_a")], created_at=NOW)
    )
    for workspace, plan, public in ((ONE, "all", False), (TWO, "few", True)):
        tx.workspaces.add(
            WorkspaceRow(
                id=workspace,
                name=workspace,
                coverage=None if workspace == ONE else ["us/fl"],
                plan_id=PlanId(plan),
                public=public,
                created_at=NOW,
            )
        )
    tx.members.add(MemberRow(id=ADA, workspace_id=ONE, name="Ada", created_at=NOW))
    tx.keys.add(key())


def key(number: int = 1, **changed: object) -> KeyRow:
    fields: dict[str, object] = {
        "id": KeyId(f"key_{number}"),
        "workspace_id": ONE,
        "member_id": ADA,
        "permissions": ["feeds"],
        "prefix": "ploti_abcdef",
        "digest": f"d{number}",
        "created_at": NOW,
    }
    return KeyRow(**(fields | changed))  # type: ignore[arg-type]


def test_a_key_is_known_by_its_digest_until_it_is_revoked_or_expires(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        await store.write(lambda tx: tx.keys.add(key(2, expires_at=LATER)))
        known = await store.read(lambda tx: tx.keys.principal("d1", now=NOW))
        assert known is not None
        assert (known.workspace_id, known.member_id, known.permissions) == (ONE, ADA, {"feeds"})
        assert await store.read(lambda tx: tx.keys.principal("d", now=NOW)) is None
        assert await store.read(lambda tx: tx.keys.principal("d2", now=NOW)) is not None
        assert await store.read(lambda tx: tx.keys.principal("d2", now=LATER)) is None
        await store.write(lambda tx: tx.keys.revoke(KEY, at=NOW))
        await store.write(lambda tx: tx.keys.revoke(KEY, at=LATER))
        assert await store.read(lambda tx: tx.keys.principal("d1", now=NOW)) is None
        shown = await store.read(lambda tx: tx.keys.get(KEY))
        assert shown is not None
        assert (shown.key.revoked_at, shown.member_name) == (NOW, "Ada")

    play(story)


def test_all_keys_of_a_member_end_at_once(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        await store.write(lambda tx: tx.keys.add(key(2)))
        await store.write(lambda tx: tx.keys.add(key(3, member_id=MemberId("mem_bob"))))
        await store.write(lambda tx: tx.keys.revoke_of(ADA, at=NOW))
        alive = [
            digest
            for digest in ("d1", "d2", "d3")
            if await store.read(lambda tx, d=digest: tx.keys.principal(d, now=NOW))
        ]
        assert alive == ["d3"]

    play(story)


def test_keys_are_listed_newest_first_in_pages_and_by_workspace(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        await store.write(lambda tx: tx.keys.add(key(2, created_at=LATER)))
        await store.write(lambda tx: tx.keys.add(key(3, workspace_id=TWO)))

        def ids(tx: Transaction, workspace: WorkspaceId | None, limit: int) -> list[str]:
            found = tx.keys.page(workspace=workspace, before=None, limit=limit)
            return [each.key.id for each in found]

        assert await store.read(lambda tx: ids(tx, None, 9)) == ["key_2", "key_3", "key_1"]
        assert await store.read(lambda tx: ids(tx, ONE, 1)) == ["key_2"]
        rest = await store.read(
            lambda tx: tx.keys.page(workspace=ONE, before=(LATER, "key_2"), limit=9)
        )
        assert [each.key.id for each in rest] == ["key_1"]

    play(story)


def test_the_last_use_of_a_key_never_goes_back(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        for at in (LATER, NOW):
            await store.write(lambda tx, at=at: tx.keys.note_use({KEY: at}))
        shown = await store.read(lambda tx: tx.keys.get(KEY))
        assert shown is not None
        assert shown.key.last_used_at == LATER

    play(story)


def test_workspaces_tell_their_coverage_and_plan(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        both = {ONE, TWO, WorkspaceId("ws_none")}
        assert await store.read(lambda tx: tx.workspaces.coverage(both)) == {
            ONE: None,
            TWO: ["us/fl"],
        }
        plans = await store.read(lambda tx: tx.plans.of(both))
        assert {each: plan.id for each, plan in plans.items()} == {ONE: "all", TWO: "few"}
        assert plans[TWO].topics == ["roads"]
        assert await store.read(lambda tx: tx.workspaces.public()) == [TWO]
        assert await store.read(lambda tx: tx.workspaces.on_plan(PlanId("few"))) == [TWO]
        found = await store.read(lambda tx: tx.plans.page(after=PlanId("all"), limit=9))
        assert [plan.id for plan in found] == ["few"]
        page = await store.read(lambda tx: tx.workspaces.page(after=(NOW, ONE), limit=9))
        assert [row.id for row in page] == [TWO]

    play(story)


def test_a_change_of_coverage_or_plans_is_counted_under_the_catalogues_lock(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: lock_membership(tx, ALL_OPEN, exclusive=True))
        await store.write(lambda tx: tx.datasets.revise())
        assert await store.read(lambda tx: tx.datasets.revision()) == 1
        with pytest.raises(PlansChanged):
            await store.write(lambda tx: lock_membership(tx, ALL_OPEN, exclusive=False))

    play(story)


@pytest.mark.parametrize(
    "rights",
    [
        Rights(coverage=None, plan=PlanTerms()),
        Rights(coverage=["us/fl"], plan=PlanTerms()),
        Rights(coverage=["us"], plan=PlanTerms(topics=["roads"])),
        Rights(coverage=["us"], plan=PlanTerms(topics=["road"])),
        Rights(coverage=["ca"], plan=PlanTerms(datasets=[DatasetId("ds_a")])),
        Rights(coverage=None, plan=PlanTerms(topics=["none"], datasets=[DatasetId("ds_b")])),
        Rights(coverage=["us/ga"], plan=None),
    ],
)
def test_the_listing_opens_what_the_rights_do(play: Play, rights: Rights) -> None:
    """One rule in two forms: of one filing in `membership`, of all in SQL."""

    async def story(store: Store) -> None:
        def fill(tx: Transaction) -> None:
            for dataset, place in (("ds_a", "us/fl"), ("ds_b", "us/ga"), ("ds_c", "ca")):
                declare(tx, DatasetId(dataset), place=place)

        await store.write(fill)
        filings = await store.read(lambda tx: tx.datasets.filings())
        page = await store.read(
            lambda tx: tx.datasets.page(workspaces=(), after=None, limit=9, open_by=[rights])
        )
        expected = {
            each.dataset_id
            for each in filings
            if (rights.coverage is None or lies_in(rights.coverage, each.place))
            and (rights.plan is None or opens(rights.plan, each))
        }
        assert {each.dataset.id for each in page} == expected

    play(story)


def test_the_listing_opens_what_is_delivered_whatever_the_rights(play: Play) -> None:
    async def story(store: Store) -> None:
        subscription = SubscriptionId("sub_1")

        def fill(tx: Transaction) -> None:
            declare(tx, DatasetId("ds_a"))
            tx.subscriptions.add(
                SubscriptionRow(
                    id=subscription,
                    workspace_id=ONE,
                    name="",
                    selection=Selection(datasets=[DatasetId("ds_a")]),
                    created_at=NOW,
                )
            )
            tx.memberships.join([(subscription, DatasetId("ds_a"))])

        await store.write(fill)
        nothing = [Rights(coverage=["none"], plan=PlanTerms())]

        def listed(tx: Transaction, workspace: WorkspaceId) -> int:
            found = tx.datasets.page(workspaces=[workspace], after=None, limit=9, open_by=nothing)
            return len(found)

        assert await store.read(lambda tx: listed(tx, ONE)) == 1
        assert await store.read(lambda tx: listed(tx, TWO)) == 0
        assert await store.read(lambda tx: tx.subscriptions.workspaces()) == [ONE]
        assert await store.read(lambda tx: tx.subscriptions.of(ONE)) == [subscription]

    play(story)


def test_the_audit_is_read_newest_first_and_by_subject(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        for subject in ("a", "b", "a"):
            entry = AuditRow(
                at=NOW,
                member_id=ADA,
                key_id=KEY,
                action="did",
                subject=subject,
                query={"full": "true"},
            )
            await store.write(lambda tx, entry=entry: tx.audit.add(entry))
        found = await store.read(lambda tx: tx.audit.page(before=None, limit=2, subject=None))
        assert [each.entry.subject for each in found] == ["a", "b"]
        assert (found[0].member_name, found[0].entry.query) == ("Ada", {"full": "true"})
        last = found[-1].entry.id
        rest = await store.read(lambda tx: tx.audit.page(before=last, limit=9, subject=None))
        assert [each.entry.subject for each in rest] == ["a"]
        only = await store.read(lambda tx: tx.audit.page(before=None, limit=9, subject="a"))
        assert len(only) == 2

    play(story)


def test_an_answer_is_found_by_key_and_name_until_it_is_old(play: Play) -> None:
    async def story(store: Store) -> None:
        answer = AnswerRow(key_id=KEY, name="n", request="r", answer="one", at=NOW)
        await store.write(lambda tx: tx.answers.add(answer))
        found = await store.read(lambda tx: tx.answers.find(KEY, "n", since=NOW))
        assert found == answer
        assert await store.read(lambda tx: tx.answers.find(KEY, "n", since=LATER)) is None
        assert await store.read(lambda tx: tx.answers.find(KEY, "m", since=NOW)) is None
        await store.write(lambda tx: tx.answers.prune(before=LATER))
        assert await store.read(lambda tx: tx.answers.find(KEY, "n", since=NOW)) is None

    play(story)


def test_a_change_of_coverage_is_carried_out_by_its_job_once(play: Play) -> None:
    """And a subscription changed meanwhile ends as both say."""

    async def story(store: Store) -> None:
        subscriptions = [SubscriptionId(f"sub_{number}") for number in range(3)]

        def fill(tx: Transaction) -> None:
            set_up(tx)
            for dataset, place in (("ds_a", "us/fl"), ("ds_b", "us/ga")):
                declare(tx, DatasetId(dataset), place=place)
            for each in subscriptions:
                row = SubscriptionRow(
                    id=each,
                    workspace_id=ONE,
                    name="",
                    selection=Selection(places=["us"]),
                    created_at=NOW,
                )
                tx.subscriptions.add(row)
                bring_subscription(tx, row, plans=ALL_OPEN, now=NOW)

        await store.write(fill)
        patch = WorkspacePatch(coverage=["us/ga"])
        await store.write(lambda tx: update_workspace(tx, ONE, patch, now=NOW))
        (job,) = await store.write(
            lambda tx: tx.jobs.claim(now=LATER, until=LATER, token="t", limit=9)
        )
        plans = LocalPlans(store)
        await asyncio.gather(*(bring_workspace(store, plans, Stopped(), job) for _ in range(2)))
        for each in subscriptions:
            assert await store.read(lambda tx, each=each: tx.memberships.of(each)) == {"ds_b"}
            assert await store.read(lambda tx, each=each: tx.log.last_numbers([each])) == {each: 3}
        assert not await store.read(lambda tx: tx.jobs.is_planned(JobKind.MEMBERSHIP, ONE))

    play(story)


class Stopped:
    """A clock that stands."""

    def now(self) -> Instant:
        return LATER
