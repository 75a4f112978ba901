"""What the REST of a yunikorn-core answered while a workload was played to it: as data, and as a server that answers so again."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from capture.played import PATHS, RECORDED
from licorne.si import rest_objects as objects

STEP_S: Final = 0.6
EVERY_S: Final = 0.1
"""The seconds between two polls, for which `STEP_S` pass in the recording."""
POLLED: Final = "/ws/v1/config"
"""The path with which each poll begins."""
STREAM: Final = "stream"
_TIME: Final = re.compile(r"\b1[0-9]{18}\b")


class Poll(msgspec.Struct):
    """What is answered at a time (ns), and the events until then."""

    now_ns: int
    events: list[objects.EventRecord]
    nodes: list[objects.Node]
    applications: list[objects.Application]
    queues: objects.Queue


class Recorded:
    """The recorded answers; `at` is in seconds from their beginning."""

    def __init__(self) -> None:
        found = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
        self.stream: list[tuple[float, str]] = [(one["at"], one["body"]) for one in found if one["path"] == STREAM]
        self.bodies: dict[str, list[tuple[float, str]]] = {path: [] for path in PATHS}
        for one in found:
            if one["path"] != STREAM:
                self.bodies[one["path"]].append((one["at"], one["body"]))
        self.begin_ns = min(json.loads(body).get("timestampNano", 2**63) for _, body in self.stream)
        self.lasts_s: float = found[-1]["at"]

    def body(self, path: str, at: float) -> str:
        """Return what a path answered at a time."""
        before = [body for since, body in self.bodies[path] if since <= at]
        return before[-1] if before else self.bodies[path][0][1]

    def polls(self, every_s: float) -> Iterator[Poll]:
        """Yield what polls at equal intervals show."""
        rest = [msgspec.json.decode(body, type=objects.EventRecord) for _, body in self.stream[1:]]
        at = 0.1
        while at < self.lasts_s + every_s:
            now_ns = self.begin_ns + int(at * 1e9)
            events = [event for event in rest if event.timestamp_nano <= now_ns]
            rest = rest[len(events) :]
            yield Poll(
                now_ns,
                events,
                self.objects("nodes", at, list[objects.Node]),
                self.objects("applications/active", at, list[objects.Application]),
                self.objects("queues", at, objects.Queue),
            )
            at += every_s

    def objects(self, path: str, at: float, kind: Any) -> Any:
        return msgspec.json.decode(self.body(f"/ws/v1/partition/default/{path}", at), type=kind)


class Playback:
    """Answers as the core answered, with times as if it were now. Each poll is answered `STEP_S` later in the recording.

    So a slow reader sees as much as a fast one, of a scheduler that is slow too. `down`: between which seconds of the recording nobody is reached. `has_stream`, `has_events`: it has a stream, events at all.
    """

    def __init__(
        self,
        *,
        down: tuple[float, float] = (0, 0),
        has_stream: bool = True,
        has_events: bool = True,
        token: str = "",
    ) -> None:
        self.recorded = Recorded()
        self.down = down
        self.has_stream = has_stream and has_events
        self.has_events = has_events
        self.token = token
        self.asked: set[str] = set()
        self.polled_ns = [time.time_ns()]
        self.streams, self.sent_until = 0, 0.0
        self.over = False

    @property
    def at(self) -> float:
        return STEP_S * (len(self.polled_ns) - 1)

    def poll(self) -> None:
        """Go on to the next moment, when the readers of the stream have got all events until this one."""
        while self.streams and not self.is_down() and self.sent_until < self.at:
            time.sleep(0.005)
        self.polled_ns.append(time.time_ns())

    def is_down(self) -> bool:
        return self.down[0] <= self.at < self.down[1]

    def shifted(self, body: str) -> bytes:
        """Return an answer with its times moved to now."""

        def moved(found: re.Match[str]) -> str:
            at = (int(found.group()) - self.recorded.begin_ns) / (STEP_S * 1e9)
            poll = min(max(int(at), 0), len(self.polled_ns) - 1)
            known = self.polled_ns[poll : poll + 2]
            return str(known[0] + int((at - poll) * (known[-1] - known[0] or EVERY_S * 1e9)))

        return _TIME.sub(moved, body).encode()

    def events(self) -> list[bytes]:
        """Return the events until now."""
        return [self.shifted(body) for since, body in self.recorded.stream[1:] if since <= self.at]


def _handler(play: Playback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            play.asked.add(parts.path)
            if parts.path == POLLED:
                play.poll()
            if play.is_down():
                self.close_connection = True
                return
            if play.token and self.headers.get("Authorization") != f"Bearer {play.token}":
                self.send_error(401)
            elif parts.path == "/ws/v1/events/stream" and play.has_stream:
                self.follow(int(parse_qs(parts.query)["count"][0]))
            elif parts.path == "/ws/v1/events/batch" and play.has_events:
                self.batch(int(parse_qs(parts.query)["start"][0]))
            elif parts.path in PATHS:
                self.answer(play.shifted(play.recorded.body(parts.path, play.at)))
            else:
                self.send_error(404)

        def answer(self, body: bytes) -> None:
            packed = gzip.compress(body)
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(packed)))
            self.end_headers()
            self.wfile.write(packed)

        def batch(self, start: int) -> None:
            events = [json.loads(event) for event in play.events()]
            shown = events[start : start + 50] if start < len(events) else None
            self.answer(
                json.dumps(
                    {"InstanceUUID": "x", "LowestID": 0, "HighestID": len(events) - 1, "EventRecords": shown}
                ).encode()
            )

        def follow(self, count: int) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"InstanceUUID":"x"}\n')
            sent, until = max(len(play.events()) - count, 0), -1.0
            play.streams += 1
            with suppress(OSError):  # the reader is gone
                while not play.is_down() and not play.over:
                    if (at := play.at) > until:
                        events = play.events()
                        self.wfile.write(b"".join(events[sent:]))
                        self.wfile.flush()
                        sent, until = len(events), at
                        play.sent_until = at
                    time.sleep(0.02)
            play.streams -= 1
            self.close_connection = True

    return Handler


@contextmanager
def served(play: Playback) -> Iterator[str]:
    """Serve it on a loopback address within the `with` block; yields the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(play))
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        play.over = True
        server.shutdown()
        server.server_close()
        thread.join()
