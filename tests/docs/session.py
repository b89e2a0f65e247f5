"""A reader of a page: types its commands in order, against a real server that the page starts."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.blocks import Block, Step, read_steps
from tests.e2e.serving import environment

ADDRESS = "http://127.0.0.1:8080"
"""Where the pages have their server; here it takes a free port."""
PATIENCE = 300
_ID = re.compile(r"\b(sub|hold|mem|wh|ws|key)_[0-9a-z]{16}\b")
_NORMAL = (
    (_ID, r"\1_…"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), ADDRESS),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


class Session:
    """A shell whose variables last, in a folder of its own; it knows the ids behind `sub_…`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "reader"
        self.folder.mkdir()
        self._state = folder / "variables"
        self._state.touch()
        self._log = folder / "server.log"
        self._log.touch()
        self.said = list[str]()
        self._seen = dict[str, str]()
        self._server: subprocess.Popen[str] | None = None
        self._fixed = dict[str, str]()
        self._following = list[subprocess.Popen[str]]()
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self._environment = environment() | {"PATH": path, "LC_ALL": "C.UTF-8"}

    def read(self, blocks: list[Block]) -> None:
        """Do what every block says, and compare what is shown."""
        for number, block in enumerate(blocks):
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            match block.language:
                case "console":
                    for step in read_steps(block):
                        self._take(step)
                case "python":
                    (self.folder / "page.py").write_text(self._fill(block.text))
                    shown = after.text if after and after.language == "text" else None
                    self._take(Step("python page.py", shown))
                case "yaml" | "csv" | "json":
                    assert block.file is not None, f"no file is named before:\n{block.text}"
                    (self.folder / block.file).write_text(self._fill(block.text))

    def _take(self, step: Step) -> None:
        command = self._fill(step.command)
        if command.startswith("ploti serve "):
            self._serve(command)
        elif command.endswith(" --follow"):
            self._follow(command)
        else:
            said = self._run(command)
            self.said.append(said)
            self._seen |= {found[1]: found[0] for found in _ID.finditer(said)}
            if step.shown is not None:
                compare(step.command, step.shown, said)

    def _run(self, command: str) -> str:
        script = f". {shlex.quote(str(self._state))}\n{command}\nstatus=$?\n"
        script += f"export -p > {shlex.quote(str(self._state))}\nexit $status"
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{self._log.read_text()}"
        return ended.stdout

    def _serve(self, command: str) -> None:
        """Start the page's server in the reader's folder, on a free port."""
        arguments = shlex.split(command)
        data = self.folder / arguments[arguments.index("--data") + 1]
        with self._log.open("w") as log:
            self._server = subprocess.Popen(
                ["bash", "-c", f". {shlex.quote(str(self._state))}\nexec {command} --port 0"],
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._server.stdout is not None
        said = next((line for line in self._server.stdout if line.startswith("ploti serves ")), "")
        assert said, f"{command}\n{self._log.read_text()}"
        staff, subscriber = (data / "keys").read_text().split()
        self._environment["PLOTI_API_URL"] = said.split()[-1]
        self._fixed = {
            "ploti_STAFF…": staff,
            "ploti_SUBSCRIBER…": subscriber,
            ADDRESS: said.split()[-1],
        }

    def _follow(self, command: str) -> None:
        """Start what goes on, and wait until its destination is there."""
        script = f". {shlex.quote(str(self._state))}\nexec {command}"
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=self.folder, env=self._environment, text=True
        )
        self._following.append(process)
        found = re.search(r"duckdb:(\S+)", command)
        assert found is not None
        while not (self.folder / found[1]).exists():
            assert process.poll() is None, f"{command}\nended with {process.returncode}"
            time.sleep(0.1)

    def _fill(self, text: str) -> str:
        """The text with the ids, keys and address that it stands for."""
        for name, meant in self._fixed.items():
            text = text.replace(name, meant)
        for prefix, id_ in self._seen.items():
            text = text.replace(f"{prefix}_…", id_)
        return text

    def close(self) -> None:
        for process in self._following:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) in {0, 128 + signal.SIGTERM, -signal.SIGTERM}
        if self._server is not None:
            self._server.terminate()
            status = self._server.wait(timeout=60)
            assert self._server.stdout is not None
            self._server.stdout.close()
            assert status == 0, self._log.read_text()


def compare(command: str, shown: str, said: str) -> None:
    """Hold what a page shows against what was said; a line `…` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line) + r"\n"
        for line in normal(shown).strip("\n").split("\n")
    )
    plain = normal(said).strip("\n") + "\n"
    assert re.fullmatch(pattern, plain), f"$ {command}\nshown:\n{normal(shown)}\nsaid:\n{plain}"


def normal(text: str) -> str:
    """A text without what differs from run to run: ids, times, ports, the width of columns."""
    for pattern, name in _NORMAL:
        text = pattern.sub(name, text)
    return text


@contextmanager
def session(folder: Path) -> Iterator[Session]:
    reader = Session(folder)
    try:
        yield reader
    finally:
        reader.close()
