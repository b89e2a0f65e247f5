"""Real histories through a real server into a real table: after every version it is its source."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import duckdb
import pytest
from tests.building import HISTORIES, history
from tests.e2e.serving import Server, served
from tests.fakes import synced

from ploti.client.connection import Client
from ploti.errors import ExitStatus
from ploti.model.digest import bucket_of
from ploti.model.sql import identifier, literal
from ploti.sync.calls import sync, verify

pytestmark = pytest.mark.skipif(
    not HISTORIES.exists(), reason="the histories lie in ../shared/data, which is absent"
)


def push(server: Server, dataset: str, state: Path) -> int:
    """Push a state, and release what is held; the version's number."""
    outcome = server.push(dataset, state.read_bytes(), name=state.name)
    if outcome["outcome"] == "held":
        path = f"/v1/admin/holds/{outcome['hold']['id']}/release"
        response = server.staff("POST", path, json={"note": "right"})
        assert response.status_code == 200, response.text
    else:
        assert outcome["outcome"] == "released", outcome
    number: int = outcome["version"]
    return number


def assert_is_source(file: Path, table: str, state: Path, *, key: str) -> None:
    """Every cell of the source is the table's, by plain DuckDB; an empty field is null."""
    with duckdb.connect(str(file), read_only=True) as connection:
        source = f"read_csv({literal(str(state))}, all_varchar = true, header = true)"
        names = [row[0] for row in connection.execute(f"DESCRIBE FROM {source}").fetchall()]
        kinds = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
        equal = " AND ".join(
            f"t.{identifier(name)} IS NOT DISTINCT FROM"
            f" CAST(nullif(s.{identifier(name)}, '') AS {kinds[name]})"
            for name in names
        )
        on = f"s.{identifier(key)} = t.{identifier(key)}::VARCHAR"
        found = connection.execute(
            f"SELECT count(*), count(*) FILTER ({equal})"
            f" FROM {source} AS s FULL JOIN {table} AS t ON {on}"
        ).fetchone()
        wanted = connection.execute(f"SELECT count(*) FROM {source}").fetchone()
        assert wanted is not None
        assert found == (wanted[0], wanted[0])


@pytest.mark.parametrize(
    ("name", "part", "key", "settings"),
    [
        pytest.param(
            "airportsdata",
            slice(8),
            "icao",
            {"geometry": {"longitude": "lon", "latitude": "lat"}, "continuation": "off"},
            id="airportsdata",
        ),
        pytest.param(
            "runways",
            slice(7, 14),
            "id",
            {"geometry": {"longitude": "le_longitude_deg", "latitude": "le_latitude_deg"}},
            id="runways",
        ),
    ],
)
def test_after_every_released_version_the_table_is_its_source(
    tmp_path: Path, name: str, part: slice, key: str, settings: dict[str, object]
) -> None:
    """R-008: of the runways the versions around the state that was emptied by mistake."""
    dataset, file = f"ds_{name}", tmp_path / "feeds.duckdb"
    to = f"duckdb:{file}"
    with served(tmp_path) as server, Client(server.key, url=server.url) as client:
        server.declare(dataset, key=[key], **settings)
        subscription = server.subscribe(dataset).rpartition("/")[2]
        versions = loads = 0
        for state in islice(history(name, tmp_path), part.start, part.stop):
            if state.read_bytes().count(b"\n") <= 1:
                continue  # the state that was emptied by mistake stays on hold
            version = push(server, dataset, state)
            result = sync(client, subscription, to=to)
            versions, loads = versions + 1, loads + result.loads
            assert result.exit_status is ExitStatus.DONE
            assert synced.held(file) == {dataset: (version, "held")}
            assert_is_source(file, name, state, key=key)
            found = verify(client, subscription, to=to)
            assert found.exit_status is ExitStatus.DONE, found
        assert loads < versions, "changes were applied, not only snapshots loaded"
        record = str(synced.query(file, f"SELECT max(_ploti_record_id) FROM {name}")[0][0])
        column = identifier(key)
        synced.execute(
            file, f"UPDATE {name} SET {column} = NULL WHERE _ploti_record_id = '{record}'"
        )
        (wrong,) = verify(client, subscription, to=to).datasets
        assert (wrong.matches, wrong.buckets) == (False, [bucket_of(record)])
