"""What the child that builds does: readers and engine composed, for one order."""

from __future__ import annotations

import errno
import os

import duckdb

from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.readers import READERS
from ploti.server.adapters.readers.told import told
from ploti.server.build.candidate import Broken, ExportOrder, LookOrder, Order, Result
from ploti.server.build.progress import Telling
from ploti.server.service.build_version import build_version
from ploti.server.service.export_content import export_content
from ploti.server.service.find_continuing import find_continuing
from ploti.server.service.replace_content import replace_content
from ploti.server.service.restore_content import restore_content

_OF_DUCKDB = 2
"""DuckDB gets the memory divided by this; files are written and sorted in the rest."""

_NO_ROOM = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))


def is_out_of_memory(error: Exception) -> bool:
    """Out of an Arrow stream DuckDB's error comes as an OSError that only its text tells."""
    known = isinstance(error, MemoryError | duckdb.OutOfMemoryException)
    return known or (isinstance(error, OSError) and "Out of Memory Error" in str(error))


def do(order: Order, limits: Limits, telling: Telling) -> Result:
    """Do an order of whichever kind."""
    try:
        with DuckEngine(
            order.folder,
            reads=order.reads,
            memory_limit=limits.memory // _OF_DUCKDB,
            match_seconds=limits.match_seconds,
            telling=telling,
        ) as engine:
            if isinstance(order, ExportOrder):
                return export_content(order, engine=engine)
            if isinstance(order, LookOrder):
                return find_continuing(order, engine=engine)
            if order.replaces is not None and order.base is not None:
                return replace_content(order, order.replaces, order.base, engine=engine)
            if order.restores is not None and order.base is not None:
                return restore_content(order, order.restores, order.base, engine=engine)
            readers = told(READERS, engine.telling)
            return build_version(order, readers=readers, engine=engine)
    except (OSError, duckdb.IOException) as error:
        if any(said in str(error) for said in _NO_ROOM):
            return Broken(detail="the build writes more than the server's disk has room for")
        raise
