"""A subscription's datasets with their current versions, and the cursor to read on from."""

from __future__ import annotations

from collections.abc import Iterator

from ploti.model.event import Links
from ploti.model.ids import SubscriptionId, event_id
from ploti.model.manifest import Manifest, ManifestEntry
from ploti.model.wire import Instant, encode
from ploti.server.eventlog.render import schema_link, version_link
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import DeliveredDataset
from ploti.server.ports.store import Transaction
from ploti.server.service.read_subscriptions import find_log


def manifest_text(
    tx: Transaction,
    principal: Principal,
    subscription_id: SubscriptionId,
    *,
    base: str,
    now: Instant,
) -> Iterator[bytes]:
    """The manifest as JSON, piece by piece, all of one moment of the database (R-137).

    However many datasets there are, one at a time is in memory. Raises NotFound before the first
    piece.
    """
    extent = find_log(tx, principal, subscription_id)
    head = encode(
        Manifest(
            subscription_id=subscription_id,
            event_cursor=event_id(extent.last),
            generated_at=now,
            datasets=[],
        )
    )
    yield head.removesuffix(_END)
    separator = b""
    for delivered in tx.memberships.manifest(subscription_id):
        yield separator + encode(_entry(delivered, base))
        separator = b","
    yield _END


def _entry(delivered: DeliveredDataset, base: str) -> ManifestEntry:
    current = delivered.current
    if current is None:
        return ManifestEntry(
            dataset_id=delivered.dataset_id,
            version=None,
            schema_version=None,
            row_count=None,
            content_digest=None,
        )
    return ManifestEntry(
        dataset_id=delivered.dataset_id,
        version=current.version,
        schema_version=current.schema_version,
        row_count=current.row_count,
        content_digest=current.content_digest,
        links=Links(
            version=version_link(current.dataset_id, current.version, base=base),
            schema=schema_link(current.dataset_id, current.version, base=base),
        ),
    )


_END = b"]}"
