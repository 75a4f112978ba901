"""The calls of the Scheduler Interface that come with every pod: updates in, decisions, and what is to be told.

They stand apart from `licorne.core.api`, which has all the others, because they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cython

from licorne.core.base.states import TIME_MAX_NS
from licorne.si import adapt_first, adapt_v19, first, v19, wire
from licorne.si.adapt import Translation
from licorne.si.messages import Input, Output

from .arguments import refuse_limit, refuse_mistyped, refuse_request, refuse_time
from .constants import UNLIMITED
from .incidents import Handler, Incidents
from .plugins import Plugins
from .strict import refuse_unknown

if cython.compiled:
    from cython.cimports.licorne.core.cluster import Cluster
    from cython.cimports.licorne.core.connection import ManagerConnection
    from cython.cimports.licorne.si.reading import read_ends_v19
else:
    from licorne.si.reading import read_ends_v19

    from .cluster import Cluster
    from .connection import ManagerConnection

OnOutput = Callable[[str, list[Output]], None]
Clock = Callable[[], int]
Moment = int | None  # by another name: of an argument that is called `int`, Cython makes one, also of 1.5
DELIVERY_BATCH = 1_000
"""At most so many allocations are made before they are told: what was just decided, the processor still has at hand."""
REENTERED = "SchedulerAPI was called from within a callback; call it when the callback has returned"


class NotRegisteredError(LookupError):
    """A request of a resource manager that is not registered, or in another dialect than it registered in."""


@cython.cfunc
def _is_request(request: Any, of: object) -> cython.bint:
    """Is it of this type, and from whom?"""
    return isinstance(request, of) and type(request.rm_id) is str  # type: ignore[arg-type]


@cython.cclass
class Calls:
    """Any number of resource managers, and the time of each call; `_busy` while a call decides or calls back.

    `callback_errors` are the last errors that callbacks raised, at most 100 (`licorne.core.incidents`). `_strict`: what
    changes nothing, because it names something that is not there, raises.
    """

    cluster: Cluster
    callback_errors: list[str]
    _incidents: Incidents
    _strict: cython.bint
    _clock: Clock | None
    _on_output: OnOutput | None
    _connections: dict[str, ManagerConnection]
    _syncing: list[Plugins]  # those of them that keep a cache
    _predicates: cython.bint  # some of them are asked of nodes
    _busy: cython.bint

    def __init__(
        self, clock: Clock | None, on_output: OnOutput | None, on_incident: Handler | None, *, strict: bool
    ) -> None:
        self.cluster = Cluster()
        self._incidents = Incidents(on_incident)
        self.callback_errors = self._incidents.errors
        self._strict = strict
        self._clock = clock
        self._on_output = on_output
        self._connections = {}
        self._syncing = []
        self._predicates = False
        self._busy = False

    # -- updates ---------------------------------------------------------------------------------------

    def update(self, request: first.UpdateRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in an update in the first interface: the message, or its bytes as on the wire.

        Raises:
            NotRegisteredError: the resource manager is not registered in this dialect.
            RequestError: it is no such message, or a value in it is not of the type that is declared.
            WireError: the bytes are no such message.
            NoEffectError: with `strict`, it ends or changes what is not there.

            Nothing was taken in then.
        """
        if isinstance(request, bytes):
            rm_id, translation = adapt_first.inputs_from_update_bytes(request)
            self._check(rm_id, "UpdateRequest", True)
            self._take(rm_id, translation, now_ns)
            return
        if not _is_request(request, first.UpdateRequest):
            refuse_request(request, first.UpdateRequest)
        self._check(request.rm_id, "UpdateRequest", True)
        self._take_made(request.rm_id, adapt_first.inputs_from_update_request(request), now_ns)

    def update_application(self, request: v19.ApplicationRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in new and removed applications (1.9), as a message or its bytes; raises as `update`."""
        if isinstance(request, bytes):
            decoded = wire.decode(v19.ApplicationRequest, request)
            self._check(decoded.rm_id, "ApplicationRequest", False)
            self._take(decoded.rm_id, adapt_v19.inputs_from_application_request(decoded), now_ns)
            return
        if not _is_request(request, v19.ApplicationRequest):
            refuse_request(request, v19.ApplicationRequest)
        self._check(request.rm_id, "ApplicationRequest", False)
        self._take_made(request.rm_id, adapt_v19.inputs_from_application_request(request), now_ns)

    def update_allocation(self, request: v19.AllocationRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in asks, allocations and releases (1.9), as a message or its bytes; raises as `update`."""
        if isinstance(request, bytes):
            rm_id, translation = adapt_v19.inputs_from_allocation_bytes(request)
            self._check(rm_id, "AllocationRequest", False)
            self._take(rm_id, translation, now_ns)
            return
        if not _is_request(request, v19.AllocationRequest):
            refuse_request(request, v19.AllocationRequest)
        rm_id = request.rm_id
        self._check(rm_id, "AllocationRequest", False)
        ends: list[Any] | None = read_ends_v19(request)
        if ends is None:
            self._take_made(rm_id, adapt_v19.inputs_from_allocation_request(request), now_ns)
        else:
            self._enter(rm_id, ends, (), now_ns)

    def update_node(self, request: v19.NodeRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in new, changed and removed nodes (1.9), as a message or its bytes; raises as `update`."""
        if isinstance(request, bytes):
            decoded = wire.decode(v19.NodeRequest, request)
            self._check(decoded.rm_id, "NodeRequest", False)
            self._take(decoded.rm_id, adapt_v19.inputs_from_node_request(decoded), now_ns)
            return
        if not _is_request(request, v19.NodeRequest):
            refuse_request(request, v19.NodeRequest)
        self._check(request.rm_id, "NodeRequest", False)
        self._take_made(request.rm_id, adapt_v19.inputs_from_node_request(request), now_ns)

    def submit(self, rm_id: str, inputs: Sequence[Input], *, now_ns: Moment = None) -> None:
        """Take in internal messages: the shortest way in, for hosts that make them themselves."""
        if rm_id not in self._connections:
            raise NotRegisteredError(f'received inputs, but RmID="{rm_id}" not registered')
        self._enter(rm_id, inputs, (), now_ns)

    def take(self, rm_id: str, translation: Translation, *, now_ns: Moment = None) -> None:
        """Take in what the adapter of its dialect made of a request, for hosts that look at it first; as `submit`.

        What the adapter has left out (`Translation.ignored`), such a host has seen, and is not told again.
        """
        if rm_id not in self._connections:
            raise NotRegisteredError(f'received inputs, but RmID="{rm_id}" not registered')
        self._enter(rm_id, translation.inputs, translation.outputs, now_ns)

    @cython.cfunc
    def _check(self, rm_id: str, kind: str, first_interface: cython.bint) -> cython.void:
        connection: ManagerConnection | None = self._connections.get(rm_id)
        if connection is None:
            raise NotRegisteredError(f'received {kind}, but RmID="{rm_id}" not registered')
        if connection.first_interface != first_interface:
            raise NotRegisteredError(f'received {kind}, but RmID="{rm_id}" registered in the other dialect')

    @cython.cfunc
    def _take_made(self, rm_id: str, translation: Translation, now_ns: Moment) -> cython.void:
        """Take in a message that a program has made: a value of the wrong type in it is a mistake of that program."""
        if translation.mistyped:
            refuse_mistyped(translation.mistyped)
        self._take(rm_id, translation, now_ns)

    @cython.cfunc
    def _take(self, rm_id: str, translation: Translation, now_ns: Moment) -> cython.void:
        for reason in translation.ignored:
            self._incidents.passed_over(rm_id, reason)
        self._enter(rm_id, translation.inputs, translation.outputs, now_ns)

    @cython.cfunc
    def _enter(self, rm_id: str, inputs: Iterable[Input], refusals: Sequence[Output], now_ns: Moment) -> cython.void:
        """A whole call: what was refused before the core is told first."""
        self._begin(now_ns)
        if self._strict:
            inputs = list(inputs)
            try:
                refuse_unknown(self.cluster.managers[rm_id], inputs)
            except LookupError:
                self._deliver()  # what the passing of time has brought
                raise
        if refusals:
            self.cluster.managers[rm_id].out += refusals
        self.cluster.submit(rm_id, inputs)
        self._deliver()

    # -- decisions -------------------------------------------------------------------------------------

    def schedule(self, *, now_ns: Moment = None, limit: Moment = None) -> int:
        """Decide until nothing more is possible, or `limit` allocations are made; returns the number of new allocations.

        They are announced through the callbacks before the call returns, a thousand at a time where no predicate is
        asked. What was due by now happens first.

        Raises:
            RequestError: a time or a limit that is no whole number, or negative.
        """
        made: cython.longlong = 0
        wanted: cython.longlong = UNLIMITED
        if limit is not None:
            if type(limit) is not int or limit < 0:
                refuse_limit(limit)
            wanted = min(limit, UNLIMITED)
        # An ask that a predicate refused is tried once a call.
        run: cython.longlong = wanted if self._predicates else min(wanted, DELIVERY_BATCH)
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
    def _begin(self, now_ns: Moment) -> cython.void:
        """A call begins; the time is this, or the clock's, or goes on standing still."""
        if self._busy:
            raise RuntimeError(REENTERED)
        if now_ns is None:
            if self._clock is None:
                return
            now_ns = self._clock()
            if type(now_ns) is not int:
                refuse_time("what clock returned", now_ns)
        if type(now_ns) is not int or not 0 <= now_ns <= TIME_MAX_NS:
            refuse_time("now_ns", now_ns)
        self.cluster.advance(now_ns)

    @cython.ccall
    def _deliver(self) -> cython.void:
        """A call ends: tell what there is to be told."""
        connection: ManagerConnection | None
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
                    connection.plugins.send(events, first_interface=connection.first_interface)
        finally:
            self._busy = False
