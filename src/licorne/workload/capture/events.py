"""The events of a scheduler: from its stream, read in a thread of its own, or from batches where there is no stream.

Source: docs/spec/rest-api.md, "EventBatch" and "Stream".

A stream has no numbers, so after a lost connection the last events are asked for once more, and those that were seen
already are passed over. Where not even the first of them is known, events are missing in between: a gap.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from http.client import HTTPResponse
from operator import attrgetter
from typing import Final

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.si.rest_objects import EventBatch, EventRecord, EventStream
from licorne.state.dump import DumpError, without_gzip
from licorne.state.source import Server, SourceError

STREAM: Final = "/ws/v1/events/stream"
BATCH: Final = "/ws/v1/events/batch"
HISTORY: Final = 10_000
"""How many past events are asked for when a stream begins; as many are in the answer of a batch by default."""
WAITING_MAX: Final = 200_000
"""How many events may wait between two polls; more are lost, and counted as a gap."""
PAUSES_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""How long to wait before each further attempt to connect."""
BATCH_MAX_BYTES: Final = 64 << 20
EVENT_MAX_BYTES: Final = 1 << 20

_record = msgspec.json.Decoder(EventRecord)
_greeting = msgspec.json.Decoder(EventStream)
_batch = msgspec.json.Decoder(EventBatch)


class Events:
    """Collects the events of a scheduler until `close`.

    `gaps`: how often events are missing. `restarts`: how often the scheduler was another one than before. `how`: how the
    events come: "stream", "batch", or "" as long as none come, then `why` says why.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._waiting: deque[EventRecord] = deque()
        self._seen: dict[tuple[object, ...], None] = {}
        self._lock = threading.Lock()
        self._last_ns = 0
        self._instance = ""
        self._next_id: int | None = None
        self._ended = threading.Event()
        self.gaps = 0
        self.restarts = 0
        self.how = ""
        self.why = ""
        self._thread = threading.Thread(target=self._read, name="licorne-events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read nothing any more. The thread ends with its connection."""
        self._ended.set()

    def take(self) -> list[EventRecord]:
        """Return the events that have come since the last call; where there is no stream, ask for a batch."""
        if self.how != "stream" and self.why:
            with contextlib.suppress(SourceError):  # without an answer the next batch has these events too
                self._take_batch()
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _put(self, event: EventRecord, *, first: bool) -> None:
        """Take an event unless it was seen before. `first`: it is the first since the connection was made."""
        key = _key(event)
        with self._lock:
            if key in self._seen:
                return
            if first and self._seen and event.timestamp_nano > self._last_ns:
                self.gaps += 1
            self._seen[key] = None
            if len(self._seen) > 2 * HISTORY:
                del self._seen[next(iter(self._seen))]
            if len(self._waiting) >= WAITING_MAX:
                self._waiting.popleft()
                self.gaps += 1
            self._waiting.append(event)
            self._last_ns = max(self._last_ns, event.timestamp_nano)

    def _met(self, instance: str) -> None:
        if self._instance not in ("", instance):
            self.restarts += 1
            self._next_id = 0
        self._instance = instance

    # -- batches ---------------------------------------------------------------------------------------------

    def _take_batch(self) -> None:
        while True:
            start = 0 if self._next_id is None else self._next_id
            try:
                data, _ = self._server.read(f"{BATCH}?start={start}", "batch of events", BATCH_MAX_BYTES)
                found = _batch.decode(without_gzip(data, BATCH_MAX_BYTES))
            except (DumpError, *UNDECODABLE) as error:
                raise SourceError(f"{BATCH}: {error}") from None
            self._met(found.instance_uuid)
            if found.event_records is None:
                if start < found.lowest_id:
                    self.gaps += self._next_id is not None
                    self._next_id = found.lowest_id
                    continue
                return
            self.how = self.how or "batch"
            for event in found.event_records:
                self._put(event, first=False)
            self._next_id = start + len(found.event_records)
            if not found.event_records or self._next_id > found.highest_id:
                return

    # -- the stream, in the thread ---------------------------------------------------------------------------

    def _read(self) -> None:
        failed = 0
        while not self._ended.is_set():
            came = False
            try:
                with self._server.open(f"{STREAM}?count={HISTORY}", "stream of events") as answer:
                    came = self._follow(answer)
            except SourceError as error:
                self.why = str(error)
            if self.how == "stream":
                self.how = ""
            failed = 0 if came else failed + 1
            self._ended.wait(PAUSES_S[min(failed, len(PAUSES_S) - 1)])

    def _follow(self, answer: HTTPResponse) -> bool:
        """Take the events of a stream until it ends; returns whether it was one."""
        try:
            self._met(_greeting.decode(answer.readline(EVENT_MAX_BYTES)).instance_uuid)
        except UNDECODABLE:
            self.why = "the stream of events does not begin as one"
            return False
        self.how = "stream"
        first = True
        while line := answer.readline(EVENT_MAX_BYTES):
            if self._ended.is_set():
                return True
            try:
                event = _record.decode(line)
            except UNDECODABLE:
                return True  # the producer says that it has closed the stream
            self._put(event, first=first)
            first = False
        return True


_key = attrgetter("timestamp_nano", "type", "object_id", "reference_id", "event_change_type", "event_change_detail")
