"""`SchedulerClient`: a scheduler in another process, with the face of `SchedulerAPI`.

It blocks as `SchedulerAPI` does and works in threads of its own, so that a plain program can use it without a loop. What
is different from the scheduler in process:

* Answers come when they come, not before a call returns; callbacks run in the client's threads, one at a time. They may
  call the client.
* Between kinds of answers (applications, allocations, nodes) there is no order, within a kind there is.
* Connections break, and schedulers forget. A resource manager knows what really runs, and the scheduler does not; so
  the resource manager keeps the books, and reports them again when it is told to (`resync`).
"""

from __future__ import annotations

import logging
import random
import threading
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

T = TypeVar("T")
Registration = v19.RegisterResourceManagerRequest | first.RegisterResourceManagerRequest
Resync = Callable[["SchedulerClient"], None]
Message = bytes | tuple[bytes, list[Name], list[Name]]
"""What is to be sent: bytes of which nothing is known, or bytes, which names they make new, and which must be there before."""

ITEMS_MAX = 1000
"""How many items (asks, nodes, applications) a message holds at most; longer requests become several messages."""
LATER_MAX = 10_000
"""How many requests of other threads are kept while a resync is under way; more, and it begins anew."""
GOODBYE_S = 5.0
"""How long the scheduler has to take notice of a goodbye."""
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
_log = logging.getLogger("licorne.client")


class SchedulerUnreachableError(ConnectionError):
    """The scheduler could not be reached in time."""


class DisconnectedError(ConnectionError):
    """The client is closed, or its connection was lost for good; the text says why."""


