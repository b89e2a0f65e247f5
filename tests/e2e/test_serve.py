"""`ploti serve` as an operator meets it: start, keys, lock, address, end."""

import contextlib
import json
import os
import pty
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.e2e.serving import PLOTI, Server, environment, served
from tests.fakes import forked

from ploti.server.app.listening import LONGEST_HEAD


def serve_in_vain(*flags: str, **settings: str) -> tuple[int, str, str]:
    """Status, output and error of a server that does not come to serve."""
    ended = forked.run("serve", *flags, env=environment(**settings))
    return ended.returncode, ended.stdout, ended.stderr


def test_a_new_folder_is_made_for_its_owner_alone_with_two_keys_in_a_file(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
        assert stat.S_IMODE((server.data / "keys").stat().st_mode) == 0o600
        assert stat.S_IMODE((server.data / "secret").stat().st_mode) == 0o600
        assert "keys, a line each" in server.said[0].replace(str(server.data), "")
        assert server.staff("GET", "/v1/admin/datasets").status_code == 200
        assert server.get("/v1/admin/datasets").status_code == 403
        assert server.get("/v1/feeds/datasets").status_code == 200


def test_a_folder_is_set_up_once_and_its_keys_go_on(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        keys = first.staff_key, first.key
        first.declare("ds_a")
    with served(tmp_path) as second:
        assert (second.staff_key, second.key) == keys
        assert [line.partition(" http")[0] for line in second.said] == ["ploti serves"]
        assert second.get("/v1/feeds/datasets/ds_a").status_code == 200


def test_to_a_terminal_the_keys_are_printed_once_the_staffs_first(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PLOTI, "serve", "--data", str(tmp_path / "data"), "--port", "0"],
        stdout=theirs,
        env=environment(),
    )
    os.close(theirs)
    said = b""
    while b"\nNext: " not in said or not said.endswith(b"\n"):
        said += os.read(ours, 1000)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    os.close(ours)
    staff, subscriber, kept, _, *then = said.decode().splitlines()
    assert "shown this once" in kept
    assert "PLOTI_API_KEY" in then[0]
    assert then[1] == "Next: ploti admin datasets list"
    assert "staff" in staff
    assert "ubscriber" in subscriber
    assert all(line.split()[-1].startswith("ploti_") for line in (staff, subscriber))
    assert not (tmp_path / "data/keys").exists()


def test_a_second_server_on_the_folder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        status, output, error = serve_in_vain("--data", str(first.data), "--port", "0")
        assert (status, output) == (1, "")
        assert error.startswith(f"Error: Another ploti serve runs on {first.data}: stop it first")
        assert error.count("\n") == 1
        assert first.get("/healthz").status_code == 200


def test_the_lock_goes_with_the_process_however_it_ends(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    server.kill()
    with served(tmp_path) as again:
        assert again.get("/readyz").status_code == 200


def readiness_once(server: Server, status: int) -> httpx2.Response:
    """The answer of /readyz once it has this status: a finding is good for some seconds."""
    until = time.monotonic() + 60
    while (answer := server.get("/readyz")).status_code != status:
        assert time.monotonic() < until, answer.text
        time.sleep(0.1)
    return answer


def test_a_server_whose_folder_is_gone_is_not_ready(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.get("/readyz").status_code == 200
        server.data.rename(tmp_path / "moved")
        refused = readiness_once(server, 503)
        assert refused.json()["code"] == "unavailable"
        assert server.get("/healthz").status_code == 200
        (tmp_path / "moved").rename(server.data)
        readiness_once(server, 200)


def test_a_head_that_does_not_come_ends_its_connection(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        address = urlsplit(server.url)
        with (
            socket.create_connection((address.hostname, address.port), timeout=60) as silent,
            socket.create_connection((address.hostname, address.port), timeout=60) as slow,
        ):
            slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\nGET /he")
            answered = read_all(slow)
            assert answered.startswith(b"HTTP/1.1 200 OK")
            assert b"HTTP/1.1 408 Request Timeout" in answered
            assert answered.endswith(b'"code":"too_slow"}')
            assert silent.recv(1) == b""


def test_a_body_that_does_not_come_is_called_off_whether_or_not_it_is_read(tmp_path: Path) -> None:
    """Of the one a key is looked at and its body waited for; the other is answered at once."""
    with served(tmp_path) as server:
        address = urlsplit(server.url)
        with (
            socket.create_connection((address.hostname, address.port), timeout=60) as read,
            socket.create_connection((address.hostname, address.port), timeout=60) as unread,
        ):
            head = "POST /v1/feeds/subscriptions HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n"
            read.sendall(f"{head}authorization: Bearer {server.key}\r\n\r\n{{".encode())
            unread.sendall(f"{head}\r\n{{".encode())
            answered = read_all(read)
            assert answered.startswith(b"HTTP/1.1 408 Request Timeout")
            assert answered.endswith(b'"code":"too_slow"}')
            assert read_all(unread).startswith(b"HTTP/1.1 401 Unauthorized")


def read_all(connection: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    answered = b""
    while chunk := connection.recv(4096):
        answered += chunk
    return answered


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    status, _, error = serve_in_vain("--data", str(tmp_path), "--port", "0")
    assert status == 2
    assert "holds something else" in error
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_path_that_is_a_file_is_told_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    status, _, error = serve_in_vain("--data", str(tmp_path / "file"), "--port", "0")
    assert status == 2
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_a_request_whose_head_is_too_long_is_refused_before_it_is_kept(tmp_path: Path) -> None:
    def answer(head: bytes) -> bytes:
        with socket.create_connection(address) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(head)
            return connection.recv(100).partition(b"\r\n")[0]

    with served(tmp_path) as server:
        parts = urlsplit(server.url)
        address = (parts.hostname or "", parts.port or 0)
        fits = b"x-a: " + b"a" * 30_000 + b"\r\n"
        head = b"GET /healthz HTTP/1.1\r\nhost: a\r\n"
        assert answer(head + 2 * fits + b"\r\n") == b"HTTP/1.1 200 OK"
        too_long = b"HTTP/1.1 431 Request Header Fields Too Large"
        assert answer(head + 3 * fits + b"\r\n") == too_long
        assert answer(head + b"x-a: " + b"a" * 900_000) == too_long
        assert answer(b"GET /" + b"a" * 900_000) == too_long
        body = b"POST /v1/feeds/subscriptions HTTP/1.1\r\nhost: a\r\ncontent-length: 900000\r\n\r\n"
        assert answer(body + b"a" * 900_000) == b"HTTP/1.1 401 Unauthorized"
        assert "Traceback" not in server.log()


def test_what_is_no_request_and_a_head_that_is_too_long_are_answered_by_problems(
    tmp_path: Path,
) -> None:
    def answer(head: bytes) -> tuple[bytes, dict[str, str]]:
        """The heads of an answer and its problem, read until the server closes."""
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(head)
            read = b"".join(iter(lambda: connection.recv(9_999), b""))
        heads, _, body = read.partition(b"\r\n\r\n")
        assert f"\r\ncontent-length: {len(body)}".encode() in heads
        assert b"\r\ncontent-type: application/problem+json" in heads
        assert b"\r\nconnection: close" in heads
        return heads.partition(b"\r\n")[0], json.loads(body)

    with served(tmp_path) as server:
        parts = urlsplit(server.url)
        address = (parts.hostname or "", parts.port or 0)
        for wrong in (b"FOO / HTTP/1.1\r\n\r\n", b"GET /a b HTTP/1.1\r\nhost: a\r\n\r\n"):
            status, problem = answer(wrong)
            assert status == b"HTTP/1.1 400 Bad Request"
            assert (problem["status"], problem["code"]) == (400, "invalid_input")
            assert problem.keys() == {"type", "title", "status", "detail", "code"}
        head = b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-a: "
        status, problem = answer(head + b"a" * (LONGEST_HEAD + 1 - len(head)))
        assert status == b"HTTP/1.1 431 Request Header Fields Too Large"
        assert (problem["status"], problem["code"]) == (431, "too_large")
        assert "64 KiB" in problem["detail"]


def test_an_address_that_is_taken_is_told_on_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, _, error = serve_in_vain("--data", str(tmp_path / "d"), "--port", port)
    assert status == 1
    assert error.startswith(f"Error: Cannot listen on 127.0.0.1, port {port}: ")
    assert error.count("\n") == 1


def test_a_server_that_cannot_listen_leaves_no_folder_and_an_older_one_as_it_is(
    tmp_path: Path,
) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    empty.mkdir()
    used.mkdir()
    (used / "lock").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for folder in (tmp_path / "new" / "inner", empty, used):
            status, _, error = serve_in_vain("--data", str(folder), "--port", port)
            assert (status, "Cannot listen" in error) == (1, True)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["empty", "used", "used/lock"]


def test_a_full_disk_is_told_on_one_line_that_names_the_folder(tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    run = f"{full}; import sys; from ploti.cli import run; sys.exit(run(sys.argv[1:]))"
    ended = subprocess.run(
        [sys.executable, "-c", run, "serve", "--data", str(tmp_path / "d"), "--port", "0"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"Error: --data {tmp_path / 'd'}: its disk is full")
    assert ended.stderr.count("\n") == 1


def test_a_database_that_is_none_is_told_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "ploti.db").write_bytes(b"x" * 9_000)
    status, _, error = serve_in_vain("--data", str(tmp_path), "--port", "0")
    assert status == 2
    assert error.startswith(f"Error: {tmp_path}/ploti.db is no database: ")
    assert error.count("\n") == 1


def test_an_unknown_setting_is_wrong_usage_that_names_it(tmp_path: Path) -> None:
    status, _, error = serve_in_vain("--data", str(tmp_path / "d"), PLOTI_MAX_WAIT="3")
    assert status == 2
    assert error.startswith("Error: PLOTI_MAX_WAIT is no setting of ploti serve; there are PLOTI_")
    assert not (tmp_path / "d").exists()


def test_beyond_loopback_it_wants_the_public_address_and_tls_or_the_risk(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"), "--host", "0.0.0.0")
    assert "PLOTI_PUBLIC_URL" in serve_in_vain(*data)[2]
    status, _, error = serve_in_vain(*data, "--public-url", "https://feeds.example.org")
    assert (status, "--behind-proxy" in error) == (2, True)


def test_links_name_the_public_address_and_never_the_host_header_s11(tmp_path: Path) -> None:
    with served(tmp_path, PLOTI_PUBLIC_URL="https://feeds.example.org/") as server:
        server.declare("ds_a", key=["id"])
        log = server.subscribe("ds_a")
        assert server.push("ds_a", b"id,n\na,1\n")["outcome"] == "released", server.log()
        host = {"host": "evil.example"}
        for path in (f"{log}/events", f"{log}/manifest", "/v1/feeds/datasets/ds_a/versions/1"):
            text = server.get(path, headers=host).text
            assert "https://feeds.example.org/" in text
            assert "evil" not in text


def test_the_test_clock_moves_the_clock_and_is_said_loudly(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    with served(tmp_path, PLOTI_TEST_CLOCK=str(clock)) as server:
        assert any("PLOTI_TEST_CLOCK" in line for line in server.said)
        server.declare("ds_a", key=["id"])
        log = server.subscribe("ds_a")
        assert server.push("ds_a", b"id,n\na,1\n")["outcome"] == "released", server.log()
        link = server.get("/v1/feeds/datasets/ds_a/versions/1").json()["files"]["schema"]["url"]
        assert httpx2.get(link).status_code == 200
        clock.write_text("3601")
        assert httpx2.get(link).status_code == 403
        assert server.get(f"{log}/manifest").json()["generatedAt"] > "2026"


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_answers_what_waits(tmp_path: Path, by: int) -> None:
    server = Server(tmp_path / "data")
    log = server.subscribe("ds_none")
    answers: list[httpx2.Response] = []

    def wait() -> None:
        headers = {"authorization": f"Bearer {server.key}"}
        answers.append(httpx2.get(f"{server.url}{log}/events?wait=30", headers=headers, timeout=60))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(1)
    began = time.monotonic()
    assert server.stop(by) == 0
    waiting.join()
    assert time.monotonic() - began < 25
    assert answers[0].json() == {"events": [], "nextCursor": "evt_000000000000"}
    assert "Traceback" not in server.log()


def test_a_second_signal_ends_it_at_once_and_as_cleanly(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.declare("ds_a")
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.log()


def test_a_client_that_goes_away_gives_its_wait_back(tmp_path: Path) -> None:
    with served(tmp_path, "--max-waits", "1") as server:
        log = server.subscribe("ds_none")
        with pytest.raises(httpx2.ReadTimeout):
            server.get(f"{log}/events?wait=30", timeout=2)
        until = time.monotonic() + 20  # by then the wait of the client that went is not over
        while server.get(f"{log}/events?wait=1").status_code != 200:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_push_that_never_ends_does_not_hold_up_the_end(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    server.declare("ds_a", key=["id"])
    host, port = server.url.removeprefix("http://").split(":")
    head = (
        "POST /v1/admin/datasets/ds_a/push?name=a.csv HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {server.staff_key}\r\ncontent-length: 1000000\r\n\r\nid,n\r\n"
    )
    enough = b"a,1\n" * 100_000  # to be waited for longer than the end takes
    with socket.create_connection((host, int(port))) as stalled:
        stalled.sendall(head.encode() + enough)
        time.sleep(1)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 20
        said = b"".join(iter(lambda: stalled.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5" in said
    assert b'"code":"unavailable"' in said
    assert "Traceback" not in server.log()
    with served(tmp_path) as again:
        assert [path for path in (again.data / "blobs").rglob("*") if path.is_file()] == []
        assert again.push("ds_a", b"id,n\na,1\n")["outcome"] == "released"


def test_clients_that_never_read_their_answers_leave_no_traceback_at_the_end(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path / "data")
    parts = urlsplit(server.url)
    with contextlib.ExitStack() as open_ones:
        for _ in range(3):
            deaf = socket.create_connection((parts.hostname or "", parts.port or 0))
            open_ones.enter_context(deaf)
            deaf.settimeout(1)
            with contextlib.suppress(OSError):
                for _ in range(5_000):
                    deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n")
        assert server.stop() == 0
    assert "Traceback" not in server.log()
