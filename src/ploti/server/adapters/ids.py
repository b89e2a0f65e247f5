"""New ids and secrets, from the system's source of chance, and chance that is no secret."""

from __future__ import annotations

import base64
import random
import secrets

from ploti.model.ids import HoldId, SubscriptionId, WebhookId

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LETTERS = 16
_SIGNING_BYTES = 32
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

    def webhook(self) -> WebhookId:
        """A new webhook's id."""
        return WebhookId(self.token("wh_"))

    def token(self, prefix: str) -> str:
        """A new id of another kind: the prefix and enough chance that it never repeats."""
        return prefix + _draw(_ID_LETTERS)

    def secret(self, prefix: str) -> str:
        """A new secret: the prefix and 256 bits as text."""
        return prefix + _draw(_SECRET_LETTERS)

    def signing_secret(self) -> str:
        """A new secret of Standard Webhooks: `whsec_` and 256 bits in base64."""
        return "whsec_" + base64.b64encode(secrets.token_bytes(_SIGNING_BYTES)).decode()

    def chance(self) -> float:
        """A number from 0 to 1, to spread what would come at once."""
        return random.random()  # noqa: S311  it keeps nothing secret


def _draw(letters: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(letters))
