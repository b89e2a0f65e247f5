"""What starting costs: the modules that an import and a `--help` load."""

import subprocess
import sys

import pytest

LIST_MODULES = "import sys; print('\\n'.join(sys.modules))"
IMPORT = f"import ploti; {LIST_MODULES}"
HELP = f"""
import contextlib, os, sys
from ploti.cli import main
sys.argv = ["ploti", "--help"]
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
{LIST_MODULES}
"""
CHILD = f"import ploti.server.app.child, ploti.server.app.orders; {LIST_MODULES}"
POINTS = f"""
import tempfile
from pathlib import Path
from tests.building import Dataset, declare
points = {{"longitude": "x", "latitude": "y"}}
with tempfile.TemporaryDirectory() as folder:
    made = Dataset(Path(folder), declare(key=["id"], geometry=points))
    made.release_text("id,x,y\\n1,2.5,3.5\\n")
{LIST_MODULES}
"""
STARTED = """
from ploti.server.adapters.builder import child as builder
from ploti.server.app.child import child
builder.run_child = lambda do, is_out_of_memory: None
child()
"""
HEAVY = {
    "aiohttp",
    "alembic",
    "duckdb",
    "litestar",
    "numpy",
    "pyarrow",
    "shapely",
    "sqlalchemy",
    "uvicorn",
}
HTTP = {"httpx2", "httpcore2", "httpx", "aiohttp", "urllib.request", "http.client"}


def loaded(code: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize("code", [IMPORT, HELP], ids=["import", "help"])
def test_an_import_and_a_help_load_neither_the_engine_nor_the_store_nor_the_server(
    code: str,
) -> None:
    modules = loaded(code)
    assert HEAVY & modules == set()
    assert [module for module in modules if module.startswith("ploti.server")] == []


def test_an_import_loads_no_http_library() -> None:
    assert HTTP & loaded(IMPORT) == set()


def test_the_child_of_a_build_loads_nothing_that_only_the_server_needs() -> None:
    """It starts for every build, and is over before much else has begun."""
    servers = {"aiohttp", "alembic", "asyncio", "litestar", "sqlalchemy", "structlog", "uvicorn"}
    assert servers & loaded(CHILD) == set()


def test_a_build_of_points_in_degrees_loads_no_library_of_other_geometries() -> None:
    modules = loaded(POINTS)
    assert "ploti.server.adapters.engine.wkb" in modules
    assert {"pyproj", "shapely"} & modules == set()


def test_the_child_of_a_build_leaves_pandas_out_though_it_is_installed() -> None:
    """What pyarrow imports where it finds it is a part of pandas, not its name alone."""
    assert not {module for module in loaded(STARTED + POINTS) if module.startswith("pandas.")}
    assert {module for module in loaded(POINTS) if module.startswith("pandas.")}
