"""The default client, of the environment's key and address: what `ploti.feeds` and others are."""

from __future__ import annotations

from ploti.client.connection import Client
from ploti.sync.feeds import Feeds

_CLIENT = Client()

feeds = Feeds(_CLIENT)
webhooks = _CLIENT.webhooks
