"""What the handlers work with: the ports, the waiters, and the address that links name."""

from __future__ import annotations

from dataclasses import dataclass

from ploti.server.api.limits import RateLimits
from ploti.server.api.repeats import Repeats
from ploti.server.api.waiters import Waiters
from ploti.server.ports.links import LinkedFiles
from ploti.server.ports.measures import Meters
from ploti.server.ports.outside import Blobs, Clock, Ids, Plans
from ploti.server.ports.store import Store
from ploti.server.service.check_source import Parts
from ploti.server.service.deliver_due import Delivering
from ploti.server.service.note_use import KeyUses


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The composed server below its routes; `base` is the public address without a slash."""

    parts: Parts
    delivering: Delivering
    files: LinkedFiles
    waiters: Waiters
    limits: RateLimits
    repeats: Repeats
    uses: KeyUses
    base: str

    @property
    def meters(self) -> Meters:
        """What is measured."""
        return self.parts.meters

    @property
    def store(self) -> Store:
        """The database."""
        return self.parts.store

    @property
    def blobs(self) -> Blobs:
        """The files."""
        return self.parts.blobs

    @property
    def clock(self) -> Clock:
        """The wall clock."""
        return self.parts.clock

    @property
    def plans(self) -> Plans:
        """What workspaces' plans open."""
        return self.parts.plans

    @property
    def ids(self) -> Ids:
        """Where new ids come from."""
        return self.parts.ids
