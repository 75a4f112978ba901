"""A ring buffer of the latest events of all resource managers, for queries about the past and for live streams.

Source: docs/spec/events.md, section 4.

The core makes records, of one event or of many. They are stored as they are, which is cheap, and become events in the form
of the REST interface only when somebody reads them. IDs begin at 0 in each process and rise by 1; the process has a UUID,
so that a reader notices when the numbers have begun anew.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, islice

from licorne.core.events.runs import Record, expand
from licorne.si.events import Event, cut
from licorne.si.rest_objects import AmountView, EventRecord, ResourceView

STREAM_BUFFER = 1_000
"""Most events that wait for one stream; one more, and the stream is cut."""
PAGE = 256
"""Events that are stored, and dropped, together; a record of more events is a page of its own."""


def as_event_record(event: Event) -> EventRecord:
    """Return an event in the form of the REST interface."""
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
    """A sequence of past events, expanded from records while it is read; each iteration starts at the first."""

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
    """The buffer of one stream. Past events that the client requested do not count towards `STREAM_BUFFER`."""

    def __init__(self, history: PastEvents) -> None:
        self.cut = False
        """No more events come: the reader was too slow, or there is another `reason`."""
        self.reason = ""
        self.waiting = 0
        """Number of events not read yet, without the past ones that were requested."""
        self._history = history
        self._records: list[Record] = []
        self._news = asyncio.Event()
        if len(history):
            self._news.set()

    def put(self, happened: Record) -> None:
        """Append a record; if the buffer is full, fill it and cut the stream."""
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
        """End the stream for a reason; buffered events can still be read."""
        self.cut = True
        self.reason = self.reason or reason
        self._news.set()

    async def drain(self) -> Iterator[Event]:
        """Wait for events and return them; once the stream is cut, those left over, and then none."""
        await self._news.wait()
        self._news.clear()
        history, self._history = self._history, NOTHING
        records, self._records = self._records, []
        self.waiting = 0
        if self.cut:
            self._news.set()
        return chain(history, expand(records))


class EventRing:
    """The latest events, and the streams that follow them."""

    def __init__(self, uuid: str, capacity: int) -> None:
        self.uuid = uuid
        self._capacity = capacity
        self._next = 0
        self._floor = 0  # events below this ID were dropped by a smaller capacity and do not return with a larger one
        self._starts = [0]  # the first ID of each page
        self._pages: list[list[Record]] = [[]]
        self._page = self._pages[0]
        self._turn = PAGE  # the ID with which the next page begins
        self.listeners: dict[Listener, str] = {}
        """The open streams, with the host that each was opened for."""

    def record(self, _rm_id: str, happened: Record) -> None:
        """Store a record and pass it to the streams; this is the recorder of `Cluster`."""
        self._page.append(happened)
        self._next += happened.count
        if self._next >= self._turn:
            self._turn_page()
        if self.listeners:
            for listener in self.listeners:
                listener.put(happened)

    def _turn_page(self) -> None:
        """Begin another page, and drop the pages that lie entirely below the lowest kept ID."""
        self._page = []
        self._pages.append(self._page)
        self._starts.append(self._next)
        self._turn = self._next + PAGE
        gone = bisect_right(self._starts, self.lowest) - 1
        if gone > 0:
            del self._pages[:gone], self._starts[:gone]

    def resize(self, capacity: int) -> None:
        """Keep at most `capacity` events from now on; the newest stay."""
        if capacity != self._capacity:
            # By the old capacity: dropped events do not come back with a larger one.
            self._floor = self.lowest
            self._capacity = capacity
            self._floor = self.lowest
            self._turn_page()

    @property
    def made(self) -> int:
        """Number of events since the start."""
        return self._next

    @property
    def lowest(self) -> int:
        """The lowest ID that is kept."""
        return max(self._floor, self._next - self._capacity)

    def batch(self, start: int, count: int) -> tuple[PastEvents | None, int, int]:
        """Return (events from this ID on, lowest ID, highest ID); None for the events if the ID is not kept."""
        lowest, highest = self.lowest, max(self._next - 1, 0)
        if not lowest <= start < self._next:
            return None, lowest, highest
        return self._past(start, min(start + count, self._next)), lowest, highest

    def _past(self, start: int, stop: int) -> PastEvents:
        """Return the events from `start` up to `stop` (exclusive), all of which must be kept."""
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
        """Open a stream of the last `count` events and all that follow; `host` is the one that asked for it."""
        start = max(self.lowest, self._next - count)
        listener = Listener(self._past(start, self._next) if start < self._next else NOTHING)
        self.listeners[listener] = host
        return listener

    def end_all(self, reason: str) -> None:
        """End all streams for a reason; buffered events can still be read."""
        for listener in self.listeners:
            listener.end(reason)

    def leave(self, listener: Listener) -> None:
        """Close a stream."""
        self.listeners.pop(listener, None)
