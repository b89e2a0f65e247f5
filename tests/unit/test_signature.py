"""Signatures of webhooks: the public vector, the official packages, and every malformed form."""

import base64
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook as Official
from standardwebhooks import webhooks as package

from ploti.errors import InvalidSignature
from ploti.model.event import Event, UnknownEvent
from ploti.model.signature import sign, verify
from ploti.model.webhook import Ping

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()
EVENT = {
    "id": "evt_000000000043",
    "type": "feed.dataset.removed",
    "timestamp": "2026-10-18T06:13:02.000Z",
    "subscriptionId": "sub_8f3k2m",
    "data": {"datasetId": "ds_a", "reason": "subscription_changed"},
}
BODY = json.dumps(EVENT).encode()


def signed(body: bytes = BODY, *, secrets: tuple[str, ...] = (SECRET,)) -> dict[str, str]:
    return sign(body, id="msg_1", at=datetime.now(UTC), secrets=secrets)


def test_r149_the_public_vector_of_standard_webhooks() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = sign(
        b'{"test": 2432232314}', id="msg_p5jXN8AQM9LWM0D4loKWxJek", at=at, secrets=[SECRET]
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_moment_of_another_zone_is_signed_as_the_same_moment() -> None:
    at = datetime(2026, 11, 30, 12, 0, 0, 999_000, tzinfo=UTC)
    elsewhere = at.astimezone(timezone(timedelta(hours=-5)))
    assert sign(BODY, id="m", at=at, secrets=[SECRET]) == sign(
        BODY, id="m", at=elsewhere, secrets=[SECRET]
    )


_MOMENTS = st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  as it takes


@given(st.binary(min_size=1, max_size=80), st.text(max_size=200), _MOMENTS)
def test_r149_what_is_signed_is_what_the_official_package_signs(
    key: bytes, body: str, at: datetime
) -> None:
    padded = base64.b64encode(key).decode()
    for secret in (f"whsec_{padded}", padded, padded.rstrip("=")):
        headers = sign(body.encode(), id="msg_1", at=at, secrets=[secret])
        assert headers["webhook-signature"] == Official(secret).sign("msg_1", at, body)


def test_what_is_signed_is_read_as_event_unknown_event_or_ping() -> None:
    assert isinstance(verify(BODY, signed(), SECRET), Event)
    new = json.dumps(EVENT | {"type": "feed.dataset.renamed"}).encode()
    assert isinstance(verify(new, signed(new), SECRET), UnknownEvent)
    ping = json.dumps(
        {"id": "ping_1", "type": "ping", "timestamp": EVENT["timestamp"], "data": {}}
    ).encode()
    found = verify(ping, signed(ping), SECRET)
    assert isinstance(found, Ping)
    assert found.id == "ping_1"


def test_either_secret_of_a_rotation_verifies() -> None:
    headers = signed(secrets=(OTHER, SECRET))
    for secret in (OTHER, SECRET):
        assert verify(BODY, headers, secret)
        assert Official(secret).verify(BODY, headers) == EVENT


def test_the_names_of_headers_are_taken_in_any_case() -> None:
    assert verify(BODY, {name.title(): value for name, value in signed().items()}, SECRET)


def test_another_body_and_another_secret_are_refused() -> None:
    for body, secret in ((BODY + b" ", SECRET), (BODY, OTHER)):
        with pytest.raises(InvalidSignature, match="refused"):
            verify(body, signed(), secret)


GOOD = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook-signature": "garbage"},
        {"webhook-signature": f"garbage {GOOD}"},
        {"webhook-signature": f"{GOOD}  {GOOD}"},
        {"webhook-signature": "v1,a,b"},
        {"webhook-signature": "v1,!"},
        {"webhook-signature": "v1,a"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,ü"},
        {"webhook-timestamp": "1700000000.5"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "-5"},
        {"webhook-timestamp": "9" * 30},
        {"webhook-id": ""},
    ],
    ids=str,
)
def test_every_malformed_header_is_the_one_error(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidSignature):
        verify(BODY, signed() | headers, SECRET)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_the_one_error(name: str) -> None:
    headers = {key: value for key, value in signed().items() if key != name}
    with pytest.raises(InvalidSignature):
        verify(BODY, headers, SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_ü", "whsec_a", "no secret!"])
def test_a_secret_that_is_none_is_the_one_error(secret: str) -> None:
    with pytest.raises(InvalidSignature):
        verify(BODY, signed(), secret)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"{", b'{"type":"ping"}', b'"x"'])
def test_a_signed_body_that_is_no_message_is_the_one_error(body: bytes) -> None:
    with pytest.raises(InvalidSignature):
        verify(body, signed(body), SECRET)


def test_a_body_that_is_no_text_is_the_one_error() -> None:
    with pytest.raises(InvalidSignature):
        verify(b"\xff\xfe", signed(), SECRET)


class _Moved(datetime):
    """The package's clock, some seconds away."""

    by = 0

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=cls.by)


@pytest.mark.parametrize(("by", "good"), [(0, True), (298, True), (-298, True)])
def test_five_minutes_both_ways_are_tolerated(
    monkeypatch: pytest.MonkeyPatch, by: int, good: bool
) -> None:
    headers = signed()
    monkeypatch.setattr(package, "datetime", _Moved)
    monkeypatch.setattr(_Moved, "by", by)
    assert bool(verify(BODY, headers, SECRET)) is good


@pytest.mark.parametrize(("by", "said"), [(302, "too old"), (-302, "too new"), (86400, "too old")])
def test_beyond_five_minutes_a_message_is_refused(
    monkeypatch: pytest.MonkeyPatch, by: int, said: str
) -> None:
    headers = signed()
    monkeypatch.setattr(package, "datetime", _Moved)
    monkeypatch.setattr(_Moved, "by", by)
    with pytest.raises(InvalidSignature, match=said):
        verify(BODY, headers, SECRET)
