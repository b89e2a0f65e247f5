"""The child that builds, as the server starts it: for one order."""

from __future__ import annotations

import gc
import sys


def child() -> None:
    """Do the one order on standard input, as `adapters.builder` starts it."""
    leave_pandas_out()
    # What imports make is never garbage: to look for some took a tenth of the start.
    gc.disable()
    from ploti.server.adapters.builder.child import run_child  # noqa: PLC0415
    from ploti.server.app.orders import do, is_out_of_memory  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    run_child(do, is_out_of_memory=is_out_of_memory)


class _WithoutPandas:
    """Stands first among those that find modules."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Say of pandas that it is not there; of others nothing."""
        if name == "pandas":
            raise ModuleNotFoundError(f"no build needs {name}", name=name)


def leave_pandas_out() -> None:
    """Have pandas count as not installed in this process.

    No build asks it anything, yet pyarrow and pyogrio import it where they find it: a quarter of a
    second and 43 MB.
    """
    sys.meta_path.insert(0, _WithoutPandas)


if __name__ == "__main__":
    child()
