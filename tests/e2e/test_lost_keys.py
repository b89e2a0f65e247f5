"""A staff's key that was lost is made anew in the folder of a server that is stopped."""

import subprocess
from pathlib import Path

from tests.e2e.serving import environment, served
from tests.fakes import forked


def lost(data: Path) -> subprocess.CompletedProcess[str]:
    return forked.run("admin", "keys", "lost", "--data", str(data), env=environment())


def test_who_lost_the_staffs_key_makes_another_where_the_server_is_stopped(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        busy = lost(server.data)
        assert busy.returncode != 0
        assert str(server.data) in busy.stderr
    done = lost(tmp_path / "data")
    assert done.returncode == 0, done.stderr
    key = next(line.split()[-1] for line in done.stdout.splitlines() if line.startswith("key "))
    with served(tmp_path) as again:
        answer = again.request("GET", "/v1/admin/audit", key=key)
        assert answer.status_code == 200
        assert answer.json()["entries"][0]["action"] == "make_staff_key"


def test_a_folder_without_a_server_is_told(tmp_path: Path) -> None:
    assert "no such folder" in lost(tmp_path / "none").stderr
    (tmp_path / "empty").mkdir()
    assert "ploti serve --data DIR" in lost(tmp_path / "empty").stderr
