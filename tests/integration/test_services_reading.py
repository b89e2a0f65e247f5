"""What keys may read: the catalogue, versions with their files, changes, digests."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.world import PERMITS, ROADS, World, play, table

from ploti.errors import Conflict, InvalidInput, NotDeliverable, NotFound, NotSubscribed, TooLarge
from ploti.model.ids import DatasetId
from ploti.model.version import File, ResyncReason, Version
from ploti.server.build.candidate import FileRole
from ploti.server.ports.store import Transaction
from ploti.server.service.read_catalogue import (
    get_dataset,
    get_schema,
    list_datasets,
    list_versions,
)
from ploti.server.service.read_datasets import get_admin_dataset, list_admin_datasets
from ploti.server.service.read_version import (
    current_snapshot,
    find_listing,
    get_digest,
    get_version,
    list_changes,
)
from ploti.server.service.show_version import NotMade

Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def version_of(world: World, number: int, *, format: str = "geoparquet") -> Version:
    return await world.read(
        lambda tx: get_version(
            tx,
            world.reader,
            PERMITS,
            number,
            format=format,
            blobs=world.blobs,
            now=world.clock.now(),
        )
    )


async def changes_of(world: World, number: int, **page: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"cursor": None, "limit": 100} | page
    name = await world.read(lambda tx: find_listing(tx, world.reader, PERMITS, number))
    text = await list_changes(world.blobs, name, **asked)
    found: dict[str, Any] = json.loads(text)
    return found


async def two_versions(world: World) -> None:
    await world.declare()
    await world.subscribe()
    await world.push(table({"a": "deck", "b": "shed"}))
    await world.push(table({"a": "pool", "c": "shed"}))


def formats(files: list[File] | None) -> list[str]:
    return [file.format for file in files or []]


def test_a_version_has_links_to_its_files_in_the_format_asked_for_r090_r098_r101(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        version = await version_of(world, 2)
        assert (version.previous_version, version.resync_required) == (1, False)
        assert (version.reason, version.schema_change) == (None, None)
        assert version.counts is not None
        assert version.files.changes is not None
        assert version.files.snapshot is not None
        assert version.files.changes[0].rows == version.counts.total == 3
        assert version.files.snapshot[0].rows == version.row_count == 2
        assert (version.files.schema.format, version.files.schema.rows) == ("json", 0)
        assert version.files.expires_at > version.published_at
        assert version.source_fetched_at < version.published_at
        assert formats(version.files.snapshot) == ["parquet"]
        as_csv = (await version_of(world, 2, format="csv")).files
        assert formats(as_csv.snapshot) + formats(as_csv.changes) == ["csv", "csv"]
        with pytest.raises(InvalidInput, match="geoparquet or csv"):
            await version_of(world, 2, format="shapefile")

    run(story)


def test_a_version_to_load_has_no_changes_r105_s14_s15(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        version = await version_of(world, 1)
        assert (version.resync_required, version.reason) == (True, ResyncReason.FIRST_VERSION)
        assert (version.previous_version, version.files.changes) == (None, None)
        with pytest.raises(Conflict, match="Version 1 has no list of changes: it is loaded"):
            await changes_of(world, 1)

    run(story)


def test_a_csv_that_was_not_made_yet_is_not_available(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)

        def without_csv(tx: Transaction) -> None:
            version, content = tx.versions.get(PERMITS, 2), tx.versions.content(PERMITS, 2)
            assert version is not None
            left = [file for file in tx.versions.files(PERMITS, 2) if file.format != "csv"]
            tx.versions.drop_files(PERMITS, 2)
            fresh = msgspec.structs.replace(version, version=9)
            files = [msgspec.structs.replace(file, version=9) for file in left]
            tx.versions.add(fresh, content=content, files=files)

        await world.write(without_csv)
        with pytest.raises(NotMade, match="is being made"):
            await version_of(world, 9, format="csv")

    run(story)


def test_changes_are_pages_of_the_finished_listing_r107(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        whole = await changes_of(world, 2)
        assert [(row["recordId"], row["change"]) for row in whole["changes"]] == [
            ("rec_a", "changed"),
            ("rec_b", "removed"),
            ("rec_c", "added"),
        ]
        assert whole["nextCursor"] is None
        first = await changes_of(world, 2, limit=2)
        rest = await changes_of(world, 2, limit=2, cursor=first["nextCursor"])
        assert first["changes"] + rest["changes"] == whole["changes"]
        assert rest["nextCursor"] is None
        for wrong in ("", "x", "-1", "4", "\u0663", "9" * 30):
            with pytest.raises(InvalidInput, match="cursor"):
                await changes_of(world, 2, cursor=wrong)

    run(story)


def test_changes_over_the_limit_are_too_large_and_name_the_file(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)

        def without_listing(tx: Transaction) -> None:
            version, content = tx.versions.get(PERMITS, 2), tx.versions.content(PERMITS, 2)
            assert version is not None
            left = [f for f in tx.versions.files(PERMITS, 2) if f.role is not FileRole.LISTING]
            tx.versions.drop_files(PERMITS, 2)
            fresh = msgspec.structs.replace(version, version=9)
            files = [msgspec.structs.replace(file, version=9) for file in left]
            tx.versions.add(fresh, content=content, files=files)

        await world.write(without_listing)
        with pytest.raises(TooLarge, match="changes file"):
            await changes_of(world, 9)

    run(story)


def test_files_need_a_subscription_that_delivers_the_dataset_s30_s31_r025(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        await world.declare(ROADS, topic="roads")
        who, now = world.reader, world.clock.now()
        for work in (
            lambda tx: get_version(tx, who, ROADS, 1, format="csv", blobs=world.blobs, now=now),
            lambda tx: get_digest(tx, who, ROADS, 1),
            lambda tx: current_snapshot(tx, who, ROADS, format="csv", blobs=world.blobs, now=now),
        ):
            with pytest.raises(NotSubscribed):
                await world.read(work)
        with pytest.raises(NotSubscribed):
            await world.read(lambda tx: find_listing(tx, who, ROADS, 1))
        shown = await world.read(lambda tx: get_dataset(tx, who, ROADS))
        assert (shown.id, shown.current) == (ROADS, None)
        page = await world.read(lambda tx: list_versions(tx, who, ROADS, after=None, limit=1))
        assert page.versions == []
        with pytest.raises(NotFound, match="no released version yet"):
            await world.read(lambda tx: get_schema(tx, who, ROADS, version=None))
        with pytest.raises(NotFound, match="no released version 3"):
            await version_of(world, 3)
        with pytest.raises(NotFound, match="no dataset"):
            await world.read(lambda tx: get_dataset(tx, who, DatasetId("ds_none")))

    run(story)


def test_what_is_no_longer_deliverable_answers_so_everywhere_s31(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)

        def stop(tx: Transaction) -> None:
            dataset = tx.datasets.get(PERMITS)
            assert dataset is not None
            tx.datasets.save(msgspec.structs.replace(dataset, deliverable=False))

        await world.write(stop)
        who = world.reader
        for work in (
            lambda tx: get_dataset(tx, who, PERMITS),
            lambda tx: get_schema(tx, who, PERMITS, version=1),
            lambda tx: list_versions(tx, who, PERMITS, after=None, limit=1),
            lambda tx: get_digest(tx, who, PERMITS, 1),
        ):
            with pytest.raises(NotDeliverable):
                await world.read(work)
        page = await world.read(
            lambda tx: list_datasets(tx, who, place=None, topic=None, cursor=None, limit=9)
        )
        assert page.datasets == []
        assert not (await world.read(lambda tx: get_admin_dataset(tx, PERMITS))).deliverable

    run(story)


def test_the_newest_snapshot_has_an_address_and_a_digest_its_buckets(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        who, now = world.reader, world.clock.now()
        address = await world.read(
            lambda tx: current_snapshot(
                tx, who, PERMITS, format="geoparquet", blobs=world.blobs, now=now
            )
        )
        assert "/datasets/ds_permits/2/" in address
        digest = await world.read(lambda tx: get_digest(tx, who, PERMITS, 2))
        assert (digest.row_count, len(digest.buckets)) == (2, 256)
        assert digest.content_digest == (await version_of(world, 2)).content_digest

    run(story)


def test_a_schema_is_that_of_its_version_with_its_change_r091(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        await world.push(table({"a": "pool,x", "c": "shed,y"}, columns="id,kind,street"))
        who = world.reader
        now = await world.read(lambda tx: get_schema(tx, who, PERMITS, version=None))
        before = await world.read(lambda tx: get_schema(tx, who, PERMITS, version=2))
        assert (now.schema_version, before.schema_version) == ("1.1", "1.0")
        assert now.change is not None
        assert [column.name for column in now.change.added] == ["street"]
        assert before.change is None
        assert [column.name for column in before.columns] == ["id", "kind"]
        assert before.key_columns == ["id"]

    run(story)


def test_versions_are_listed_after_a_number_r092_r093_s43(run: Play) -> None:
    async def story(world: World) -> None:
        await two_versions(world)
        await world.push(table({"a": "deck"}))
        who = world.reader
        page = await world.read(lambda tx: list_versions(tx, who, PERMITS, after=None, limit=2))
        assert [version.version for version in page.versions] == [1, 2]
        assert page.next_cursor == 2
        rest = await world.read(lambda tx: list_versions(tx, who, PERMITS, after=2, limit=2))
        assert [version.version for version in rest.versions] == [3]
        assert rest.next_cursor is None

    run(story)


def test_datasets_are_listed_by_id_below_a_place_and_a_topic(run: Play) -> None:
    async def story(world: World) -> None:
        places = {"ds_a": "us", "ds_b": "us/fl", "ds_c": "us/fl/orange", "ds_d": "us/flx"}
        for name, place in places.items():
            await world.declare(DatasetId(name), place=place)
        await world.subscribe(datasets=["ds_b"])

        async def listed(**asked: Any) -> tuple[list[str], str | None]:
            given = {"place": None, "topic": None, "cursor": None, "limit": 500} | asked
            page = await world.read(lambda tx: list_datasets(tx, world.reader, **given))
            assert all(each.subscribed is (each.id == "ds_b") for each in page.datasets)
            return [each.id for each in page.datasets], page.next_cursor

        assert await listed() == (list(places), None)
        assert await listed(place="us/fl") == (["ds_b", "ds_c"], None)
        assert await listed(place="us/fl", topic="permits") == (["ds_b", "ds_c"], None)
        assert await listed(topic="roads") == ([], None)
        assert await listed(limit=3) == (["ds_a", "ds_b", "ds_c"], "ds_c")
        assert await listed(limit=3, cursor="ds_c") == (["ds_d"], None)
        for wrong in ({"cursor": "x"}, {"place": "US"}, {"topic": "a//b"}, {"limit": 0}):
            with pytest.raises(InvalidInput, match=next(iter(wrong))):
                await listed(**wrong)

    run(story)


def test_staff_see_declarations_and_what_applying_changed(run: Play) -> None:
    async def story(world: World) -> None:
        dry = await world.declare(dry_run=True)
        assert (dry.created, dry.dry_run) == (True, True)
        with pytest.raises(NotFound):
            await world.read(lambda tx: get_admin_dataset(tx, PERMITS))
        assert (await world.declare()).created
        assert (await world.declare()).changed == []
        assert (await world.declare(title="Other")).changed == ["title"]
        shown = await world.read(lambda tx: get_admin_dataset(tx, PERMITS))
        assert (shown.declaration["title"], shown.title) == ("Other", "Other")
        await world.declare(ROADS)
        page = await world.read(lambda tx: list_admin_datasets(tx, cursor=None, limit=1))
        assert [each.id for each in page.datasets] == [PERMITS]
        assert page.next_cursor == PERMITS

    run(story)


def test_a_declaration_under_another_datasets_address_is_refused(run: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(InvalidInput, match="make them one"):
            await world.declare(PERMITS, id=ROADS)

    run(story)
