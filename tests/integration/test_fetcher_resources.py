"""Resources of a CKAN: the files they lead to, and tables that are in the datastore alone."""

from pathlib import Path

import pytest
from aiohttp import web
from tests.fakes.fetched import State, fetched

from ploti.errors import SourceError

CSV = "permit_no,status\nE-1,open\n"
PAGE = "/en/dataset/permits/resource/0a-1"
CALL = "/api/3/action/resource_show"


def state(folder: Path, resource: dict[str, object], *, path: str = PAGE) -> State:
    """What is fetched of a CKAN that tells this of the resource."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == CALL:
            assert request.query["id"] == "0a-1"
            url = str(resource.get("url", "")).replace("HERE", str(request.url.origin()))
            return web.json_response({"success": True, "result": resource | {"url": url}})
        if request.path == "/api/3/action/datastore_search":
            assert request.query["resource_id"] == "0a-1"
            offset = int(request.query["offset"])
            records = [{"_id": 1, "permit_no": "E-1"}][offset:]
            return web.json_response(
                {"success": True, "result": {"records": records, "total": 1, "fields": []}}
            )
        assert request.path.startswith("/files/"), request.path
        return web.Response(text=CSV, content_type="text/plain")

    return fetched(folder, answer, kind="ckan", path=path)


@pytest.mark.parametrize("path", [PAGE, f"{CALL}?id=0a-1"])
def test_a_resource_leads_to_its_file(path: str, tmp_path: Path) -> None:
    found = state(tmp_path, {"id": "0a-1", "url": "HERE/files/permits.csv"}, path=path)
    assert found.bytes.decode() == CSV
    assert found.name == "permits.csv"


def test_a_file_without_a_suffix_has_the_format_that_the_ckan_tells(tmp_path: Path) -> None:
    resource = {"id": "0a-1", "url": "HERE/files/17", "format": "CSV"}
    assert state(tmp_path, resource).name == "17.csv"


def test_a_table_that_is_in_the_datastore_alone_is_read_there(tmp_path: Path) -> None:
    resource = {"id": "0a-1", "url_type": "datastore", "datastore_active": True}
    found = state(tmp_path, resource)
    assert b'{"_id":1,"permit_no":"E-1"}' in found.bytes.replace(b" ", b"")


def test_a_resource_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no file"):
        state(tmp_path, {"id": "0a-1", "url": ""})
