"""Webhooks' secrets at rest: sealed by the first key, opened by any, by no other."""

import pytest

from ploti.errors import PlotiError
from ploti.server.adapters.sealer import Sealer

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32


def test_what_is_sealed_shows_nothing_and_is_opened_again() -> None:
    sealer = Sealer([NEW])
    sealed = sealer.seal("whsec_abc")
    assert "whsec" not in sealed
    assert sealed != sealer.seal("whsec_abc")
    assert sealer.open(sealed) == sealer.open(sealed) == "whsec_abc"


def test_an_older_key_still_opens_and_the_first_seals() -> None:
    before = Sealer([OLD]).seal("whsec_abc")
    both = Sealer([NEW, OLD])
    assert both.open(before) == "whsec_abc"
    assert Sealer([NEW]).open(both.seal("whsec_abc")) == "whsec_abc"


def test_another_key_or_a_changed_text_opens_nothing() -> None:
    sealed = Sealer([OLD]).seal("whsec_abc")
    for sealer, text in ((Sealer([OTHER]), sealed), (Sealer([OLD]), sealed[:-4] + "AAA=")):
        with pytest.raises(PlotiError, match="PLOTI_SECRET_KEYS"):
            sealer.open(text)
