"""The poster: only allowed addresses are dialled, and nothing a receiver does holds it up."""

import asyncio
import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.fakes.names import Names
from tests.fakes.receiver import Answer, Receiver, receiving

from ploti.server.adapters.poster import Limits, WebhookPoster
from ploti.server.deliver.answers import Answer as Told

LOOPBACK = ["127.0.0.0/8"]
QUICK = Limits(connect=3, total=3, body=0.2)

NEVER_DIALLED = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.9", "10.255.255.255", "100.64.0.1", "100.127.255.255"),
    *("127.0.0.1", "127.8.8.8", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8"),
    *("192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7"),
    *("203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("168.63.129.16", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe"),
    *("::ffff:10.0.0.5", "64:ff9b::7f00:1", "64:ff9b:1::1", "fe80::1", "fd00::1", "fec0::1"),
    *("ff02::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "100::1"),
]
DIALLED = ["9.9.9.9", "100.63.255.255", "172.32.0.1", "192.0.1.1", "2606:4700:4700::1111"]


class Dialling(Exception):
    """A socket would have been connected."""


def poster(resolver: Names | None = None, *, allow: list[str] | None = None, **more: Any) -> Any:
    return WebhookPoster(
        allow_networks=LOOPBACK if allow is None else allow,
        user_agent="ploti/0",
        limits=more.pop("limits", QUICK),
        resolver=resolver,
        **more,
    )


def run(work: Callable[[Receiver], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with receiving() as receiver:
            return await work(receiver)

    return asyncio.run(main())


async def post(sender: Any, url: str) -> Told:
    told: Told = await sender.post(url, body=b"{}", headers={"webhook-id": "msg_1"})
    await sender.close()
    return told


@pytest.mark.parametrize("address", NEVER_DIALLED)
def test_no_socket_is_made_to_an_address_that_is_not_public(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dialled(*_: Any) -> Any:
        raise Dialling

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", dialled)
    sender = poster(Names([address]), allow=[])
    literal = f"[{address}]" if ip_address(address).version == 6 else address
    for host in ("receiver.example", literal):
        for scheme in ("https", "http"):
            told = asyncio.run(post(sender, f"{scheme}://{host}/h"))
            assert told.status is None
            assert told.address is None
            assert told.error is not None
            assert told.error.startswith("blocked_address: "), told.error
            assert asyncio.run(sender.refuse(f"{scheme}://{host}/h")) is not None


@pytest.mark.parametrize("address", DIALLED)
def test_a_public_address_is_dialled_by_https_alone(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: list[str] = []

    async def connect(_: Any, _sock: Any, where: Any) -> None:
        dialled.append(where[0])
        raise OSError(111, "refused")

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)
    sender = poster(Names([address]), allow=[])
    told = asyncio.run(post(sender, "https://receiver.example/h"))
    assert (dialled, told.address) == ([address], address)
    assert asyncio.run(sender.refuse("https://receiver.example/h")) is None
    plain = asyncio.run(post(sender, "http://receiver.example/h"))
    assert plain.error is not None
    assert plain.error.startswith("blocked_address")
    assert asyncio.run(sender.refuse("http://receiver.example/h")) == "must be an https address"


@pytest.mark.parametrize(
    "host", ["0x7f000001", "2130706433", "127.1", "0177.0.0.1", "localhost", "127.0.0.1"]
)
def test_other_ways_to_write_loopback_are_seen_through(host: str) -> None:
    async def work(receiver: Receiver) -> None:
        port = receiver.url.rpartition(":")[2]
        sender = poster(allow=[])
        assert await sender.refuse(f"https://{host}:{port}/h") is not None
        told = await post(sender, f"https://{host}:{port}/h")
        assert told.status is None
        assert told.address is None
        assert receiver.posts == []

    run(work)


def test_a_name_that_changes_its_answer_after_the_check_is_blocked_at_the_socket() -> None:
    async def work(receiver: Receiver) -> None:
        port = receiver.url.rpartition(":")[2]
        sender = poster(Names(["9.9.9.9"], ["127.0.0.1"]), allow=[])
        assert await sender.refuse(f"https://rebind.example:{port}/h") is None
        for _ in range(2):
            told = await post(sender, f"https://rebind.example:{port}/h")
            assert told.error == "blocked_address: 127.0.0.1 may not be dialled"
        assert receiver.posts == []

    run(work)


def test_names_that_nobody_answers_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as failing lanes can ask for at once, each for longer than its attempt."""
    answered, real = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, *given: Any, **named: Any) -> Any:
        if host.endswith(".invalid"):
            answered.wait()
        return real(host, *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def work(receiver: Receiver) -> Told:
        sender = poster(limits=Limits(connect=30, total=30))
        quick = poster(sender._resolver, limits=Limits(total=0.01))
        lost = [
            await quick.post(f"http://n{n}.invalid/", body=b"{}", headers={}) for n in range(64)
        ]
        try:
            assert {told.status for told in lost} == {None}
            return await post(sender, receiver.url.replace("127.0.0.1", "localhost"))
        finally:
            answered.set()
            await quick.close()

    assert run(work).status == 200


def test_of_a_mixed_answer_only_the_allowed_address_is_dialled() -> None:
    async def work(receiver: Receiver) -> None:
        port = receiver.url.rpartition(":")[2]
        sender = poster(Names(["10.0.0.9", "127.0.0.1"]))
        told = await post(sender, f"http://both.example:{port}/h")
        assert (told.status, told.address) == (200, "127.0.0.1")

    run(work)


def test_of_a_mixed_answer_that_which_kept_the_allowed_address_from_it_is_told() -> None:
    for answer in (["10.0.0.9", "127.0.0.1"], ["127.0.0.1", "10.0.0.9"]):
        told = asyncio.run(post(poster(Names(answer)), "http://both.example:1/h"))
        assert (told.error, told.address) == ("connection: Connection refused", "127.0.0.1")


def test_a_name_is_checked_as_it_is_asked_for_when_it_is_posted_to() -> None:
    """The system's own way with names would ask for another one, strasse.example."""

    async def work() -> None:
        names = Names(["127.0.0.1"])
        sender = poster(names)
        assert await sender.refuse("http://straße.example:1/h") is None
        await post(sender, "http://straße.example:1/h")
        assert names.hosts == ["xn--strae-oqa.example"] * 2
        said = await sender.refuse("https://receiver\\.example/h")
        assert "is not allowed" in said

    asyncio.run(work())


def test_each_address_has_a_time_of_its_own_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    real, dialled = asyncio.SelectorEventLoop.sock_connect, []

    async def connect(loop: Any, sock: Any, where: Any) -> None:
        dialled.append(where)
        if where[0] != "127.0.0.1":
            await asyncio.Event().wait()
        await real(loop, sock, where)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)

    async def work(receiver: Receiver) -> None:
        port = int(receiver.url.rpartition(":")[2])
        names = Names(["::1", "127.0.0.1"])
        sender = poster(names, allow=[*LOOPBACK, "::1/128"], limits=Limits(connect=0.5, total=60))
        told = await post(sender, f"http://both.example:{port}/h")
        assert (told.status, told.address) == (200, "127.0.0.1")
        assert dialled == [("::1", port, 0, 0), ("127.0.0.1", port)]
        told = await post(sender, f"http://[::1]:{port}/h")
        assert told.error == "timeout: no connection within 0.5 seconds"
        assert (told.address, names.asked) == ("::1", 1)

    run(work)


def test_http_goes_to_an_opened_network_only_and_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://10.0.0.1:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://10.0.0.1:3128")

    async def work(receiver: Receiver) -> None:
        told = await post(poster(), f"{receiver.url}/h")
        assert (told.status, told.address) == (200, "127.0.0.1")
        (sent,) = receiver.posts
        assert sent.headers["content-type"] == "application/json"
        assert sent.headers["user-agent"] == "ploti/0"

    run(work)


def test_r152_the_status_line_decides_whatever_the_body_does() -> None:
    async def work(receiver: Receiver) -> None:
        receiver.answer = lambda _: Answer(status=200, drips=True)
        told = await post(poster(), f"{receiver.url}/h")
        assert told.status == 200
        receiver.answer = lambda _: Answer(status=200, body=b"x" * 1_000_000)
        told = await post(poster(), f"{receiver.url}/h")
        assert (told.status, len(told.excerpt or "")) == (200, 2048)
        receiver.answer = lambda _: Answer(status=500, drips=True)
        began = time.monotonic()
        told = await post(poster(), f"{receiver.url}/h")
        assert told.status == 500
        assert time.monotonic() - began < 30

    run(work)


def test_an_answer_later_than_the_deadline_is_a_timeout() -> None:
    async def work(receiver: Receiver) -> None:
        receiver.answer = lambda _: Answer(after=60)
        told = await post(poster(), f"{receiver.url}/h")
        assert told.error == "timeout: no answer within 3 seconds"
        assert told.ms < 30_000

    run(work)


def test_the_deadline_is_15_seconds_all_told_and_5_to_connect() -> None:
    assert (Limits().total, Limits().connect) == (15, 5)


def test_a_reset_a_closed_port_an_unknown_name_and_no_http_are_told_apart() -> None:
    async def work(receiver: Receiver) -> None:
        receiver.answer = lambda _: Answer(resets=True)
        told = await post(poster(), f"{receiver.url}/h")
        assert told.error == "connection: broken off before an answer"
        told = await post(poster(), "http://127.0.0.1:1/h")
        assert told.error == "connection: Connection refused"

        class Unknown(Names):
            async def resolve(self, *_: Any, **__: Any) -> Any:
                raise OSError(-2, "Name or service not known")

        told = await post(poster(Unknown([])), "http://nowhere.example/h")
        assert told.error == "dns: the host's name is not known"
        said = await poster(Unknown([])).refuse("https://nowhere.example/h")
        assert said == "names the host nowhere.example, which is not known"

    run(work)


def test_redirects_are_told_and_not_followed() -> None:
    async def work(receiver: Receiver) -> None:
        elsewhere = f"{receiver.url}/signin"
        receiver.answer = lambda _: Answer(status=302, headers={"Location": elsewhere})
        told = await post(poster(), f"{receiver.url}/h")
        assert (told.status, told.location) == (302, elsewhere)
        assert [sent.path for sent in receiver.posts] == ["/h"]

    run(work)


def certificate(folder: Path, *, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server of this name shows, and what trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=str(pem))


@asynccontextmanager
async def _by_tls(folder: Path) -> Any:
    server, trust = certificate(folder, name="receiver.example")
    async with receiving(tls=server) as receiver:
        yield receiver, receiver.url.rpartition(":")[2], trust


def test_tls_is_verified_by_the_name_in_the_address(tmp_path: Path) -> None:
    async def work() -> None:
        async with _by_tls(tmp_path) as (receiver, port, trust):
            names = Names(["127.0.0.1"])
            good = await post(poster(names, trust=trust), f"https://receiver.example:{port}/h")
            assert good.status == 200
            for sender, host in (
                (poster(names, trust=trust), "another.example"),
                (poster(names), "receiver.example"),
            ):
                told = await post(sender, f"https://{host}:{port}/h")
                assert told.error is not None
                assert told.error.startswith("tls: ")
            assert len(receiver.posts) == 1

    asyncio.run(work())


def test_a_connection_is_kept_and_one_that_the_receiver_closed_is_made_anew() -> None:
    async def work(receiver: Receiver) -> None:
        sender = poster()
        receiver.keeps = 2
        for _ in range(5):
            told = await sender.post(f"{receiver.url}/h", body=b"{}", headers={})
            assert (told.status, told.address) == (200, "127.0.0.1")
        await sender.close()
        assert len(receiver.posts) == 5
        assert receiver.connections == 3

    run(work)


def test_a_new_connection_that_breaks_off_is_not_tried_twice() -> None:
    async def work(receiver: Receiver) -> None:
        receiver.answer = lambda _: Answer(resets=True)
        await post(poster(), f"{receiver.url}/h")
        assert len(receiver.posts) == 1

    run(work)


@asynccontextmanager
async def answering(*parts: bytes) -> Any:
    """A server that sends this on each connection as soon as something comes, and reads no more.

    It gives its address, and the list of what came first on each connection.
    """
    came: list[bytes] = []
    over = asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"".join(parts))
        await over.wait()
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/h", came
        finally:
            over.set()


def answers(*parts: bytes, posts: int = 1, body: bytes = b"{}") -> tuple[list[Told], list[bytes]]:
    async def work() -> tuple[list[Told], list[bytes]]:
        async with answering(*parts) as (url, came):
            sender = poster()
            told = [await sender.post(url, body=body, headers={}) for _ in range(posts)]
            await sender.close()
            return told, came

    return asyncio.run(work())


EMPTY = b"HTTP/1.1 200 .\r\nContent-Length: 0\r\n\r\n"


def test_what_is_said_ahead_of_the_answer_is_passed_over() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    ((told,), _) = answers(b"HTTP/1.1 100 Continue\r\n\r\n", early, EMPTY)
    assert told.status == 200


def test_what_is_no_http_is_told_as_that() -> None:
    ((told,), _) = answers(b"220 mail.example ESMTP\r\n")
    assert (told.status, told.error) == (None, "no answer: what came is not HTTP")


def test_who_answers_before_all_was_read_gets_the_next_by_another_connection() -> None:
    refusal = b"HTTP/1.1 413 .\r\nContent-Length: 0\r\n\r\n"
    told, came = answers(refusal, posts=2, body=b"x" * (16 << 20))
    assert [each.status for each in told] == [413, 413]
    assert len(came) == 2


def test_a_connection_on_which_more_came_than_an_answer_is_not_used_again() -> None:
    told, came = answers(EMPTY, EMPTY.replace(b"200", b"500"), posts=2)
    assert [each.status for each in told] == [200, 200]
    assert len(came) == 2


def test_a_body_that_was_cut_off_ends_its_connection() -> None:
    async def work(receiver: Receiver) -> None:
        receiver.keeps = 2
        receiver.answer = lambda _: Answer(status=500, drips=True)
        sender = poster()
        for _ in range(2):
            told = await sender.post(f"{receiver.url}/h", body=b"{}", headers={})
            assert told.status == 500
        await sender.close()
        assert receiver.connections == 2

    run(work)


def test_a_body_is_asked_for_as_it_is_and_the_path_as_it_was_given() -> None:
    async def work(receiver: Receiver) -> None:
        told = await post(poster(), f"{receiver.url}/a%20b/c?d=e&f=%2F")
        assert told.status == 200
        (sent,) = receiver.posts
        assert sent.path == "/a%20b/c?d=e&f=/"
        assert "accept-encoding" not in sent.headers
        assert sent.headers["host"] == receiver.url.partition("//")[2]

    run(work)
