"""Connects to a PostgreSQL server, which may never answer, until that is stopped."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import psycopg

from ploti.client.alarm import Alarm

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(address: str, alarm: Alarm) -> Connection:
    """A connection in autocommit.

    Its names are looked up and its sockets waited for by a thread, which nothing can break off and
    nobody waits for once the alarm is stopped.

    Raises:
        psycopg.Error: The server cannot be reached, or lets nobody in.
        Stopped: The alarm was stopped before.
    """
    made: Future[Connection] = Future()
    over = threading.Event()
    made.add_done_callback(lambda _: over.set())
    threading.Thread(target=_connect, args=(address, made), daemon=True, name="connect").start()
    try:
        with alarm.heard_by(over.set, rings=False):
            over.wait()
    finally:
        made.cancel()  # which leaves what is made as it is
    if made.cancelled():
        alarm.check()
    return made.result()


def _connect(address: str, made: Future[Connection]) -> None:
    try:
        connection = psycopg.connect(
            address,
            autocommit=True,
            client_encoding="utf8",
            fallback_application_name="ploti",
            connect_timeout=10,
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it is waited for
        if made.set_running_or_notify_cancel():
            made.set_exception(error)
        return
    if made.set_running_or_notify_cancel():
        made.set_result(connection)
    else:
        connection.close()
