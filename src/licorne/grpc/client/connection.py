"""One registration at the scheduler: a channel, its streams, and the threads that read them.

When any of its streams ends, the whole connection does, and messages that were not sent are dropped. A connection is
never repaired: the client makes another one, with another registration, and reports everything again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from licorne.si import first, v19, wire
from licorne.si.rpc import METHODS, REGISTER, REGISTRATION, RM_ID, Kind, path

from .outbox import Name, Outbox, Unanswered

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel shares the back-off of one that failed
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
]
RESPONSES: dict[Kind, Any] = {
    "update": first.UpdateResponse,
    "application": v19.ApplicationResponse,
    "allocation": v19.AllocationResponse,
    "node": v19.NodeResponse,
}
Deliver = Callable[[Kind, Any], None]


class Lost(Exception):  # noqa: N818  it is what happened
    """The connection was lost or refused; `code` is the gRPC status."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details or code.name)
        self.code = code
        self.details = details


class Connection:
    """The channel and streams of one registration, open until one of the streams ends."""

    def __init__(
        self,
        address: str,
        credentials: grpc.ChannelCredentials | None,
        metadata: tuple[tuple[str, str], ...],
        deliver: Deliver,
    ) -> None:
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=OPTIONS)
        else:
            self._channel = grpc.secure_channel(address, credentials, options=OPTIONS)
        self._metadata = metadata
        self._deliver = deliver
        self._calls: dict[Kind, Any] = {}
        self._readers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.outboxes: dict[Kind, Outbox] = {}
        self.unanswered = Unanswered()
        self.lost = threading.Event()
        self.reason = Lost(grpc.StatusCode.UNKNOWN, "")
        self._began = time.monotonic()

    # -- begin -----------------------------------------------------------------------------------------

    def open(
        self,
        request: v19.RegisterResourceManagerRequest | first.RegisterResourceManagerRequest,
        timeout_s: float,
        *,
        wait: bool,
    ) -> None:
        """Register, and open the streams of the request's dialect. `wait`: until something listens at the address.

        Raises:
            Lost: the scheduler could not be reached, or refused the registration or a stream.
        """
        register: Any = self._channel.unary_unary(path(REGISTER))
        try:
            _, call = register.with_call(
                wire.encode(request), metadata=self._metadata, timeout=timeout_s, wait_for_ready=wait
            )
            said = [(key, value) for key, value in call.trailing_metadata() or () if key == REGISTRATION]
            metadata = (*self._metadata, (RM_ID, request.rm_id), *said)
            in_first = isinstance(request, first.RegisterResourceManagerRequest)
            for method, kind in METHODS.items():
                if (kind == "update") == in_first:
                    self._open_stream(method, kind, metadata)
            for call in self._calls.values():
                call.initial_metadata()  # waits until the scheduler has accepted the stream
        except grpc.RpcError as error:
            self.end(_lost(error))
            raise self.reason from None

    def _open_stream(self, method: str, kind: Kind, metadata: tuple[tuple[str, str], ...]) -> None:
        outbox = self.outboxes[kind] = Outbox(self.unanswered)
        stream: Any = self._channel.stream_stream(path(method))
        call = self._calls[kind] = stream(outbox, metadata=metadata)
        reader = threading.Thread(target=self._read, args=(kind, call), name=f"licorne-{kind}", daemon=True)
        self._readers.append(reader)
        reader.start()

    # -- work ------------------------------------------------------------------------------------------

    def put(self, kind: Kind, data: bytes, needs: frozenset[Name]) -> None:
        """Queue a message. Blocks while the outbox is full, except in a callback, whose thread must go on reading."""
        self.outboxes[kind].put(data, needs, wait=threading.current_thread() not in self._readers)

    def _read(self, kind: Kind, call: Any) -> None:
        try:
            for data in call:
                response = wire.decode(RESPONSES[kind], data)
                self._note_answers(kind, response)
                self._deliver(kind, response)
                if kind == "update" and response.action == first.ActionFromScheduler.RESYNC:
                    self.end(Lost(grpc.StatusCode.FAILED_PRECONDITION, "RESYNC"))
            self.end(Lost(grpc.StatusCode.OK, "the scheduler ended the stream"))
        except grpc.RpcError as error:
            self.end(_lost(error))
        except Exception as error:  # noqa: BLE001  a response that cannot be decoded, for example
            self.end(Lost(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"))

    def _note_answers(self, kind: Kind, response: Any) -> None:
        if kind == "application":
            answers = [("application", item.application_id) for item in (*response.accepted, *response.rejected)]
        elif kind == "node":
            answers = [("node", item.node_id) for item in (*response.accepted, *response.rejected)]
        else:
            return
        self.unanswered.answered(answers)

    def lasted_s(self) -> float:
        """Return the seconds since the connection was made."""
        return time.monotonic() - self._began

    # -- end -------------------------------------------------------------------------------------------

    def end(self, reason: Lost) -> None:
        """Mark the connection as lost. If it is called more than once, the first reason counts."""
        with self._lock:
            if self.lost.is_set():
                return
            self.reason = reason
            self.lost.set()
        self.unanswered.give_up()

    def goodbye(self, timeout_s: float) -> None:
        """Close the streams in good order, after which the scheduler drops the resource manager; then disconnect."""
        for outbox in self.outboxes.values():
            outbox.close()
        for reader in self._readers:
            if reader is not threading.current_thread():
                reader.join(timeout_s)
        self.close()

    def close(self) -> None:
        """Disconnect, and wait until no callback runs any more. Must not be called from a callback."""
        self.end(Lost(grpc.StatusCode.CANCELLED, "closed"))
        for call in self._calls.values():
            call.cancel()
        for reader in self._readers:
            if reader is not threading.current_thread():
                reader.join()
        self._channel.close()


def _lost(error: Any) -> Lost:
    return Lost(error.code(), error.details() or "")
