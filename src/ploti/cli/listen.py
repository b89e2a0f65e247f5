"""`ploti webhooks listen`: receives and verifies webhooks here, and runs a command for each."""

from __future__ import annotations

import queue
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from ploti.cli.events import describe
from ploti.cli.output import Json, print_line
from ploti.cli.stopping import stopped_while_waiting
from ploti.cli.waking import SecretFile, read_secret
from ploti.client.receiver import Receiver
from ploti.model.event import Event
from ploti.model.webhook import Message, Ping


def listen(
    *,
    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 takes a free one.")] = 8090,
    exec_: Annotated[
        str | None,
        Parameter(name="--exec", help="A command to run for each event, which it gets as input."),
    ] = None,
    secret_file: SecretFile = None,
    json: Json = False,
) -> None:
    """Receive webhooks here, verify them, and print each event that comes, until Ctrl-C.

    Each is answered at once; a command runs afterwards, for one event after another.

    At the end the command still runs for what was answered.

    It does not run for pings, types that are not known, and events that came before.

    PLOTI_WEBHOOK_SECRET has the secret unless --secret-file names a file.
    """
    secret = read_secret(secret_file)
    with stopped_while_waiting(), _running(exec_) as run:

        def take(body: bytes, message: Message) -> None:
            if json:
                print(body.decode(), flush=True)
            elif isinstance(message, Ping):
                print_line(message.id, message.timestamp, message.type)
            else:
                print_line(*describe(message))
            if isinstance(message, Event):
                run(body)

        with Receiver(host, port, secret=secret, take=take, refused=_say) as receiver:
            _say(f"listening on {receiver.url}")
            try:
                receiver.serve_forever()
            except KeyboardInterrupt:
                return


@contextmanager
def _running(command: str | None) -> Iterator[Callable[[bytes], None]]:
    """Takes events for the command; at the end it waits until it ran for each of them."""
    if command is None:
        yield lambda _body: None
        return
    waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    runs = threading.Thread(target=_run_each, args=(shlex.split(command), waiting), daemon=True)
    runs.start()
    try:
        yield waiting.put
    finally:
        waiting.put(None)
        runs.join()


def _run_each(command: list[str], waiting: queue.SimpleQueue[bytes | None]) -> None:
    while (body := waiting.get()) is not None:
        try:
            # a group of its own: Ctrl-C ends the listening, not what runs for an answered event
            done = subprocess.run(command, input=body, check=False, process_group=0)
        except OSError as error:
            _say(f"{command[0]}: {error.strerror}")
            continue
        if done.returncode:
            _say(f"{command[0]} ended with status {done.returncode}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
