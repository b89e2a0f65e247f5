"""The server's side: start the child, wait for its report, and say why there is none."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import structlog

from ploti.model.admin import BuildProgress, BuildStage
from ploti.model.wire import encode
from ploti.server.adapters.builder.child import say_out_of_memory
from ploti.server.adapters.builder.limits import Limits, Task
from ploti.server.adapters.builder.reports import Report
from ploti.server.build.candidate import (
    Broken,
    BuildOrder,
    BuildResult,
    Exported,
    ExportOrder,
    Looked,
    LookOrder,
    Order,
    Result,
)
from ploti.server.build.progress import Tell, ignore

_LOG = structlog.get_logger()
_LONGEST_REPORT = 64 << 20
_LONGEST_COMPLAINT = 16 << 10
_LOOK_EVERY = 0.2
"""Seconds between two looks at the disk: a child writes no more than some 100 MB meanwhile."""

_Pipes = tuple[asyncio.StreamWriter, asyncio.StreamReader]
VARIABLES = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    # The limit counts what is mapped. Arrow's own pool and an arena a thread mapped 2 GiB and more
    # in the build of 1.7M rows that touches 840 MiB; so it maps 1,070 MiB, for the same CPU time.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}
"""The child's environment, beside its folder."""

_INSIDE = "the build failed inside ploti; the server's log has the reason"


class ProcessBuilder:
    """The Builder port: Python runs `entry` in a folder below `folder`, one build at a time.

    Beside it there may be one export, which no release has to wait for. A child is ended where it
    leaves less than `spare` bytes of the disk free: what it unpacks may fill any disk.

    The child gets a session, an environment and a folder of its own, and nothing of the server's:
    no descriptors but its pipes, no variables, no secrets. What earlier builds left in `folder` is
    removed when the builder is made.
    """

    def __init__(
        self, folder: Path, *, entry: Sequence[str], limits: Limits, spare: int = 0
    ) -> None:
        self._folder = folder
        self._spare = spare
        self._entry = entry
        self._limits = limits
        self._building, self._exporting = asyncio.Semaphore(1), asyncio.Semaphore(1)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="builder")
        # A killed server's child may still write there: what it leaves goes with the next start
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[str]:
        """An empty folder for one build, gone with all it holds when the context closes."""
        folder = tempfile.mkdtemp(dir=self._folder)
        try:
            yield folder
        finally:
            await self._run(lambda: shutil.rmtree(folder, ignore_errors=True))

    async def build(self, order: BuildOrder, *, tell: Tell = ignore) -> BuildResult:
        """Run the order and wait; a child that dies gives `Broken` with its reason.

        `tell` gets word of how far the build is.
        """
        if self._building.locked():
            tell(BuildProgress(stage=BuildStage.WAITING))
        async with self._building:
            return cast("BuildResult", await self._do(order, tell))

    async def export(self, order: ExportOrder) -> Exported | Broken:
        """Run the order as a build is run."""
        async with self._exporting:
            return cast("Exported | Broken", await self._do(order, ignore))

    async def look(self, order: LookOrder) -> Looked | Broken:
        """Run the order as an export is run, in its turn with those."""
        async with self._exporting:
            return cast("Looked | Broken", await self._do(order, ignore))

    def close(self) -> None:
        """End the thread that clears folders away."""
        self._pool.shutdown()

    async def _do(self, order: Order, tell: Tell) -> Result:
        # uvloop closes the descriptor of a pipe's file twice, and by then it may be another file's;
        # a socket it detaches.
        reading, writing = socket.socketpair()
        with reading:
            with writing:
                child = await self._start(order.folder, writing.fileno())
            try:
                return await self._wait(child, order, reading, Report(tell, limit=_LONGEST_REPORT))
            finally:
                _kill(child)
                await child.wait()

    async def _start(self, folder: str, report: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-X", "utf8", *self._entry, str(report)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=[report],
            cwd=folder,
            env={"HOME": folder, "TMPDIR": folder, **VARIABLES},
            start_new_session=True,
        )

    async def _wait(
        self,
        child: asyncio.subprocess.Process,
        order: Order,
        reading: socket.socket,
        report: Report,
    ) -> Result:
        stdin, stderr = cast("_Pipes", (child.stdin, child.stderr))
        lifted = order.lifted if isinstance(order, BuildOrder) else None
        limits = self._limits.without(lifted)
        stdin.write(encode(Task(limits=limits, order=order)) + b"\n")
        try:
            async with asyncio.timeout(limits.seconds), _opened(reading) as pipe:
                _, complaint, status, too_full = await asyncio.gather(
                    _listen(pipe, report),
                    _read(stderr, _LONGEST_COMPLAINT),
                    child.wait(),
                    self._watch_room(child),
                )
        except TimeoutError:
            return Broken(detail=self._say_too_slow())
        if status == 0:
            return report.result()
        if too_full:
            return Broken(detail=self._say_too_full())
        return self._explain(status, complaint.decode("utf-8", "replace"), order)

    async def _watch_room(self, child: asyncio.subprocess.Process) -> bool:
        """End the child where it takes the last of the disk; whether that was done."""
        while child.returncode is None:
            if self._spare and shutil.disk_usage(self._folder).free < self._spare:
                _kill(child)
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(child.wait(), _LOOK_EVERY)
        return False

    def _explain(self, status: int, complaint: str, order: Order) -> Broken:
        _LOG.error(
            "build died", dataset=order.dataset_id, status=status, complaint=complaint.strip()
        )
        match -status:
            case signal.SIGXCPU:
                return Broken(detail=self._say_too_slow())
            case signal.SIGABRT | signal.SIGSEGV | signal.SIGBUS:
                return Broken(detail=f"{say_out_of_memory(self._limits.memory)}, or crashed")
            case signal.SIGKILL:
                return Broken(detail="the build was killed by the system, perhaps for its memory")
            case _:
                return Broken(detail=_INSIDE)

    def _say_too_slow(self) -> str:
        return f"the build ran longer than the {self._limits.seconds} s of PLOTI_BUILD_SECONDS"

    def _say_too_full(self) -> str:
        return (
            "what the build unpacks and writes does not fit on the server's disk, of which"
            f" {self._spare:,} bytes stay free (PLOTI_MIN_FREE)"
        )

    async def _run(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, work)


@asynccontextmanager
async def _opened(sock: socket.socket) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection(sock=sock)
    try:
        yield reader
    finally:
        writer.close()


async def _listen(pipe: asyncio.StreamReader, report: Report) -> None:
    while chunk := await pipe.read(1 << 16):
        report.feed(chunk)


async def _read(pipe: asyncio.StreamReader, limit: int) -> bytes:
    """All that comes, of which the first `limit` bytes are kept."""
    kept = bytearray()
    while chunk := await pipe.read(1 << 16):
        kept += chunk[: limit - len(kept)]
    return bytes(kept)


def _kill(child: asyncio.subprocess.Process) -> None:
    """End the child and all that it started, which share its session."""
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
