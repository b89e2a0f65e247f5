"""Adapter: POSTs to webhooks, guarded, each under one deadline."""

from ploti.server.adapters.poster.poster import Limits, WebhookPoster

__all__ = ["Limits", "WebhookPoster"]
