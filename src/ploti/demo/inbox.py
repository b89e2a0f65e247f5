"""The demo's receiver of webhooks, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ploti.client.receiver import Receiver
from ploti.model.event import Event
from ploti.model.webhook import Message

_PATIENCE = 30.0


class Inbox:
    """The events that came, each verified, in the order of their coming."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.refused: list[str] = []
        self.receiver = Receiver(
            "127.0.0.1", 0, secret="", take=self._take, refused=self.refused.append
        )
        self.url = f"{self.receiver.url}/airports"

    def trust(self, secret: str) -> None:
        """Verify with this secret from now on."""
        self.receiver.secret = secret

    def wait_for(self, count: int) -> list[Event]:
        """The events, once there are so many or the time is up."""
        end = time.monotonic() + _PATIENCE
        while len(self.events) < count and time.monotonic() < end:
            time.sleep(0.02)
        return [*self.events]

    def _take(self, _: bytes, message: Message) -> None:
        if isinstance(message, Event):
            self.events.append(message)


@contextmanager
def receiving() -> Iterator[Inbox]:
    """An inbox that is open while the context is."""
    inbox = Inbox()
    receiver = inbox.receiver
    thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.1})
    with receiver:
        thread.start()
        try:
            yield inbox
        finally:
            receiver.shutdown()
            thread.join()
