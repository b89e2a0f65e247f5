"""New ids and secrets, from the system's source of chance."""

from __future__ import annotations

import secrets

from ploti.model.ids import HoldId, SubscriptionId

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LETTERS = 16
_SECRET_LETTERS = 52
"""Of 5 bits each: 256 bits and a few more."""


class RandomIds:
    """Ids of 80 bits, secrets of 260, in digits and small letters that no eye mistakes."""

    def subscription(self) -> SubscriptionId:
        """A new subscription's id."""
        return SubscriptionId(self.token("sub_"))

    def hold(self) -> HoldId:
        """A new hold's id."""
        return HoldId(self.token("hold_"))

    def token(self, prefix: str) -> str:
        """A new id of another kind: the prefix and enough chance that it never repeats."""
        return prefix + _draw(_ID_LETTERS)

    def secret(self, prefix: str) -> str:
        """A new secret: the prefix and 256 bits as text."""
        return prefix + _draw(_SECRET_LETTERS)


def _draw(letters: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(letters))
