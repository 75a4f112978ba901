"""The lifecycle of one resource manager in the service, from its registration until it is stopped.

    REGISTERED ──first stream──► RUNNING ──last stream breaks, or it does not read──► PAUSED ──timeout──► STOPPED
                                    ▲                                                   │
                                    └───────────── a stream, or it reads again ─────────┘
    any state ──goodbye: it closes its last stream itself; registration by another──► STOPPED

Source: *Scheduler Interface Spec*, "Lifecycle of RM-Scheduler communication"; REGISTERED is its `init` as seen by the
service. In PAUSED the state of the resource manager is kept, and nothing new is decided for it. STOPPED is final: the
core has dropped its state.

Messages of the core wait as bytes in `Session.boxes`, one FIFO for each kind of stream, so that they outlive a stream
that breaks. All of them together have one limit of bytes. Above it the service reads no more requests of the resource
manager and decides nothing more for it, until at most half of the limit is left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Literal

from licorne.host.log import Log
from licorne.si import v19
from licorne.si.rpc import Kind

from .streams import End, Stream

Dialect = Literal["first", "1.9"]
KINDS: dict[Dialect, tuple[Kind, ...]] = {"first": ("update",), "1.9": ("application", "allocation", "node")}


class State(Enum):
    """A state in the lifecycle of a resource manager."""

    REGISTERED = "registered"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class Session:
    """A registered resource manager.

    `number` distinguishes this registration from others of the same id; `opened` is its number in the common order of
    streams and registrations. `on_pause` is called when `full` changes: more than `buffer_bytes` wait for the streams,
    or no more than half of that.
    """

    def __init__(
        self,
        request: v19.RegisterResourceManagerRequest,
        number: str,
        opened: int,
        *,
        buffer_bytes: int,
        on_pause: Callable[[Session], None],
        log: Log,
    ) -> None:
        self.rm_id = request.rm_id
        self.request = request
        self.number = number
        self.opened = opened
        self.again = False  # the id was registered before
        self.dialect: Dialect | None = None
        self.state = State.REGISTERED
        self.streams: dict[Kind, Stream] = {}
        self.boxes: dict[Kind, deque[bytes]] = {kind: deque() for kinds in KINDS.values() for kind in kinds}
        self.buffered = 0  # bytes in all boxes
        self.full = False
        self.yielding = False  # it had a whole slice, and other resource managers have their turn
        self.taking: dict[Kind, asyncio.Task[None]] = {}  # long requests that the core is being given in steps
        self.readable = asyncio.Event()
        self.readable.set()
        self.timer: asyncio.TimerHandle | None = None
        self.log = log.bind(rm=self.rm_id)
        self.messages_in = 0
        self.messages_out = 0
        self._buffer_bytes = buffer_bytes
        self._on_pause = on_pause

    @property
    def paused(self) -> bool:
        """Whether nothing is to be decided for the resource manager."""
        return self.full or self.yielding or bool(self.taking) or self.state is not State.RUNNING

    def tell(self, kind: Kind, data: bytes) -> None:
        """Queue a message for the stream of its kind, and wake that stream."""
        self.boxes[kind].append(data)
        self.buffered += len(data)
        self.messages_out += 1
        if self.buffered > self._buffer_bytes and not self.full:
            self.full = True
            self.readable.clear()
            self._on_pause(self)
        stream = self.streams.get(kind)
        if stream is not None:
            stream.wake()

    def written(self, size: int) -> None:
        """Note that `size` bytes of the queued messages have been written to a stream."""
        self.buffered -= size
        if self.full and self.buffered <= self._buffer_bytes // 2:
            self.full = False
            self.readable.set()
            self._on_pause(self)

    def end_streams(self, end: Callable[[Stream], End]) -> None:
        """End all streams of the session; `end` gives the reason for each."""
        for stream in list(self.streams.values()):
            stream.end(end(stream))

    def cancel_timer(self) -> None:
        """Cancel the timeout that is set, if any."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
