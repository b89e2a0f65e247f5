"""The child that builds: confined, without secrets, and never a reason to wonder why it died."""

import asyncio
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import uvloop

from ploti.model.admin import BuildProgress, BuildStage
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.app.serve import _LARGEST_FILE
from ploti.server.build.candidate import (
    Broken,
    BuildOrder,
    BuildResult,
    Candidate,
    Exported,
    ExportOrder,
    Unchanged,
)
from ploti.server.sources.declaration import Declaration, Points

T = TypeVar("T")
GIB = 1 << 30
OPENING = """
import os, sys, signal, resource, time
from ploti.errors import SourceError
from ploti.server.adapters.builder.child import run_child
from ploti.server.build.candidate import Unchanged
def say(*facts): return Unchanged(state_digest=" ".join(str(fact) for fact in facts))
def work(order, limits, telling):
"""
CLOSING = "\nrun_child(work, is_out_of_memory=lambda error: isinstance(error, MemoryError))"

Make = Callable[..., ProcessBuilder]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(body: str, *, seconds: int = 60, memory: int = GIB, spare: int = 0) -> ProcessBuilder:
        script = tmp_path / "child.py"
        script.write_text(OPENING + "\n".join(f"    {line}" for line in body.split("\n")) + CLOSING)
        limits = Limits(memory=memory, seconds=seconds, file_size=1 << 20)
        entry = [str(script)]
        return ProcessBuilder(tmp_path / "work", entry=entry, limits=limits, spare=spare)

    return make


def order_in(folder: str) -> BuildOrder:
    dataset = DatasetId("ds_a")
    return BuildOrder(
        dataset_id=dataset,
        declaration=Declaration(id=dataset, title="A", place="us", topic="a"),
        version=3,
        base=None,
        source="state.csv",
        source_name="a.csv",
        folder=folder,
    )


async def build(builder: ProcessBuilder) -> BuildResult:
    async with builder.folder() as folder:
        return await builder.build(order_in(folder))


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return uvloop.run(main())


def said(result: BuildResult) -> list[str]:
    assert isinstance(result, Unchanged), result
    return result.state_digest.split()


def reason(result: BuildResult) -> str:
    assert isinstance(result, Broken), result
    assert "\n" not in result.detail
    assert "Traceback" not in result.detail
    return result.detail


def test_the_child_gets_the_order_and_its_result_comes_back(make: Make) -> None:
    result = run(
        build(make("return say(order.dataset_id, order.version, order.source, limits.memory)"))
    )
    assert said(result) == ["ds_a", "3", "state.csv", str(GIB)]


def test_a_child_that_takes_the_last_of_the_disk_is_ended_and_says_why(
    make: Make, tmp_path: Path
) -> None:
    spare = shutil.disk_usage(tmp_path).total  # of which some is taken, whatever is freed meanwhile
    builder = make('open("unpacked", "w").write("a")\ntime.sleep(60)', spare=spare)
    result = run(build(builder))
    assert f"of which {spare:,} bytes stay free (PLOTI_MIN_FREE)" in reason(result)
    assert not list((tmp_path / "work").iterdir())


