"""Which lanes are served next: those that waited longest, and slow ones in few of the slots."""

from __future__ import annotations

from collections.abc import Iterable

from ploti.model.ids import WebhookId


def choose(
    ready: Iterable[tuple[WebhookId, bool]], *, free: int, free_for_slow: int
) -> dict[WebhookId, bool]:
    """The first of the ready lanes that find a slot, each with whether it is slow.

    `free` slots are left in all, `free_for_slow` of them for lanes that fail or answer slowly, so
    that those never hold up the others.
    """
    chosen: dict[WebhookId, bool] = {}
    for webhook_id, slow in ready:
        if len(chosen) == free:
            break
        if slow and free_for_slow <= sum(chosen.values()):
            continue
        chosen[webhook_id] = slow
    return chosen
