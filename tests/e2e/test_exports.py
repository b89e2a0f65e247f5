"""CSV of a large version over a real server: refused for now, made by a job, waited for."""

from pathlib import Path

import httpx2
from tests.e2e.serving import served

import ploti


def test_csv_of_a_large_version_is_made_when_asked_for_and_the_sdk_waits(tmp_path: Path) -> None:
    rows = [f"{number},é" for number in range(100_001)]
    with served(tmp_path) as server:
        server.declare("ds_large", key=["code"])
        server.push("ds_large", "\n".join(["code,name", *rows]).encode())
        server.subscribe("ds_large")
        server.push("ds_large", "\n".join(["code,name", *rows, "-1,new"]).encode())
        asked = httpx2.get(
            f"{server.url}/v1/feeds/datasets/ds_large/versions/2?format=csv",
            headers={"authorization": f"Bearer {server.key}"},
        )
        assert (asked.status_code, asked.json()["code"]) == (503, "unavailable")
        assert int(asked.headers["retry-after"]) > 0
        with ploti.Client(server.key, url=server.url) as client:
            datasets = client.feeds.datasets
            path = datasets.download("ds_large", 2, format="csv", to=tmp_path / "large.csv")
            changes = datasets.version("ds_large", 2, format="csv").files.changes
        header, *lines = path.read_text().splitlines()
        assert header == "_ploti_record_id,code,name"
        assert sorted(line.partition(",")[2] for line in lines) == sorted([*rows, "-1,new"])
        assert changes is not None
        assert [(file.format, file.rows) for file in changes] == [("csv", 1)]
