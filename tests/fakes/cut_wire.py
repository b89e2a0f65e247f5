"""A way to a PostgreSQL server that breaks at a commit, before it arrives or before its answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class CutWire:
    """Breaks the connection at the commits that are counted down to; `after` lets them arrive."""

    port: int
    to_port: int
    commits: int = 0
    after: bool = True
    cut: int = 0
    _open: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def cut_at(self, commit: int, *, after: bool) -> None:
        """Break at the nth commit from now."""
        self.commits, self.after = commit, after

    def serve(self, listener: socket.socket) -> None:
        """Take connections until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to_port))
                self._open += [client, server]
                for each, ends in ((self._pass, (server, client)), (self._send, (client, server))):
                    self._threads.append(threading.Thread(target=each, args=ends, daemon=True))
                    self._threads[-1].start()

    def close(self) -> None:
        """End what is open."""
        for each in self._open:
            _end(each)
        for thread in self._threads:
            thread.join()
        for each in self._open:
            each.close()

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if b"COMMIT" in data and self.commits:
                    self.commits -= 1
                    if not self.commits:
                        self._cut(client, server, data)
                        return
                server.sendall(data)
        _end(server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        self.cut += 1
        _end(client)
        if self.after:
            server.sendall(data)
            server.shutdown(socket.SHUT_WR)  # what was sent arrives before the end does
        else:
            _end(server)

    @staticmethod
    def _pass(server: socket.socket, client: socket.socket) -> None:
        """Hand back the server's answers; once the client is cut off, only read them away."""
        with suppress(OSError):
            while data := server.recv(1 << 16):
                with suppress(OSError):
                    client.sendall(data)
        _end(client)


@contextmanager
def cut_wire(to_port: int) -> Iterator[CutWire]:
    """A free port of loopback that leads to another one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = CutWire(listener.getsockname()[1], to_port)
        thread = threading.Thread(target=wire.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield wire
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            wire.close()


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
