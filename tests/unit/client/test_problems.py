"""Which error an answer stands for, and how long to wait before the next try."""

import json

import pytest

from ploti import errors
from ploti.client.calls import Answer
from ploti.client.problems import TRIES, Broken, pause_after, read_refusal, read_retry_after
from ploti.errors import BY_CODE, MEANINGS, ApiError, Code, Fault, TransportError

URL = "https://api.example"


def refusal(status: int, body: object, **headers: str) -> Exception:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_refusal(Answer(status=status, headers=headers, body=text), URL)


@pytest.mark.parametrize("code", list(Code))
def test_each_code_is_an_exception_of_its_own_with_the_servers_words(code: Code) -> None:
    error = refusal(MEANINGS[code].status, {"code": code, "detail": "Do this."})
    assert type(error) is BY_CODE[code]
    assert str(error) == "Do this."


def test_faults_and_retry_after_come_along() -> None:
    error = refusal(
        400,
        {"code": "invalid_input", "errors": [{"field": "limit", "message": "1 to 500"}]},
        **{"retry-after": "7"},
    )
    assert isinstance(error, errors.InvalidInput)
    assert error.errors == (Fault("limit", "1 to 500"),)
    assert error.retry_after == 7


def test_a_code_of_a_newer_server_is_still_an_error_of_the_api() -> None:
    error = refusal(418, {"code": "teapot", "detail": "Short and stout."})
    assert type(error) is ApiError
    assert str(error) == "Short and stout."


def test_a_page_that_is_no_problem_says_who_answered_and_asks_whether_the_address_is_right() -> (
    None
):
    error = refusal(404, b"<html>no such page</html>")
    assert isinstance(error, TransportError)
    assert not isinstance(error, Broken)
    assert str(error).startswith("https://api.example answered 404 Not Found")
    assert "PLOTI_API_URL" in str(error)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_stands_before_the_server_may_say_that_it_passes(status: int) -> None:
    error = refusal(status, b"busy", **{"retry-after": "3"})
    assert isinstance(error, Broken)
    assert error.retry_after == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120),
        ({"retry-after": "-1"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        (
            {
                "retry-after": "Sun, 18 Oct 2026 06:13:32 GMT",
                "date": "Sun, 18 Oct 2026 06:13:02 GMT",
            },
            30,
        ),
        ({"retry-after": "Sun, 18 Oct 2026 06:13:32 GMT"}, None),
    ],
    ids=["none", "seconds", "negative", "words", "endless", "date", "date-alone"],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(Answer(status=503, headers=headers, body=b"")) == seconds


def test_pauses_double_and_end_after_the_last_try() -> None:
    error = errors.Unavailable()
    pauses = [pause_after(error, attempt, chance=0.0) for attempt in range(1, TRIES + 1)]
    assert pauses == [0.25, 0.5, 1.0, None]


def test_chance_spreads_the_pauses_but_never_beyond_twice() -> None:
    assert pause_after(Broken("x"), 1, chance=0.5) == pytest.approx(0.375)


def test_a_server_that_names_a_time_is_asked_for_as_long_as_it_does_so() -> None:
    error = errors.Unavailable(retry_after=9.0)
    assert pause_after(error, 1, chance=0.0) == 9.0
    assert pause_after(error, 500, chance=0.0) == 9.0


@pytest.mark.parametrize("code", list(Code))
def test_only_what_the_table_says_passes_is_tried_again(code: Code) -> None:
    again = pause_after(BY_CODE[code]("x"), 1, chance=0.0) is not None
    assert again == MEANINGS[code].retry


def test_an_answer_that_is_not_understood_is_not_asked_for_again() -> None:
    assert pause_after(TransportError("unreadable"), 1, chance=0.0) is None