def test_the_child_has_no_variables_but_those_of_its_folder(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLOTI_API_KEY", "ploti_secret")
    result = run(build(make("return say(*sorted(os.environ))")))
    own = {"HOME", "LANG", "TMPDIR", "TZ", "ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX"}
    assert set(said(result)) - {"LC_CTYPE"} == own


def test_the_child_has_no_descriptors_of_the_server(make: Make, tmp_path: Path) -> None:
    body = "return say(*(os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
    database = sqlite3.connect(tmp_path / "ploti.db")
    database.execute("CREATE TABLE t (x)")
    with (tmp_path / "secret").open("w") as file, socket.create_server(("127.0.0.1", 0)) as server:
        links = [Path(f"/proc/self/fd/{one.fileno()}").readlink() for one in (file, server)]
        ours = {*map(str, links), str(tmp_path / "ploti.db")}
        child = set(said(run(build(make(f"{body} if os.path.exists(f'/proc/self/fd/{{n}}')))")))))
    database.close()
    assert len(ours) == 3
    assert not ours & child


def test_the_child_works_in_its_own_folder_and_session_and_gives_way(make: Make) -> None:
    body = "return say(os.getcwd() == order.folder, os.getsid(0) == os.getpid(), os.nice(0))"
    assert said(run(build(make(body)))) == ["True", "True", str(min(os.nice(0) + 10, 19))]


def test_the_folder_of_a_build_is_gone_with_all_it_holds(make: Make, tmp_path: Path) -> None:
    run(build(make("open('left', 'w').write('x'); os.mkdir('sub'); return say(1)")))
    assert list((tmp_path / "work").iterdir()) == []


def test_what_a_killed_server_left_is_gone_at_the_next_start(make: Make, tmp_path: Path) -> None:
    (tmp_path / "work/0").mkdir(parents=True)
    (tmp_path / "work/0/half").write_bytes(b"x")
    make("return say(1)")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_folder_that_the_child_of_a_killed_server_still_fills_hinders_nobody(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "work" / "left"
    left.mkdir(parents=True)
    # As it is where files come faster than they are removed
    monkeypatch.setattr(shutil, "rmtree", lambda *_args, **_kwargs: None)
    assert said(run(build(make("return say(len(os.listdir(order.folder)))")))) == ["0"]
    assert left.is_dir()


def test_a_source_error_is_the_reason_as_it_stands(make: Make) -> None:
    assert reason(run(build(make("raise SourceError('line 7: one cell too many')")))) == (
        "line 7: one cell too many"
    )


def test_memory_over_the_limit_is_a_reason_that_names_the_setting(make: Make) -> None:
    result = run(build(make("x = bytearray(1 << 30); return say(len(x))", memory=300 << 20)))
    assert reason(result) == "the build needs more memory than the 300 MiB of PLOTI_BUILD_MEMORY"


def test_the_limit_is_on_data_not_on_address_space(make: Make) -> None:
    body = "import mmap; m = mmap.mmap(-1, 3 << 30, flags=mmap.MAP_SHARED); return say(len(m))"
    assert said(run(build(make(body, memory=300 << 20)))) == [str(3 << 30)]


def test_cpu_time_over_the_limit_is_a_reason_that_names_the_setting(make: Make) -> None:
    result = run(build(make("while True: pass", seconds=1)))
    assert reason(result) == "the build ran longer than the 1 s of PLOTI_BUILD_SECONDS"


def test_a_child_that_only_sleeps_is_ended_in_the_same_time(make: Make) -> None:
    began = time.monotonic()
    result = run(build(make("time.sleep(60)", seconds=1)))
    assert reason(result) == "the build ran longer than the 1 s of PLOTI_BUILD_SECONDS"
    assert time.monotonic() - began < 30


def test_a_file_over_the_limit_cannot_be_written(make: Make) -> None:
    body = (
        "try: open('big', 'wb').write(bytes(2 << 20)); return say('written')\n"
        "except OSError as e: return say(e.errno)"
    )
    assert said(run(build(make(body)))) == ["27"]


def built(folder: Path, state: str, *, file_size: int, **declared: Any) -> BuildResult:
    """What a child of the server's makes of a state where no file may be larger."""
    limits = Limits(memory=GIB, seconds=60, file_size=file_size)
    builder = ProcessBuilder(folder / "work", entry=("-m", "ploti.server.app.child"), limits=limits)
    source = folder / "a.csv"
    source.write_text(state)

    async def main() -> BuildResult:
        async with builder.folder() as made:
            order = msgspec.structs.replace(order_in(made), source=str(source))
            declaration = msgspec.structs.replace(order.declaration, **declared)
            return await builder.build(msgspec.structs.replace(order, declaration=declaration))

    return run(main())


def test_a_build_without_room_on_the_disk_says_so(tmp_path: Path) -> None:
    state = "id\n" + "".join(f"{secrets.token_hex(20)}\n" for _ in range(20_000))
    result = built(tmp_path, state, file_size=64 << 10)
    assert reason(result) == "the build writes more than the server's disk has room for"


def test_points_with_columns_almost_empty_are_ordered_in_the_room_that_a_build_has(
    tmp_path: Path,
) -> None:
    """What a source leaves out takes room where rows are brought into order."""
    names = [f"n{column}" for column in range(40)]
    rows = [
        f"{row % 360 - 180},{row % 90}" + (",1.5" if row == 1 else ",") * 40
        for row in range(20_000)
    ]
    state = "\n".join([",".join(["lng", "lat", *names]), *rows])
    points = Points(longitude="lng", latitude="lat")
    decimals = dict.fromkeys(names, "decimal(9,1)")
    most = _LARGEST_FILE * len(state)
    result = built(tmp_path, state, file_size=most, geometry=points, columns=decimals)
    assert isinstance(result, Candidate), result
    result = built(tmp_path, state, file_size=4 * len(state), geometry=points, columns=decimals)
    assert reason(result) == "the build writes more than the server's disk has room for"


@pytest.mark.parametrize(
    ("body", "said_why"),
    [
        ("raise RuntimeError('/srv/secret')", "failed inside ploti; the server's log"),
        ("os._exit(3)", "failed inside ploti; the server's log"),
        ("os.abort()", "more memory than the 1024 MiB of PLOTI_BUILD_MEMORY, or crashed"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by the system"),
        ("print('x' * 5_000_000, file=sys.stderr); os._exit(1)", "failed inside ploti"),
    ],
)
def test_a_child_that_dies_is_a_broken_build_with_a_reason(
    make: Make, body: str, said_why: str
) -> None:
    detail = reason(run(build(make(body))))
    assert said_why in detail
    assert "/srv" not in detail


def test_builds_take_turns(make: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    body = f"log = open({str(log)!r}, 'a', buffering=1); log.write('+'); time.sleep(0.2)"
    builder = make(f"{body}; log.write('-'); return say(1)")

    async def main() -> None:
        await asyncio.gather(*(build(builder) for _ in range(3)))

    run(main())
    assert log.read_text() == "+-+-+-"


def test_an_export_does_not_wait_for_a_build_nor_a_build_for_an_export(
    make: Make, tmp_path: Path
) -> None:
    body = f"""
from ploti.server.build.candidate import Exported, ExportOrder
mine, other = ("export", "build") if isinstance(order, ExportOrder) else ("build", "export")
open(os.path.join({str(tmp_path)!r}, mine), "w").close()
while not os.path.exists(os.path.join({str(tmp_path)!r}, other)): time.sleep(0.01)
return Exported(files=[]) if mine == "export" else say(mine)"""
    builder = make(body)

    async def export() -> Exported | Broken:
        async with builder.folder() as folder:
            schema = Schema(columns=[], key_columns=[], geometry=None)
            return await builder.export(
                ExportOrder(
                    dataset_id=DatasetId("ds_a"), version=1, schema=schema, files=[], folder=folder
                )
            )

    async def main() -> tuple[BuildResult, Exported | Broken]:
        return await asyncio.gather(build(builder), export())

    built, exported = run(main())
    assert said(built) == ["build"]
    assert exported == Exported(files=[])


def alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(path: Path) -> int:
    for _ in range(1000):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never came")


def wait_until_dead(pid: int) -> None:
    for _ in range(500):
        if not alive(pid):
            return
        time.sleep(0.02)
    raise AssertionError("the child lives on")


def writes_its_pid_and_sleeps(path: Path) -> str:
    return f"open({str(path)!r}, 'w').write(str(os.getpid())); time.sleep(60)"


def test_a_build_that_is_called_off_ends_its_child(make: Make, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    builder = make(writes_its_pid_and_sleeps(pid_file))

    async def main() -> int:
        task = asyncio.create_task(build(builder))
        pid = await asyncio.to_thread(wait_for, pid_file)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert not alive(run(main()))


def test_a_child_ends_when_its_server_is_killed(make: Make, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    make(writes_its_pid_and_sleeps(pid_file))
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.test_builder", str(tmp_path)],
        cwd=Path(__file__).parents[2],
    )
    try:
        pid = wait_for(pid_file)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    wait_until_dead(pid)


if __name__ == "__main__":
    tmp = Path(sys.argv[1])
    limits = Limits(memory=GIB, seconds=60, file_size=1 << 20)
    run(build(ProcessBuilder(tmp / "work2", entry=[str(tmp / "child.py")], limits=limits)))


def test_what_the_child_tells_arrives_before_its_result(make: Make) -> None:
    body = (
        "from ploti.model.admin import BuildStage\n"
        "telling.begin(BuildStage.READING)\n"
        "telling.begin(BuildStage.WRITING, rows=4)\n"
        "telling.reach_rows(1)\n"
        "telling.reach_rows(1)\n"
        "telling.reach_rows(4)\n"
        "return say('x' * 300_000)"
    )
    told: list[BuildProgress] = []

    async def told_build(builder: ProcessBuilder) -> BuildResult:
        async with builder.folder() as folder:
            return await builder.build(order_in(folder), tell=told.append)

    assert said(run(told_build(make(body)))) == ["x" * 300_000]
    writing = BuildProgress(stage=BuildStage.WRITING, rows=4)
    assert told == [
        BuildProgress(stage=BuildStage.READING),
        writing,
        *(msgspec.structs.replace(writing, share=share) for share in (0.25, 1.0)),
    ]


def test_a_build_that_waits_for_another_says_so(make: Make) -> None:
    told: list[BuildProgress] = []

    async def both(builder: ProcessBuilder) -> None:
        async with builder.folder() as folder, builder.folder() as other:
            first = asyncio.create_task(builder.build(order_in(folder)))
            await asyncio.sleep(0)
            await builder.build(order_in(other), tell=told.append)
            await first

    run(both(make("return say(1)")))
    assert told == [BuildProgress(stage=BuildStage.WAITING)]
