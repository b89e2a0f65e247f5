"""The base alone has the whole of the help, and says which extra brings what a command needs."""

import subprocess
import sys

import pytest

_SYNC = ("duckdb", "pyarrow", "psycopg")
_SERVER = ("sqlalchemy", "litestar", "pyproj", "uvloop", "uvicorn", "numpy", "shapely", "aiohttp")


def run_base(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program as where only the base is installed."""
    absent = f"import sys; sys.modules.update(dict.fromkeys({(*_SYNC, *_SERVER)!r}))\n"
    command = [sys.executable, "-c", absent + program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_command(arguments: str) -> subprocess.CompletedProcess[str]:
    return run_base(f"from ploti.cli import run; sys.exit(run({arguments.split()!r}))")


@pytest.mark.parametrize(
    "arguments", ["completion bash", "feeds sync --help", "feeds diff --help", "serve --help"]
)
def test_help_and_completion_need_no_extra(arguments: str) -> None:
    done = run_command(arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ploti" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        ("feeds sync sub_a --to duckdb:copy.duckdb", "sync"),
        ("feeds status sub_a --to sqlite:copy.sqlite", "sync"),
        ("feeds verify sub_a --to parquet:copy/", "sync"),
        ("feeds diff ds_a 1 2", "sync"),
        ("serve --data none/feeds", "server"),
        ("demo", "server"),
        ("doctor --data none/feeds", "server"),
        ("migrate --data none/feeds", "server"),
        ("backup a.tar --data none/feeds", "server"),
        ("admin recover --data none/feeds", "server"),
        ("admin keys lost --data none/feeds", "server"),
    ],
)
def test_a_command_says_which_extra_brings_what_it_needs(arguments: str, extra: str) -> None:
    done = run_command(arguments)
    assert done.returncode == 1
    assert f" is not installed: pip install 'ploti[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_sdk_says_which_extra_brings_what_it_needs() -> None:
    done = run_base(
        "import ploti\n"
        "for call in (\n"
        "    lambda: ploti.feeds.sync('sub_a', to='duckdb:copy.duckdb'),\n"
        "    lambda: ploti.feeds.status('sub_a', to='duckdb:copy.duckdb'),\n"
        "    lambda: ploti.feeds.verify('sub_a', to='duckdb:copy.duckdb'),\n"
        "    lambda: ploti.feeds.changes('sub_a'),\n"
        "    lambda: ploti.feeds.table('ds_a'),\n"
        "    lambda: ploti.feeds.diff('ds_a', 1, 2),\n"
        "):\n"
        "    try:\n"
        "        call()\n"
        "    except ploti.ConfigError as error:\n"
        "        print(error)\n"
    )
    assert done.stderr == ""
    assert done.stdout.count("pip install 'ploti[sync]'") == 6
