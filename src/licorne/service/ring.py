"""The last events of all resource managers, numbered, for who asks later and for who listens now (spec events.md, 4).

The core makes records; here they are kept as they are, and put into the form of the REST interface when somebody reads
them. IDs begin at 0 in each process and rise by 1; the process has a UUID of its own, so that a reader knows when the
numbers have begun anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

import msgspec

from licorne.si.events import Event, cut

CAPACITY = 100_000
"""Events kept (`event.ringBufferCapacity`)."""
STREAM_BUFFER = 1_000
"""Events that wait for one stream; one more, and the stream is cut."""


class AmountView(msgspec.Struct, frozen=True):
    """A quantity of one resource type."""

    value: int


class ResourceView(msgspec.Struct, omit_defaults=True, frozen=True):
    """Resources of an event, as the protocol writes them."""

    resources: dict[str, AmountView] = {}


class EventRecord(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel", frozen=True):
    """Something that happened (spec events.md, section 1). Enumerations are numbers; the time is in nanoseconds."""

    type: int = 0
    object_id: str = msgspec.field(default="", name="objectID")
    message: str = ""
    timestamp_nano: int = 0
    event_change_type: int = 0
    event_change_detail: int = 0
    reference_id: str = msgspec.field(default="", name="referenceID")
    resource: ResourceView = msgspec.field()


def record(event: Event) -> EventRecord:
    """An event in the form of the REST interface."""
    return EventRecord(
        type=int(event.type),
        object_id=event.object_id,
        message=cut(event.message),
        timestamp_nano=event.time_ns,
        event_change_type=int(event.change),
        event_change_detail=int(event.detail),
        reference_id=event.reference_id,
        resource=ResourceView({name: AmountView(value) for name, value in sorted((event.resource or {}).items())}),
    )


class Listener:
    """One stream's buffer."""

    def __init__(self, history: list[Event]) -> None:
        self.waiting = deque(history)
        self.cut = False
        """It was too slow; nothing more comes."""
        self._live = 0
        self._news = asyncio.Event()
        if history:
            self._news.set()

    def put(self, event: Event) -> None:
        """Something happened."""
        if self.cut:
            return
        if len(self.waiting) >= STREAM_BUFFER + self._live:
            self.cut = True
        else:
            self.waiting.append(event)
        self._news.set()

    def grant(self, history: int) -> None:
        """The past events that were asked for do not count as slowness."""
        self._live = history

    async def take(self) -> list[Event]:
        """What is new; waits for it. Empty when the stream is cut."""
        await self._news.wait()
        self._news.clear()
        self._live = 0
        events = list(self.waiting)
        self.waiting.clear()
        if self.cut:
            self._news.set()
        return events


class EventRing:
    """The last events, and the streams that follow them."""

    def __init__(self, uuid: str, capacity: int = CAPACITY) -> None:
        self.uuid = uuid
        self._events: deque[Event] = deque(maxlen=capacity)
        self._next = 0
        self.listeners: dict[Listener, str] = {}
        """Streams, with the host that each was opened for."""

    def record(self, _rm_id: str, event: Event) -> None:
        """Keep an event; the recorder of `Cluster`."""
        self._events.append(event)
        self._next += 1
        if self.listeners:
            for listener in self.listeners:
                listener.put(event)

    def resize(self, capacity: int) -> None:
        """Keep so many; the newest stay."""
        if capacity != self._events.maxlen:
            self._events = deque(self._events, maxlen=capacity)

    @property
    def made(self) -> int:
        """Events since the start."""
        return self._next

    @property
    def lowest(self) -> int:
        """The oldest ID that is kept."""
        return self._next - len(self._events)

    def batch(self, start: int, count: int) -> tuple[list[Event] | None, int, int]:
        """(events from this ID on, lowest ID, highest ID); None where the ID is outside of the range."""
        lowest, highest = self.lowest, max(self._next - 1, 0)
        if not self._events or not lowest <= start < self._next:
            return None, lowest, highest
        offset = start - lowest
        return list(islice(self._events, offset, offset + count)), lowest, highest

    def listen(self, host: str, count: int) -> Listener:
        """Follow the events from now on, after the last `count` of the past."""
        past = len(self._events)
        history = list(islice(self._events, max(0, past - count), None)) if count else []
        listener = Listener(history)
        listener.grant(len(history))
        self.listeners[listener] = host
        return listener

    def leave(self, listener: Listener) -> None:
        """The stream is over."""
        self.listeners.pop(listener, None)


__all__ = ["CAPACITY", "STREAM_BUFFER", "EventRecord", "EventRing", "Listener", "record"]
