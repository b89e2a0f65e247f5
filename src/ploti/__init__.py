"""Public geospatial data as versioned datasets, and a client that keeps your tables in step.

`feeds` and `webhooks` go by PLOTI_API_URL and PLOTI_API_KEY, the clients by what they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ploti import errors as errors
from ploti.errors import ApiError as ApiError
from ploti.errors import ConfigError as ConfigError
from ploti.errors import Conflict as Conflict
from ploti.errors import DestinationBusy as DestinationBusy
from ploti.errors import Expired as Expired
from ploti.errors import Forbidden as Forbidden
from ploti.errors import InternalError as InternalError
from ploti.errors import InvalidInput as InvalidInput
from ploti.errors import InvalidSignature as InvalidSignature
from ploti.errors import MethodNotAllowed as MethodNotAllowed
from ploti.errors import NotDeliverable as NotDeliverable
from ploti.errors import NotFound as NotFound
from ploti.errors import NotSubscribed as NotSubscribed
from ploti.errors import OutsideCoverage as OutsideCoverage
from ploti.errors import PlotiError as PlotiError
from ploti.errors import RateLimited as RateLimited
from ploti.errors import SourceError as SourceError
from ploti.errors import SyncError as SyncError
from ploti.errors import TooLarge as TooLarge
from ploti.errors import TooSlow as TooSlow
from ploti.errors import TransportError as TransportError
from ploti.errors import Unauthenticated as Unauthenticated
from ploti.errors import Unavailable as Unavailable
from ploti.errors import VerificationFailed as VerificationFailed

if TYPE_CHECKING:
    from ploti import model as model
    from ploti.client.connection import AsyncClient as AsyncClient
    from ploti.client.connection import Client as Client
    from ploti.sync.default import feeds as feeds
    from ploti.sync.default import webhooks as webhooks

    __version__: str
else:  # loaded when first used; out of the type checkers' sight, so that they refuse other names

    def __getattr__(name: str) -> object:
        from importlib import import_module, metadata

        match name:
            case "Client" | "AsyncClient":
                found = getattr(import_module("ploti.client.connection"), name)
            case "model" | "sync":
                return import_module(f"ploti.{name}")
            case "feeds" | "webhooks":
                found = getattr(import_module("ploti.sync.default"), name)
            case "__version__":
                found = metadata.version("ploti")
            case _:
                raise AttributeError(f"module 'ploti' has no attribute '{name}'")
        return globals().setdefault(name, found)
