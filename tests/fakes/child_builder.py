"""A builder for tests of the use cases: what the child does, done in this process."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from ploti.server.adapters.builder.limits import Limits
from ploti.server.app.orders import do
from ploti.server.build.candidate import (
    Broken,
    BuildOrder,
    BuildResult,
    Exported,
    ExportOrder,
    Looked,
    LookOrder,
)
from ploti.server.build.progress import Tell, Telling, ignore

LIMITS = Limits(memory=1 << 30, seconds=600, file_size=1 << 30)


class ChildBuilder:
    """Real builds without a process of their own, which takes half a second to start."""

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            yield folder

    async def build(self, order: BuildOrder, *, tell: Tell = ignore) -> BuildResult:
        return cast("BuildResult", do(order, LIMITS, Telling(tell)))

    async def export(self, order: ExportOrder) -> Exported | Broken:
        return cast("Exported | Broken", do(order, LIMITS, Telling()))

    async def look(self, order: LookOrder) -> Looked | Broken:
        return cast("Looked | Broken", do(order, LIMITS, Telling()))
