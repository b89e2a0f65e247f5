"""What a server said of its bytes, so that it can be asked whether they still stand."""

from __future__ import annotations

from ploti.model.wire import Value


class Validators(Value, kw_only=True):
    """The `ETag` and `Last-Modified` of a state that was read whole from `url`."""

    url: str
    etag: str | None
    last_modified: str | None


def asks(validators: Validators) -> dict[str, str]:
    """The headers that ask for the bytes only where they are others by now."""
    headers = {
        "If-None-Match": validators.etag,
        "If-Modified-Since": validators.last_modified,
    }
    return {name: value for name, value in headers.items() if value is not None}
