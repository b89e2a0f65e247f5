"""What the references say of versions, their files and the dataset that has them."""

from __future__ import annotations

from tests.fakes.world import PERMITS, World, table
from tests.seeds.conftest import Play

from ploti.model.version import Version
from ploti.model.wire import plain
from ploti.server.service.read_catalogue import get_dataset, list_versions
from ploti.server.service.read_version import get_version


async def version_of(world: World, number: int, *, format: str = "geoparquet") -> Version:
    now = world.clock.now()
    return await world.read(
        lambda tx: get_version(
            *(tx, world.reader, PERMITS, number), format=format, blobs=world.blobs, now=now
        )
    )


async def begin(world: World) -> None:
    await world.declare()
    await world.subscribe()
    await world.push(table({"a": "deck", "b": "shed"}))
    await world.push(table({"a": "pool", "c": "barn", "d": "barn"}))


def test_a_version_has_a_snapshot_changes_and_its_schema_r088_r097_r098_r099(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        version = await version_of(world, 2)
        (snapshot,), (changes,) = version.files.snapshot or [], version.files.changes or []
        for file in (snapshot, changes):
            assert list(file.__struct_fields__) == ["url", "format", "rows", "bytes", "sha256"]
        schema = version.files.schema
        assert (schema.format, schema.rows) == ("json", 0)
        assert (version.schema_version, version.counts is not None) == ("1.0", True)

    run(story)


def test_rows_of_the_files_are_the_versions_counts_r102(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        version = await version_of(world, 2)
        (snapshot,), (changes,) = version.files.snapshot or [], version.files.changes or []
        counts = version.counts
        assert counts is not None
        assert snapshot.rows == version.row_count == 3
        assert changes.rows == counts.added + counts.changed + counts.removed == 4

    run(story)


def test_links_say_when_they_expire_an_hour_ahead_r100(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        before = world.clock.moment
        version = await version_of(world, 2)
        ahead = (version.files.expires_at - before).total_seconds()
        assert 3600 <= ahead <= 3605
        again = await version_of(world, 2)
        assert again.files.expires_at > version.files.expires_at

    run(story)


def test_files_are_geoparquet_or_parquet_unless_csv_is_asked_for_r101(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        for asked, found in (("geoparquet", "parquet"), ("csv", "csv")):
            version = await version_of(world, 2, format=asked)
            assert {file.format for file in version.files.snapshot or []} == {found}

    run(story)


def test_a_dataset_tells_its_current_version_r089_r207(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        before = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert (before.current, before.last_checked_at) == (None, None)
        await world.push(table({"a": "deck"}))
        after = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert after.current is not None
        assert after.current.version == 1
        assert after.last_checked_at is not None

    run(story)


def test_a_listed_version_has_the_fields_of_the_reference_r092_r093_r094_r105(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        page = await world.read(
            lambda tx: list_versions(tx, world.reader, PERMITS, after=1, limit=9)
        )
        (listed,) = page.versions
        found = plain(listed)
        assert isinstance(found, dict)
        assert set(found) >= {
            *("datasetId", "version", "previousVersion", "schemaVersion", "publishedAt"),
            *("sourceFetchedAt", "rowCount", "counts", "resyncRequired"),
        }
        assert page.next_cursor is None
        first = await world.read(
            lambda tx: list_versions(tx, world.reader, PERMITS, after=None, limit=1)
        )
        assert (first.versions[0].resync_required, first.next_cursor) == (True, 1)

    run(story)


def test_a_source_is_fetched_before_its_version_is_published_r095(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        version = await version_of(world, 2)
        assert version.source_fetched_at < version.published_at

    run(story)


def test_links_of_events_are_answered_with_the_version_and_its_files_r024_r090(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        version = await version_of(world, 2)
        assert (version.dataset_id, version.version) == (PERMITS, 2)
        assert all(file.url for file in [*(version.files.snapshot or []), version.files.schema])

    run(story)
