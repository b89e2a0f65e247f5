"""Webhooks: made, watched and sent again; and what a receiver checks its messages with."""

from __future__ import annotations

from ploti.client import webhook_endpoints
from ploti.client.methods import Async, Blocking, ListMethod, method
from ploti.model.signature import verify


class _Webhooks:
    create = method(webhook_endpoints.create_webhook)
    list = ListMethod(webhook_endpoints.list_webhooks)
    show = method(webhook_endpoints.get_webhook)
    update = method(webhook_endpoints.update_webhook)
    delete = method(webhook_endpoints.delete_webhook)
    test = method(webhook_endpoints.test_webhook)
    rotate = method(webhook_endpoints.rotate_webhook)
    resume = method(webhook_endpoints.resume_webhook)
    deliveries = ListMethod(webhook_endpoints.list_deliveries)
    retry = method(webhook_endpoints.retry_delivery)
    skip = method(webhook_endpoints.skip_delivery)
    verify = staticmethod(verify)


class Webhooks(_Webhooks, Blocking):
    """Webhooks and their deliveries; `verify` needs no server."""


class AsyncWebhooks(_Webhooks, Async):
    """Webhooks and their deliveries; `verify` needs no server."""
