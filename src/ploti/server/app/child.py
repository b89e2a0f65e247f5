"""The child that builds, as the server starts it: for one order."""

from __future__ import annotations

import gc


def child() -> None:
    """Do the one order on standard input, as `adapters.builder` starts it."""
    # What imports make is never garbage: to look for some took a tenth of the start.
    gc.disable()
    from ploti.server.adapters.builder.child import run_child  # noqa: PLC0415
    from ploti.server.app.orders import do, is_out_of_memory  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    run_child(do, is_out_of_memory=is_out_of_memory)


if __name__ == "__main__":
    child()
