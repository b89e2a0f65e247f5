"""A manifest out of the text that is sent."""

from ploti.model.ids import SubscriptionId
from ploti.model.manifest import Manifest
from ploti.model.wire import Instant, decode
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Transaction
from ploti.server.service.read_manifest import manifest_text


def read_manifest(
    tx: Transaction, who: Principal, subscription: SubscriptionId, *, base: str, now: Instant
) -> Manifest:
    return decode(b"".join(manifest_text(tx, who, subscription, base=base, now=now)), Manifest)