class SchedulerClient:
    """One resource manager's connection to a scheduler that `licorne serve` runs.

    Parameters:
        address: `HOST:PORT` or `unix:PATH`.
        credentials: of gRPC, for TLS (`grpc.ssl_channel_credentials`); without, the connection is not encrypted.
        token: what the scheduler's `--token-file` holds.
        retry_s: how long to wait before connecting again, at first and at most; it doubles each time.
        on_incident: takes an `Incident`, in the client's threads: a refusal that the callback does not take, an error that
            it raised. Without it they are written to `logging.getLogger("licorne")`.
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
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._retry_s = retry_s
        self._request: Registration | None = None
        self._callback: ResourceManagerCallback | None = None
        self._resync: Resync | None = None
        self._lock = threading.Lock()  # of what follows
        self._connection: Connection | None = None
        self._later: list[tuple[Kind, list[Message]]] | None = (
            None  # what other threads say while a resync is under way
        )
        self._over: str = ""  # why it is over for good
        self._keeper: threading.Thread | None = None
        self._closing = threading.Event()
        self._calling = threading.Lock()  # one callback at a time
        self._incidents = Incidents(on_incident)
        self.callback_errors: list[str] = self._incidents.errors
        """The last errors that callbacks raised (at most 100), as `SchedulerAPI` has them: they change nothing."""
        self.resyncs = 0
        """How many times everything was reported again."""

    # -- registration ----------------------------------------------------------------------------------

    def register_resource_manager(
        self,
        request: Registration,
        callback: ResourceManagerCallback | None = None,
        *,
        resync: Resync | None = None,
        timeout_s: float = 30.0,
    ) -> v19.RegisterResourceManagerResponse | first.RegisterResourceManagerResponse:
        """Register; the dialect is that of the request. Once for each client.

        `resync(client)` is called when the client has registered again after its connection was lost, or when the
        scheduler asked for it. It reports everything by `update_*`: nodes, applications, allocations that run (with their
        node) and asks that wait. Before it is called, all callbacks of the lost connection have returned. While it
        runs, what other threads hand in waits, and follows what it reported. Without it a lost connection is the end.

        Raises:
            RegistrationError: refused; the text is the scheduler's.
            SchedulerUnreachableError: no answer within `timeout_s`.
            DisconnectedError: the client is closed.
            RequestError: no such request, or a callback that is none.
        """
        request = checked(request, v19.RegisterResourceManagerRequest, first.RegisterResourceManagerRequest)
        check_callback(callback)
        with self._lock:
            if self._over or self._request is not None:
                raise DisconnectedError(self._over or "a client registers once; make another one")
            self._request, self._callback, self._resync = request, callback, resync
        try:
            connection = self._connect(timeout_s)
        except Lost as lost:
            with self._lock:
                self._request = None
            if lost.code in {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}:
                raise SchedulerUnreachableError(f"{self.address}: {lost}") from None
            raise RegistrationError(str(lost)) from None
        if not self._take_over(connection, None):
            raise DisconnectedError(self._over)
        self._keeper = threading.Thread(target=self._keep, args=(connection,), name="licorne-client", daemon=True)
        self._keeper.start()
        if isinstance(request, first.RegisterResourceManagerRequest):
            return first.RegisterResourceManagerResponse()
        return v19.RegisterResourceManagerResponse()

    def _connect(self, timeout_s: float) -> Connection:
        assert self._request is not None
        connection = Connection(self.address, self._credentials, self._metadata, self._deliver)
        try:
            connection.open(self._request, timeout_s)
        except Lost:
            connection.close()
            raise
        return connection

    def _take_over(self, connection: Connection, later: list[tuple[Kind, list[Message]]] | None) -> bool:
        """From now on this is the connection; unless the client was closed while it was made: then it says goodbye."""
        with self._lock:
            if not self._over:
                self._connection, self._later = connection, later
                return True
        connection.goodbye(GOODBYE_S)
        return False

    # -- requests --------------------------------------------------------------------------------------

    def update(self, request: first.UpdateRequest | bytes) -> None:
        """Say something in the first interface. While the connection is lost it is dropped: `resync` reports it.

        May wait while too much waits to be sent, except in a callback.

        Raises:
            NotRegisteredError: not registered, under another id, or in the other dialect.
            DisconnectedError: it is over for good; the text says why.
            RequestError: it is no such message, or a value in it is not of the type that is declared.
        """
        self._submit("update", request)

    def update_application(self, request: v19.ApplicationRequest | bytes) -> None:
        """Say which applications are new and which are gone (1.9); as `update`."""
        self._submit("application", request)

    def update_allocation(self, request: v19.AllocationRequest | bytes) -> None:
        """Say what is asked for, runs, and is released (1.9); as `update`.

        It leaves when the scheduler has answered for its applications, and nodes. A request in bytes does not wait for
        these: who sends bytes waits for the answers.
        """
        self._submit("allocation", request)

    def update_node(self, request: v19.NodeRequest | bytes) -> None:
        """Say which nodes are new, change and go (1.9); as `update`."""
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
                return  # lost: what the books say is reported again
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
        """Watch the connection, and make another one when it is lost."""
        current: Connection | None = connection
        wait_s = self._retry_s[0]
        while current is not None:
            current.lost.wait()
            if self._closing.is_set():
                return  # `close` does the rest
            with self._lock:
                self._connection, self._later = None, None
            current.close()  # from here on nothing of it is delivered
            lost = current.reason
            if self._is_final(lost):
                return
            _log.warning("connection lost (%s), connecting again", lost)
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
        """Register again and report everything; None if it is over."""
        while not self._closing.wait(wait_s * random.uniform(0.5, 1.0)):  # noqa: S311  no secret
            wait_s = min(2 * wait_s, self._retry_s[1])
            try:
                connection = self._connect(self._retry_s[1])
            except Lost as lost:
                if lost.code is grpc.StatusCode.INVALID_ARGUMENT:  # it would not be taken the next time either
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
        except Exception as error:  # noqa: BLE001  whatever it is, not everything has been reported
            _log.exception("the resync failed")
            connection.end(Lost(grpc.StatusCode.OK, f"the resync failed: {type(error).__name__}"))
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
        """The resource manager shuts down: the scheduler forgets all that it had. The client is closed then."""
        self.close()

    def close(self, *, goodbye: bool = True, timeout_s: float = GOODBYE_S) -> None:
        """Say goodbye and disconnect. Without `goodbye` it looks like a loss: the scheduler keeps all for a while.

        Not to be called from a callback.
        """
        with self._lock:
            self._over = self._over or "the client is closed"
            connection = self._connection
        self._closing.set()
        if connection is not None:
            if goodbye and not connection.lost.is_set():
                connection.goodbye(timeout_s)
            connection.close()
        if self._keeper is not None and self._keeper is not threading.current_thread():
            self._keeper.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _encoded(request: Any) -> list[Message]:
    """A request as messages; all of them are made before any is sent, so that one that cannot be sent is refused whole."""
    try:
        parts = [(part, wire.encode(part)) for part in _parts(request)]
    except wire.WireError as error:
        raise RequestError(str(error)) from None
    return [(data, _new_names(part), list(_used_names(part))) for part, data in parts]


def _parts(request: Any) -> Iterator[Any]:
    """A request in messages that are not too long. The order within one of the first interface counts, so it is whole."""
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
    """What the scheduler will answer for."""
    if isinstance(request, v19.ApplicationRequest):
        return [("application", app.application_id) for app in request.new]
    if isinstance(request, v19.NodeRequest):
        create = (v19.ActionFromRM.CREATE, v19.ActionFromRM.CREATE_DRAIN)
        return [("node", node.node_id) for node in request.nodes if node.action in create]
    return []


def _used_names(request: Any) -> Iterator[Name]:
    """What must be there before this is said."""
    if isinstance(request, v19.AllocationRequest):
        for allocation in request.allocations:
            yield "application", allocation.application_id
            if allocation.node_id:
                yield "node", allocation.node_id
