"""A way to the API server whose connections can be cut, whatever is under way on them, and which may be slow."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self

CHUNK_BYTES = 1 << 16


class Proxy:
    """Listens on a port of the loopback interface, and hands bytes to another port and back, while the context lasts.

    `late_s`: how long each piece of a request is held back; answers, such as what a watch tells, are not.
    """

    def __init__(self, target: int, *, late_s: float = 0.0) -> None:
        self._target = target
        self._late_s = late_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Cut all connections, in the middle of whatever is sent."""
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            with self._lock:
                self._open |= {client, server}
            ways = ((client, server, self._late_s), (server, client, 0.0))
            ends = [threading.Thread(target=self._hand_on, args=way) for way in ways]
            threading.Thread(target=self._close, args=(ends, client, server), daemon=True).start()

    @staticmethod
    def _hand_on(source: socket.socket, target: socket.socket, late_s: float) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                time.sleep(late_s)
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _close(self, ends: list[threading.Thread], client: socket.socket, server: socket.socket) -> None:
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()
