"""`ploti webhooks listen`: receives and verifies webhooks here, and runs a command for each."""

from __future__ import annotations

import os
import queue
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ploti.cli.events import describe
from ploti.cli.output import Json, print_line
from ploti.client.receiver import Receiver
from ploti.errors import ConfigError
from ploti.model.event import Event
from ploti.model.webhook import Message, Ping

SECRET_VARIABLE = "PLOTI_WEBHOOK_SECRET"  # noqa: S105  the variable's name


def listen(
    *,
    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 takes a free one.")] = 8090,
    exec_: Annotated[
        str | None,
        Parameter(name="--exec", help="A command to run for each event, which it gets as input."),
    ] = None,
    secret_file: Annotated[
        Path | None, Parameter(help=f"A file with the secret; else {SECRET_VARIABLE} has it.")
    ] = None,
    json: Json = False,
) -> None:
    """Receive webhooks here, verify them, and print each event that comes, until Ctrl-C.

    Each is answered at once; a command runs afterwards, for one event after another, and not for
    pings, types that are not known, and events that came before. PLOTI_WEBHOOK_SECRET has the
    secret unless --secret-file names a file.
    """
    command = None if exec_ is None else shlex.split(exec_)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def take(body: bytes, message: Message) -> None:
        if json:
            print(body.decode(), flush=True)
        elif isinstance(message, Ping):
            print_line(message.id, message.timestamp, message.type)
        else:
            print_line(*describe(message))
        if command and isinstance(message, Event):
            waiting.put(body)

    receiver = Receiver(host, port, secret=_secret(secret_file), take=take, refused=_say)
    if command:
        threading.Thread(target=_run_each, args=(command, waiting), daemon=True).start()
    with receiver:
        _say(f"listening on {receiver.url}")
        try:
            receiver.serve_forever()
        except KeyboardInterrupt:
            return


def _secret(file: Path | None) -> str:
    secret = os.environ.get(SECRET_VARIABLE, "") if file is None else file.read_text("utf-8")
    if not secret.strip():
        raise ConfigError(
            f"no secret to verify with: set {SECRET_VARIABLE} to the whsec_… that `ploti webhooks "
            "create` showed, or name a file with --secret-file"
        )
    return secret.strip()


def _run_each(command: list[str], waiting: queue.SimpleQueue[bytes]) -> None:
    while True:
        body = waiting.get()
        try:
            done = subprocess.run(command, input=body, check=False)
        except OSError as error:
            _say(f"{command[0]}: {error.strerror}")
            continue
        if done.returncode:
            _say(f"{command[0]} ended with status {done.returncode}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
