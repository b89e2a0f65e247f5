"""schemathesis, a judge that is not ours, walks the OpenAPI document and finds nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.serving import Server, environment, served

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "schemathesis.toml"
# With the staff's key these would sooner or later take away that very key.
OWN_KEY = """
[[operations]]
include-path-regex = "^/v1/admin/(keys|members)/"
enabled = false
"""
WALK = [sys.executable, "-m", "schemathesis.cli", "--config-file"]


def ids_of(server: Server) -> dict[str, str]:
    """Things that there are, so that requests come past 404; those the walk deletes, it deletes."""
    server.declare("ds_a")
    server.push("ds_a", b"id,v\n1,a\n2,b\n")
    log = server.subscribe("ds_a")
    subscription = log.rpartition("/")[2]
    body = {"url": "http://127.0.0.1:9/h", "subscriptionId": subscription}
    webhook = server.request("POST", "/v1/webhooks", json=body).json()
    return {
        "dataset": "ds_a",
        "subscription": subscription,
        "webhook": webhook["id"],
    }


def walk(server: Server, settings: Path, *headers: str, more: str = "") -> None:
    known = "\n".join(f'"path.{name}" = "{value}"' for name, value in ids_of(server).items())
    settings.write_text(f"{SETTINGS.read_text()}\n[parameters]\n{known}\n{more}")
    done = subprocess.run(
        [*WALK, str(settings), "--no-color", "run", f"{server.url}/openapi.json", *headers],
        check=False,
        capture_output=True,
        text=True,
        cwd=settings.parent,
        env=environment(),
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in server.log()


@pytest.mark.parametrize("who", ["a subscriber", "staff", "nobody"])
def test_schemathesis_finds_nothing(tmp_path: Path, who: str) -> None:
    settings = {"PLOTI_RATE_LIMIT": "100000", "PLOTI_ALLOW_NETWORKS": "127.0.0.0/8"}
    with served(tmp_path, **settings) as server:
        key = {"a subscriber": server.key, "staff": server.staff_key, "nobody": ""}[who]
        more = OWN_KEY if who == "staff" else ""
        headers = ("-H", f"Authorization: Bearer {key}")
        walk(server, tmp_path / "schemathesis.toml", *headers, more=more)
