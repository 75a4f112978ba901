"""`SchedulerClient`: the interface of `SchedulerAPI` for a scheduler in another process.

Its calls block, like those of `SchedulerAPI`, and it has threads of its own, so that a program can use it without an
event loop. It differs from a scheduler in the same process in this:

* Answers are asynchronous: they do not come before a call returns. Callbacks run in the client's threads, one at a
  time, and may call the client.
* Between kinds of answers (applications, allocations, nodes) there is no order; within a kind there is.
* Connections break, and a scheduler that restarts has lost its state. Only the resource manager knows what really runs;
  so it keeps that state, and reports all of it when the client calls `resync`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import grpc

from licorne.core.api import NotRegisteredError, RegistrationError, RequestError
from licorne.core.arguments import check_callback, checked, refuse_request
from licorne.core.incidents import Handler, Incidents
from licorne.si import ResourceManagerCallback, first, v19, wire
from licorne.si.rpc import DEFAULT_ADDRESS, Kind

from .connection import Connection, Lost
from .outbox import Name
from .remedies import explained, remedy

T = TypeVar("T")
Registration = v19.RegisterResourceManagerRequest | first.RegisterResourceManagerRequest
Resync = Callable[["SchedulerClient"], None]
Message = bytes | tuple[bytes, list[Name], list[Name]]
"""A message to be sent: bytes with unknown content, or bytes, the names that they create, and those that must exist."""

ITEMS_MAX = 1000
"""Items (asks, nodes, applications) of a message, at most; a longer request is sent as several messages."""
LATER_MAX = 10_000
"""Requests of other threads that are queued during a resync; beyond it the connection ends, and the resync begins
anew."""
GOODBYE_S = 5.0
"""How long the client waits for the scheduler to answer a goodbye."""
FIRST_RETRY_S = 1.0
"""Longest wait between two attempts to register for the first time."""
_UNREACHABLE = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
_METHODS: dict[Kind, str] = {
    "update": "recv_update_response",
    "application": "update_application",
    "allocation": "update_allocation",
    "node": "update_node",
}
_REQUESTS: dict[Kind, type[Any]] = {
    "update": first.UpdateRequest,
    "application": v19.ApplicationRequest,
    "allocation": v19.AllocationRequest,
    "node": v19.NodeRequest,
}
_FINAL = {
    grpc.StatusCode.ABORTED: "another instance took over",
    grpc.StatusCode.UNAUTHENTICATED: "the scheduler does not know who this is",
    grpc.StatusCode.PERMISSION_DENIED: "the scheduler does not allow this",
}
_log = logging.getLogger("licorne.grpc.client")


class SchedulerUnreachableError(ConnectionError):
    """The scheduler could not be reached in time."""


class DisconnectedError(ConnectionError):
    """The client is closed, or its connection was lost for good; the text says why."""


class SchedulerClient:
    """One resource manager's connection to a scheduler that `licorne serve` runs.

    Parameters:
        address: `HOST:PORT` or `unix:PATH`.
        credentials: those of gRPC for TLS (`grpc.ssl_channel_credentials`); None: the connection is not encrypted.
        token: the token in the scheduler's `--token-file`; empty for none. Blanks and line feeds around it do not count.
        retry_s: seconds before connecting again, at first and at most; the time doubles after each failure.
        on_incident: called with an `Incident`, in the client's threads: a refusal for which the callback has no method,
            or an error that the callback raised. Without it incidents are written to `logging.getLogger("licorne")`.

    Raises:
        ValueError: the token has characters that no token has.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        token: str = "",
        retry_s: tuple[float, float] = (0.1, 5.0),
        on_incident: Handler | None = None,
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._metadata = _authorization(token)
        self._retry_s = retry_s
        self._request: Registration | None = None
        self._callback: ResourceManagerCallback | None = None
        self._resync: Resync | None = None
        self._lock = threading.Lock()  # guards `_request` and the next three
        self._connection: Connection | None = None
        self._later: list[tuple[Kind, list[Message]]] | None = (
            None  # requests of other threads during a resync; None: no resync is under way
        )
        self._over: str = ""  # why the client is disconnected for good
        self._keeper: threading.Thread | None = None
        self._closing = threading.Event()
        self._calling = threading.Lock()  # one callback at a time
        self._incidents = Incidents(on_incident)
        self.callback_errors: list[str] = self._incidents.errors
        """The last errors that callbacks raised (at most 100), as in `SchedulerAPI`. They have no other effect."""
        self.resyncs = 0
        """The number of resyncs so far."""

    # -- registration ----------------------------------------------------------------------------------

    def register_resource_manager(
        self,
        request: Registration,
        callback: ResourceManagerCallback | None = None,
        *,
        resync: Resync | None = None,
        timeout_s: float = 30.0,
    ) -> v19.RegisterResourceManagerResponse | first.RegisterResourceManagerResponse:
        """Register a resource manager, in the dialect of the request. A client registers once.

        `resync(client)` is called when the client has registered again, because its connection was lost or the
        scheduler asked for it. It must report everything by `update_*`: nodes, applications, running allocations (with
        their node) and pending asks. Before it is called, all callbacks of the lost connection have returned. Requests
        that other threads make while it runs are queued, and sent after its own. Without `resync` a lost connection is
        final.

        A scheduler that cannot be reached is tried again until `timeout_s` seconds are over, with a warning in the log that
        says at once what is wrong. What no other attempt can mend, such as a wrong certificate, is raised at once.

        Raises:
            RegistrationError: the scheduler refused; the text is the scheduler's.
            SchedulerUnreachableError: there was no answer within `timeout_s`, or there cannot be one; the text says why.
            DisconnectedError: the client is closed, or has registered before.
            RequestError: the request or the callback is not of the right type.
        """
        request = checked(request, v19.RegisterResourceManagerRequest, first.RegisterResourceManagerRequest)
        check_callback(callback)
        with self._lock:
            if self._over or self._request is not None:
                raise DisconnectedError(self._over or "a client registers once; make another one")
            self._request, self._callback, self._resync = request, callback, resync
        try:
            connection = self._connect_first(timeout_s)
        except Lost as lost:
            with self._lock:
                self._request = None
            if lost.code in _UNREACHABLE:
                raise SchedulerUnreachableError(f"{self.address}: {self._why(lost)}") from None
            raise RegistrationError(str(lost)) from None
        if not self._take_over(connection, None):
            raise DisconnectedError(self._over)
        with self._lock:  # so that `close` in another thread never finds a thread that has not started
            self._keeper = threading.Thread(target=self._keep, args=(connection,), name="licorne-client", daemon=True)
            self._keeper.start()
        if isinstance(request, first.RegisterResourceManagerRequest):
            return first.RegisterResourceManagerResponse()
        return v19.RegisterResourceManagerResponse()

    def _connect_first(self, timeout_s: float) -> Connection:
        """Connect, in several attempts, so that the cause is known at once where nothing answers."""
        end_s = time.monotonic() + timeout_s
        wait_s, known = self._retry_s[0], None
        while True:
            try:
                return self._connect(max(end_s - time.monotonic(), 0.001), wait=False)
            except Lost as lost:
                found = remedy(lost.details, tls=self._credentials is not None)
                left_s = end_s - time.monotonic()
                hopeless = found is not None and not found.again
                if lost.code is grpc.StatusCode.DEADLINE_EXCEEDED and known is not None:
                    raise known from None  # the last attempt had no time left to learn the cause
                if lost.code is not grpc.StatusCode.UNAVAILABLE or hopeless or left_s <= 0 or self._closing.is_set():
                    raise
                if known is None or self._why(lost) != self._why(known):
                    _log.warning("%s: %s Trying again for %.0f s", self.address, _sentence(self._why(lost)), left_s)
                known = lost
            self._closing.wait(min(wait_s, left_s))
            wait_s = min(2 * wait_s, FIRST_RETRY_S)

    def _why(self, lost: Lost) -> str:
        if lost.code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return "something listens there, but no answer came in time"
        return explained(str(lost), tls=self._credentials is not None)

    def _connect(self, timeout_s: float, *, wait: bool = True) -> Connection:
        assert self._request is not None
        connection = Connection(self.address, self._credentials, self._metadata, self._deliver)
        try:
            connection.open(self._request, timeout_s, wait=wait)
        except Lost:
            connection.close()
            raise
        return connection

    def _take_over(self, connection: Connection, later: list[tuple[Kind, list[Message]]] | None) -> bool:
        """Use a new connection from now on; if the client was closed while it was made, end it and return False."""
        with self._lock:
            if not self._over:
                self._connection, self._later = connection, later
                return True
        connection.goodbye(GOODBYE_S)
        return False

    # -- requests --------------------------------------------------------------------------------------

    def update(self, request: first.UpdateRequest | bytes) -> None:
        """Send a request of the first interface.

        While the connection is lost the request is dropped, for `resync` will report it. The call blocks while too many
        messages are queued, except in a callback.

        Raises:
            NotRegisteredError: the client is not registered, or with another id, or in the other dialect.
            DisconnectedError: the client is disconnected for good; the text says why.
            RequestError: the request is no such message, or a value in it is not of its declared type.
        """
        self._submit("update", request)

    def update_application(self, request: v19.ApplicationRequest | bytes) -> None:
        """Send new and removed applications (1.9). Drops, blocks and raises as described at `update`."""
        self._submit("application", request)

    def update_allocation(self, request: v19.AllocationRequest | bytes) -> None:
        """Send asks, running allocations and releases (1.9). Drops, blocks and raises as described at `update`.

        The request is sent when the scheduler has answered for the applications and nodes in it. This does not hold for
        a request in bytes: a caller that sends bytes has to wait for these answers itself.
        """
        self._submit("allocation", request)

    def update_node(self, request: v19.NodeRequest | bytes) -> None:
        """Send new, changed and removed nodes (1.9). Drops, blocks and raises as described at `update`."""
        self._submit("node", request)

    def _submit(self, kind: Kind, request: Any) -> None:
        if not isinstance(request, bytes | _REQUESTS[kind]):
            refuse_request(request, _REQUESTS[kind])
        messages: list[Message] = [request] if isinstance(request, bytes) else _encoded(request)
        with self._lock:
            if self._over:
                raise DisconnectedError(self._over)
            registered = self._request
            in_first = isinstance(registered, first.RegisterResourceManagerRequest)
            if registered is None or in_first != (kind == "update"):
                raise NotRegisteredError("no resource manager is registered in this dialect")
            if not isinstance(request, bytes) and request.rm_id != registered.rm_id:
                raise NotRegisteredError(f'RmID="{request.rm_id}" not registered; this is RmID="{registered.rm_id}"')
            connection = self._connection
            if connection is None:
                return  # the connection is lost, and the resync will report this too
            if self._later is not None and threading.current_thread() is not self._keeper:
                self._later.append((kind, messages))
                if len(self._later) > LATER_MAX:
                    connection.end(Lost(grpc.StatusCode.OK, "too much was said during a resync"))
                return
        self._send(connection, kind, messages)

    @staticmethod
    def _send(connection: Connection, kind: Kind, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, bytes):
                connection.put(kind, message, frozenset())
            else:
                data, new, used = message
                connection.unanswered.add(new)
                connection.put(kind, data, connection.unanswered.among(used))

    # -- answers ---------------------------------------------------------------------------------------

    def _deliver(self, kind: Kind, response: Any) -> None:
        assert self._request is not None
        with self._calling:
            self._incidents.deliver(self._request.rm_id, self._callback, _METHODS[kind], response)

    # -- connections that break ------------------------------------------------------------------------

    def _keep(self, connection: Connection) -> None:
        """Wait until the connection is lost, and make another one, until the client is disconnected for good."""
        current: Connection | None = connection
        wait_s = self._retry_s[0]
        while current is not None:
            current.lost.wait()
            if self._closing.is_set():
                return  # `close` disconnects
            with self._lock:
                self._connection, self._later = None, None
            current.close()  # after this no callback of the old connection runs
            lost = current.reason
            if self._is_final(lost):
                return
            _log.warning("connection lost (%s), connecting again", lost)
            # A connection that breaks again and again soon after it was made does not reset the waiting time.
            again = current.lasted_s() > self._retry_s[1]
            wait_s = self._retry_s[0] if again else min(2 * wait_s, self._retry_s[1])
            current = self._reconnect(wait_s)

    def _is_final(self, lost: Lost) -> bool:
        reason = _FINAL.get(lost.code, "")
        if not reason and self._resync is None:
            reason = "the connection was lost, and there is no resync to report everything again"
        if not reason:
            return False
        with self._lock:
            self._over = f"{reason}: {lost}"
        _log.error("disconnected for good: %s", self._over)
        return True

    def _reconnect(self, wait_s: float) -> Connection | None:
        """Register again, and report everything; None if the client is disconnected for good."""
        while not self._closing.wait(wait_s * random.uniform(0.5, 1.0)):  # noqa: S311  no secret
            wait_s = min(2 * wait_s, self._retry_s[1])
            try:
                connection = self._connect(self._retry_s[1])
            except Lost as lost:
                if lost.code is grpc.StatusCode.INVALID_ARGUMENT:  # it would be refused the next time too
                    lost = Lost(grpc.StatusCode.PERMISSION_DENIED, str(lost))
                if self._is_final(lost):
                    return None
                _log.info("still not connected (%s)", lost)
                continue
            if not self._take_over(connection, []):
                return None
            self._report(connection)
            return connection
        return None

    def _report(self, connection: Connection) -> None:
        self.resyncs += 1
        _log.info("registered again, reporting everything")
        try:
            assert self._resync is not None
            self._resync(self)
        except Exception as error:  # noqa: BLE001  whatever it is, the report is incomplete
            _log.exception("the resync failed")
            connection.end(Lost(grpc.StatusCode.OK, f"the resync failed: {type(error).__name__}"))
        # While the queued requests are sent, others may come, and must not overtake them.
        while True:
            with self._lock:
                if not self._later:
                    self._later = None
                    return
                later, self._later = self._later, []
            for kind, messages in later:
                self._send(connection, kind, messages)

    # -- the end ---------------------------------------------------------------------------------------

    def stop(self, rm_id: str = "") -> None:
        """Shut the resource manager down: the scheduler drops all of its state, and the client is closed."""
        self.close()

    def close(self, *, goodbye: bool = True, timeout_s: float = GOODBYE_S) -> None:
        """Disconnect for good, with a goodbye, after which the scheduler drops the state of the resource manager.

        Without `goodbye` the scheduler takes it for a lost connection, and keeps the state for a while. Must not be
        called from a callback.
        """
        with self._lock:
            self._over = self._over or "the client is closed"
            connection, keeper = self._connection, self._keeper
        self._closing.set()
        if connection is not None:
            if goodbye and not connection.lost.is_set():
                connection.goodbye(timeout_s)
            connection.close()
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _encoded(request: Any) -> list[Message]:
    """Encode a request as messages. All are made before any is sent, so that an error refuses the whole request."""
    try:
        parts = [(part, wire.encode(part)) for part in _parts(request)]
    except wire.WireError as error:
        raise RequestError(str(error)) from None
    return [(data, _new_names(part), list(_used_names(part))) for part, data in parts]


