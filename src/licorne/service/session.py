"""The life of one resource manager in the service, from its registration until it is stopped.

    REGISTERED ──first stream──► RUNNING ──last stream breaks, or it does not read──► PAUSED ──timeout──► STOPPED
                                    ▲                                                   │
                                    └───────────── a stream, or it reads again ─────────┘
    any state ──goodbye: it closes its last stream itself; registration by another──► STOPPED

Source: *Scheduler Interface Spec*, "Lifecycle of RM-Scheduler communication"; REGISTERED is its `init` from the other
side. In PAUSED all that the resource manager has is kept, and nothing new is decided for it. STOPPED is the end: its
state is gone from the core.

What the core has to tell waits in boxes, one for each kind of stream, as bytes. They are bounded: where too much waits,
no more requests are read and nothing more is decided, until half of it is read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Literal

from licorne.daemon.log import Log
from licorne.si import v19
from licorne.si.rpc import Kind

from .streams import End, Stream

Dialect = Literal["first", "1.9"]
KINDS: dict[Dialect, tuple[Kind, ...]] = {"first": ("update",), "1.9": ("application", "allocation", "node")}


class State(Enum):
    """Where a resource manager is in its life."""

    REGISTERED = "registered"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class Session:
    """A registered resource manager.

    `number` tells this registration from others of the same id; `opened` is its place among streams and registrations.
    `hold` is told whether decisions are to be held back.
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
        self.yielding = False  # it had its turn, others are to have theirs
        self.taking: dict[Kind, asyncio.Task[None]] = {}  # long requests that are being taken in
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
        """Is nothing to be decided for it?"""
        return self.full or self.yielding or bool(self.taking) or self.state is not State.RUNNING

    def tell(self, kind: Kind, data: bytes) -> None:
        """Put a message in the box of its kind."""
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
        """So much has been written."""
        self.buffered -= size
        if self.full and self.buffered <= self._buffer_bytes // 2:
            self.full = False
            self.readable.set()
            self._on_pause(self)

    def end_streams(self, end: Callable[[Stream], End]) -> None:
        """End all of its streams; each for the reason that `end` gives."""
        for stream in list(self.streams.values()):
            stream.end(end(stream))

    def cancel_timer(self) -> None:
        """What was to happen later will not."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


__all__ = ["KINDS", "Dialect", "Session", "State"]
