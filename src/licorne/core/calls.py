"""The calls of the Scheduler Interface that come with every pod: updates in, decisions, and what is to be told.

They stand apart from `licorne.core.api`, which has all the others, because they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cython

from licorne.si import adapt_seed, adapt_v19, seed, v19, wire
from licorne.si.adapt import Translation
from licorne.si.messages import Input, Output

from .plugins import Plugins
from .states import TIME_MAX_NS
from .vectors import UNLIMITED

if cython.compiled:
    from cython.cimports.licorne.core.cluster import Cluster
    from cython.cimports.licorne.core.connection import Connection
    from cython.cimports.licorne.si.reading import read_ends_v19
else:
    from licorne.si.reading import read_ends_v19

    from .cluster import Cluster
    from .connection import Connection

OnOutput = Callable[[str, list[Output]], None]
Clock = Callable[[], int]
TOLD_AT_ONCE = 1_000
"""At most so many allocations are made before they are told: what was just decided, the processor still has at hand."""
REENTERED = "SchedulerAPI was called from within a callback; call it when the callback has returned"


class NotRegisteredError(LookupError):
    """A request of a resource manager that is not registered, or in another dialect than it registered in."""


@cython.cclass
class Calls:
    """Any number of resource managers, and the time of each call; `_busy` while a call decides or calls back.

    `callback_errors` are the last errors that callbacks raised (at most 100): they change nothing, and are kept for the
    host to log.
    """

    cluster: Cluster
    callback_errors: list[str]
    _clock: Clock | None
    _on_output: OnOutput | None
    _connections: dict[str, Connection]
    _syncing: list[Plugins]  # those of them that keep a cache
    _predicates: cython.bint  # some of them are asked of nodes
    _busy: cython.bint

    def __init__(self, clock: Clock | None, on_output: OnOutput | None) -> None:
        self.cluster = Cluster()
        self.callback_errors = []
        self._clock = clock
        self._on_output = on_output
        self._connections = {}
        self._syncing = []
        self._predicates = False
        self._busy = False

    # -- updates ---------------------------------------------------------------------------------------

    def update(self, request: seed.UpdateRequest | bytes, *, now_ns: int | None = None) -> None:
        """Take in an update in the seed's dialect: the message, or its bytes as on the wire.

        Raises:
            NotRegisteredError: the resource manager is not registered in this dialect.
            WireError: the bytes are no such message; nothing of them was taken in.
        """
        if isinstance(request, bytes):
            rm_id, translation = adapt_seed.inputs_from_update_bytes(request)
            self._check(rm_id, "UpdateRequest", True)
        else:
            rm_id = request.rm_id
            self._check(rm_id, "UpdateRequest", True)
            translation = adapt_seed.inputs_from_update_request(request)
        self._take(rm_id, translation, now_ns)

    def update_application(self, request: v19.ApplicationRequest | bytes, *, now_ns: int | None = None) -> None:
        """Take in new and removed applications (1.9), as a message or its bytes; raises as `update`."""
        if isinstance(request, bytes):
            request = wire.decode(v19.ApplicationRequest, request)
        self._check(request.rm_id, "ApplicationRequest", False)
        self._take(request.rm_id, adapt_v19.inputs_from_application_request(request), now_ns)

    def update_allocation(self, request: v19.AllocationRequest | bytes, *, now_ns: int | None = None) -> None:
        """Take in asks, allocations and releases (1.9), as a message or its bytes; raises as `update`."""
        if isinstance(request, bytes):
            rm_id, translation = adapt_v19.inputs_from_allocation_bytes(request)
            self._check(rm_id, "AllocationRequest", False)
            self._take(rm_id, translation, now_ns)
            return
        rm_id = request.rm_id
        self._check(rm_id, "AllocationRequest", False)
        ends: list[Any] | None = read_ends_v19(request)
        if ends is None:
            self._take(rm_id, adapt_v19.inputs_from_allocation_request(request), now_ns)
        else:
            self._enter(rm_id, ends, (), now_ns)

    def update_node(self, request: v19.NodeRequest | bytes, *, now_ns: int | None = None) -> None:
        """Take in new, changed and removed nodes (1.9), as a message or its bytes; raises as `update`."""
        if isinstance(request, bytes):
            request = wire.decode(v19.NodeRequest, request)
        self._check(request.rm_id, "NodeRequest", False)
        self._take(request.rm_id, adapt_v19.inputs_from_node_request(request), now_ns)

    def submit(self, rm_id: str, inputs: Sequence[Input], *, now_ns: int | None = None) -> None:
        """Take in internal messages: the shortest way in, for hosts that make them themselves."""
        if rm_id not in self._connections:
            raise NotRegisteredError(f'received inputs, but RmID="{rm_id}" not registered')
        self._enter(rm_id, inputs, (), now_ns)

    def take(self, rm_id: str, translation: Translation, *, now_ns: int | None = None) -> None:
        """Take in what the adapter of its dialect made of a request, for hosts that look at it first; as `submit`."""
        if rm_id not in self._connections:
            raise NotRegisteredError(f'received inputs, but RmID="{rm_id}" not registered')
        self._take(rm_id, translation, now_ns)

    @cython.cfunc
    def _check(self, rm_id: str, kind: str, seed_dialect: cython.bint) -> cython.void:
        connection: Connection | None = self._connections.get(rm_id)
        if connection is None:
            raise NotRegisteredError(f'received {kind}, but RmID="{rm_id}" not registered')
        if connection.seed_dialect != seed_dialect:
            raise NotRegisteredError(f'received {kind}, but RmID="{rm_id}" registered in the other dialect')

    @cython.cfunc
    def _take(self, rm_id: str, translation: Translation, now_ns: int | None) -> cython.void:
        self._enter(rm_id, translation.inputs, translation.outputs, now_ns)

    @cython.cfunc
    def _enter(
        self, rm_id: str, inputs: Iterable[Input], refusals: Sequence[Output], now_ns: int | None
    ) -> cython.void:
        """A whole call: what was refused before the core is told first."""
        self._begin(now_ns)
        if refusals:
            self.cluster.managers[rm_id].out += refusals
        self.cluster.submit(rm_id, inputs)
        self._deliver()

    # -- decisions -------------------------------------------------------------------------------------

    def schedule(self, *, now_ns: int | None = None, limit: int | None = None) -> int:
        """Decide until nothing more is possible, or `limit` allocations are made; returns the number of new allocations.

        They are announced through the callbacks before the call returns, a thousand at a time where no predicate is
        asked. What was due by now happens first.
        """
        made: cython.longlong = 0
        wanted: cython.longlong = UNLIMITED if limit is None else min(limit, UNLIMITED)
        # An ask that a predicate refused is tried once a call.
        run: cython.longlong = wanted if self._predicates else min(wanted, TOLD_AT_ONCE)
        last: cython.longlong
        self._begin(now_ns)
        while True:
            self._busy = True
            try:
                last = self.cluster.schedule(min(run, wanted - made))
            finally:
                self._busy = False
            made += last
            self._deliver()
            if last < run or made >= wanted:
                return made

    # -- time and callbacks ----------------------------------------------------------------------------

    @cython.ccall
    def _begin(self, now_ns: int | None) -> cython.void:
        """A call begins; the time is this, or the clock's, or goes on standing still."""
        if self._busy:
            raise RuntimeError(REENTERED)
        if now_ns is None:
            if self._clock is None:
                return
            now_ns = self._clock()
        if now_ns > TIME_MAX_NS:
            raise ValueError(f"now_ns: {now_ns}: no time is later than {TIME_MAX_NS}")
        self.cluster.advance(now_ns)

    @cython.ccall
    def _deliver(self) -> cython.void:
        """A call ends: tell what there is to be told."""
        connection: Connection | None
        self._busy = True
        try:
            for plugins in self._syncing:
                plugins.sync(last=True)
            for rm_id, outputs in self.cluster.outputs():
                if self._on_output is not None:
                    self._on_output(rm_id, outputs)
                    continue
                connection = self._connections.get(rm_id)
                if connection is not None:
                    connection.call_back(outputs)
            if self.cluster.listening:
                for rm_id, events in self.cluster.events():
                    connection = self._connections[rm_id]
                    connection.plugins.send(events, seed_dialect=connection.seed_dialect)
        finally:
            self._busy = False

    def _note(self, error: Exception) -> None:
        self.callback_errors.append(f"{type(error).__name__}: {error}")
        if len(self.callback_errors) > 100:
            del self.callback_errors[0]
