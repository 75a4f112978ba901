"""The last events of all resource managers, numbered, for who asks later and for who listens now.

Source: docs/spec/events.md, section 4.

The core makes records, of one event or of many; here they are kept as they are, and made into events, in the form of the
REST interface, when somebody reads them. IDs begin at 0 in each process and rise by 1; the process has a UUID of its
own, so that a reader knows when the numbers have begun anew.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

import msgspec

from licorne.core.events.runs import Record, expand
from licorne.si.events import Event, cut

CAPACITY = 100_000
"""Events kept (`event.ringBufferCapacity`)."""
STREAM_BUFFER = 1_000
"""Events that wait for one stream; one more, and the stream is cut."""
PAGE = 256
"""Events that are kept, and forgotten, together; a record of more is a page of its own."""


class AmountView(msgspec.Struct, frozen=True):
    """A quantity of one resource type."""

    value: int


class ResourceView(msgspec.Struct, omit_defaults=True, frozen=True):
    """Resources of an event, as the protocol writes them."""

    resources: dict[str, AmountView] = {}


class EventRecord(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel", frozen=True):
    """Something that happened. Enumerations are numbers; the time is in nanoseconds.

    Source: docs/spec/events.md, section 1.
    """

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


class PastEvents:
    """Events that follow each other, made while they are read; each iteration begins anew."""

    def __init__(self, records: list[Record], skipped: int, count: int) -> None:
        self._records = records
        self._skipped = skipped
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Event]:
        return islice(expand(self._records), self._skipped, self._skipped + self._count)


NOTHING = PastEvents([], 0, 0)


class Listener:
    """One stream's buffer. What is asked for of the past does not count as slowness, until it is taken."""

    def __init__(self, history: PastEvents) -> None:
        self.cut = False
        """Nothing more comes: it was too slow, or there is another `reason`."""
        self.reason = ""
        self.waiting = 0
        """Events that are not taken yet, without those of the past."""
        self._history = history
        self._records: list[Record] = []
        self._news = asyncio.Event()
        if len(history):
            self._news.set()

    def put(self, happened: Record) -> None:
        """Something happened."""
        if self.cut:
            return
        room = STREAM_BUFFER - self.waiting
        if happened.count > room:
            self.cut = True
            self._records += islice(expand([happened]), room)
            self.waiting = STREAM_BUFFER
        else:
            self._records.append(happened)
            self.waiting += happened.count
        self._news.set()

    def end(self, reason: str) -> None:
        """Nothing more comes, for this reason."""
        self.cut = True
        self.reason = self.reason or reason
        self._news.set()

    async def drain(self) -> Iterator[Event]:
        """What is new; waits for it. Empty when the stream is cut."""
        await self._news.wait()
        self._news.clear()
        history, self._history = self._history, NOTHING
        records, self._records = self._records, []
        self.waiting = 0
        if self.cut:
            self._news.set()
        return _both(history, records)


def _both(history: PastEvents, records: list[Record]) -> Iterator[Event]:
    yield from history
    yield from expand(records)


class EventRing:
    """The last events, and the streams that follow them."""

    def __init__(self, uuid: str, capacity: int = CAPACITY) -> None:
        self.uuid = uuid
        self._capacity = capacity
        self._next = 0
        self._floor = 0  # what is below was forgotten, however much room there is now
        self._starts = [0]  # the first ID of each page
        self._pages: list[list[Record]] = [[]]
        self._page = self._pages[0]
        self._turn = PAGE  # the ID with which another page begins
        self.listeners: dict[Listener, str] = {}
        """Streams, with the host that each was opened for."""

    def record(self, _rm_id: str, happened: Record) -> None:
        """Keep what happened; the recorder of `Cluster`."""
        self._page.append(happened)
        self._next += happened.count
        if self._next >= self._turn:
            self._turn_page()
        if self.listeners:
            for listener in self.listeners:
                listener.put(happened)

    def _turn_page(self) -> None:
        """Begin another page, and forget those that are all below the oldest ID that is kept."""
        self._page = []
        self._pages.append(self._page)
        self._starts.append(self._next)
        self._turn = self._next + PAGE
        gone = bisect_right(self._starts, self.lowest) - 1
        if gone > 0:
            del self._pages[:gone], self._starts[:gone]

    def resize(self, capacity: int) -> None:
        """Keep so many; the newest stay."""
        if capacity != self._capacity:
            self._floor = self.lowest
            self._capacity = capacity
            self._floor = self.lowest
            self._turn_page()

    @property
    def made(self) -> int:
        """Events since the start."""
        return self._next

    @property
    def lowest(self) -> int:
        """The oldest ID that is kept."""
        return max(self._floor, self._next - self._capacity)

    def batch(self, start: int, count: int) -> tuple[PastEvents | None, int, int]:
        """(events from this ID on, lowest ID, highest ID); None where the ID is outside of the range."""
        lowest, highest = self.lowest, max(self._next - 1, 0)
        if not lowest <= start < self._next:
            return None, lowest, highest
        return self._past(start, min(start + count, self._next)), lowest, highest

    def _past(self, start: int, stop: int) -> PastEvents:
        """The events from one ID up to another, both of which are there."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, stop - 1)
        records = [happened for page in self._pages[first:last] for happened in page]
        skipped = start - self._starts[first]
        at = 0
        while records[at].count <= skipped:
            skipped -= records[at].count
            at += 1
        return PastEvents(records[at:], skipped, stop - start)

    def listen(self, host: str, count: int) -> Listener:
        """Follow the events from now on, after the last `count` of the past."""
        start = max(self.lowest, self._next - count)
        listener = Listener(self._past(start, self._next) if start < self._next else NOTHING)
        self.listeners[listener] = host
        return listener

    def end_all(self, reason: str) -> None:
        """All streams end, with what waits for them and this reason."""
        for listener in self.listeners:
            listener.end(reason)

    def leave(self, listener: Listener) -> None:
        """The stream is over."""
        self.listeners.pop(listener, None)


__all__ = ["CAPACITY", "STREAM_BUFFER", "EventRecord", "EventRing", "Listener", "PastEvents", "record"]
