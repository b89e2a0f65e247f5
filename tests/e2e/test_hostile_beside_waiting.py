"""A hostile file checked again and again, while clients wait for what happens elsewhere."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.serving import Server, served

CLIENTS = 50
LAUGHS = (
    '<!DOCTYPE kml [<!ENTITY l0 "ha">'
    + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    + "]><kml><Placemark><name>&l9;</name></Placemark></kml>"
)


def wait_for_version(server: Server, log: str, version: int, over: threading.Event) -> bool:
    """Wait on the log until this version was sent; false where all is over before."""
    cursor: dict[str, str] = {}
    while not over.is_set():
        page = server.get(f"{log}/events", params={"wait": 25, **cursor}).json()
        if any(event["data"].get("version") == version for event in page["events"]):
            return True
        cursor = {"cursor": page["nextCursor"]}
    return False


def test_a_hostile_file_checked_in_a_loop_keeps_no_waiting_client_from_its_event(
    tmp_path: Path,
) -> None:
    with (
        served(tmp_path, PLOTI_MAX_WAITS=str(CLIENTS)) as server,
        ThreadPoolExecutor(CLIENTS) as clients,
    ):
        server.declare("ds_good", key=["id"])
        server.declare("ds_hostile", key=["id"])
        log = server.subscribe("ds_good")
        server.push("ds_good", b"id,kind\n1,deck\n")
        over = threading.Event()
        waiting = [clients.submit(wait_for_version, server, log, 2, over) for _ in range(CLIENTS)]
        try:
            for _ in range(3):
                outcome = server.push("ds_hostile", LAUGHS.encode(), name="a.kml")
                assert outcome["outcome"] == "failed"
                assert "entities" in outcome["detail"]
            assert not any(each.done() for each in waiting)
            server.push("ds_good", b"id,kind\n1,pool\n")
            assert all(each.result(timeout=120) for each in waiting)
        finally:
            over.set()