def _parts(request: Any) -> Iterator[Any]:
    """Divide a long request. One of the first interface is never divided, because the order within it counts."""
    if isinstance(request, v19.AllocationRequest) and _is_long(request.allocations):
        for part in _divided(request.allocations):
            yield v19.AllocationRequest(rm_id=request.rm_id, allocations=part)
        if request.releases is not None:
            yield v19.AllocationRequest(rm_id=request.rm_id, releases=request.releases)
    elif isinstance(request, v19.ApplicationRequest) and _is_long(request.new):
        for new in _divided(request.new):
            yield v19.ApplicationRequest(rm_id=request.rm_id, new=new)
        if request.remove:
            yield v19.ApplicationRequest(rm_id=request.rm_id, remove=request.remove)
    elif isinstance(request, v19.NodeRequest) and _is_long(request.nodes):
        for nodes in _divided(request.nodes):
            yield v19.NodeRequest(rm_id=request.rm_id, nodes=nodes)
    else:
        yield request


def _is_long(items: object) -> bool:
    return isinstance(items, list | tuple) and len(items) > ITEMS_MAX


def _divided(items: list[T]) -> Iterator[list[T]]:
    for at in range(0, len(items), ITEMS_MAX):
        yield items[at : at + ITEMS_MAX]


def _new_names(request: Any) -> list[Name]:
    """Return the applications or nodes in a request for which an answer will come."""
    if isinstance(request, v19.ApplicationRequest):
        return [("application", app.application_id) for app in request.new]
    if isinstance(request, v19.NodeRequest):
        create = (v19.ActionFromRM.CREATE, v19.ActionFromRM.CREATE_DRAIN)
        return [("node", node.node_id) for node in request.nodes if node.action in create]
    return []


def _used_names(request: Any) -> Iterator[Name]:
    """Return the applications and nodes that must exist before the scheduler gets this request."""
    if isinstance(request, v19.AllocationRequest):
        for allocation in request.allocations:
            yield "application", allocation.application_id
            if allocation.node_id:
                yield "node", allocation.node_id


def _authorization(token: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata that carries a token."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the token has characters that no token has; is the file with it a text of one line?")
    return (("authorization", f"Bearer {token}"),) if token else ()


def _sentence(text: str) -> str:
    return text if text.endswith(("?", ".")) else f"{text}."
