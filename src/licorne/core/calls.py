"""The calls of the Scheduler Interface that come with every pod: updates, scheduling, and delivery to callbacks.

These calls are in a module of their own, and `licorne.core.api` adds the rest, because only this module is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.base.states import TIME_MAX_NS
from licorne.si import adapt_first, adapt_v19, first, v19, wire
from licorne.si.adapt import Part, Translation
from licorne.si.messages import Input, Output
from licorne.si.reading import read_ends_v19

from .arguments import refuse_limit, refuse_mistyped, refuse_request, refuse_time
from .cluster import Cluster
from .connection import ManagerConnection
from .constants import UNLIMITED
from .incidents import Handler, Incidents
from .plugins import Plugins
from .strict import refuse_unknown

if TYPE_CHECKING:
    from .input_log import InputLog


OnOutput = Callable[[str, list[Output]], None]
Clock = Callable[[], int]
# An alias, because Cython converts an argument annotated with `int` to an integer, and would let 1.5 pass.
Moment = int | None
DELIVERY_BATCH = 1_000
"""Most allocations that are made before they are delivered: new messages are still in the processor's caches then."""
REENTERED = "SchedulerAPI was called from within a callback; call it when the callback has returned"


class NotRegisteredError(LookupError):
    """A request of a resource manager that is not registered, or that has registered in the other dialect."""


@cython.cfunc
def _is_request(request: Any, of: object) -> cython.bint:
    """Tell whether a request is of this type and names its resource manager by a text."""
    return isinstance(request, of) and type(request.rm_id) is str  # type: ignore[arg-type]


@cython.cclass
class Calls:
    """The frequent calls of a scheduler for any number of resource managers; each call has a time.

    `callback_errors` are the last errors that callbacks raised, at most 100 (`licorne.core.incidents`). `_strict`: a
    message that changes nothing, because what it names does not exist, raises. `_busy` is true while a call decides or
    calls back, when no other call may begin. `input_log`, which a host may set, is told of all inputs.
    """

    cluster: Cluster
    callback_errors: list[str]
    input_log: InputLog | None
    _incidents: Incidents
    _strict: cython.bint
    _clock: Clock | None
    _on_output: OnOutput | None
    _connections: dict[str, ManagerConnection]
    _syncing: list[Plugins]  # the plugins of the resource managers that keep a scheduler cache
    _predicates: cython.bint  # whether any resource manager has a predicate
    _busy: cython.bint

    def __init__(
        self, clock: Clock | None, on_output: OnOutput | None, on_incident: Handler | None, *, strict: bool
    ) -> None:
        self.cluster = Cluster()
        self._incidents = Incidents(on_incident)
        self.callback_errors = self._incidents.errors
        self.input_log = None
        self._strict = strict
        self._clock = clock
        self._on_output = on_output
        self._connections = {}
        self._syncing = []
        self._predicates = False
        self._busy = False

    # -- updates ---------------------------------------------------------------------------------------

    def update(self, request: first.UpdateRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in an update of the first interface, as a message or as its bytes on the wire.

        Nothing is taken in if it raises.

        Raises:
            NotRegisteredError: the resource manager is not registered in this dialect.
            RequestError: `request` is no such message, or a value in it is not of the declared type.
            WireError: the bytes are no such message.
            NoEffectError: with `strict`, the request ends or changes something that does not exist.
        """
        if isinstance(request, bytes):
            rm_id, translation = adapt_first.UPDATES.at_once(request)
            self._check(rm_id, "UpdateRequest", True)
            self._take(rm_id, translation, now_ns)
            return
        if not _is_request(request, first.UpdateRequest):
            refuse_request(request, first.UpdateRequest)
        self._check(request.rm_id, "UpdateRequest", True)
        self._take_made(request.rm_id, adapt_first.inputs_from_update_request(request), now_ns)

    def update_application(self, request: v19.ApplicationRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in new and removed applications (1.9), as a message or its bytes; raise the errors of `update`."""
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
        """Take in asks, allocations and releases (1.9), as a message or its bytes; raise the errors of `update`."""
        if isinstance(request, bytes):
            rm_id, translation = adapt_v19.ALLOCATIONS.at_once(request)
            self._check(rm_id, "AllocationRequest", False)
            if self.input_log is not None:
                translation.part = Part(request, 0)
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
            self._enter(rm_id, ends, (), None, now_ns)

    def update_node(self, request: v19.NodeRequest | bytes, *, now_ns: Moment = None) -> None:
        """Take in new, changed and removed nodes (1.9), as a message or its bytes; raise the errors of `update`."""
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
        """Take in internal messages, without any translation, for hosts that make them themselves.

        Raises:
            NotRegisteredError: the resource manager is not registered.
            RequestError: an input is no internal message; those before it were taken in.
            NoEffectError: with `strict`, a message ends or changes something that does not exist.
        """
        if rm_id not in self._connections:
            raise NotRegisteredError(f'received inputs, but RmID="{rm_id}" not registered')
        self._enter(rm_id, inputs, (), None, now_ns)

    def take(self, rm_id: str, translation: Translation, *, now_ns: Moment = None) -> None:
        """Take in a translated request, for hosts that call the adapter themselves to look at the result first.

        What the adapter has left out (`Translation.ignored`) makes no incident here: such a host has seen it.

        Raises:
            NotRegisteredError: the resource manager is not registered.
            NoEffectError: with `strict`, a message ends or changes something that does not exist.
        """
        if rm_id not in self._connections:
            raise NotRegisteredError(f'received inputs, but RmID="{rm_id}" not registered')
        self._enter(rm_id, translation.inputs, translation.outputs, translation.part, now_ns)

    @cython.cfunc
    def _check(self, rm_id: str, kind: str, first_interface: cython.bint) -> cython.void:
        connection: ManagerConnection | None = self._connections.get(rm_id)
        if connection is None:
            raise NotRegisteredError(f'received {kind}, but RmID="{rm_id}" not registered')
        if connection.first_interface != first_interface:
            raise NotRegisteredError(f'received {kind}, but RmID="{rm_id}" registered in the other dialect')

    @cython.cfunc
    def _take_made(self, rm_id: str, translation: Translation, now_ns: Moment) -> cython.void:
        """Take in a translated message object; raise `RequestError` for values of the wrong type in it.

        Bytes cannot hold such values; in an object they are a mistake of the calling program.
        """
        if translation.mistyped:
            refuse_mistyped(translation.mistyped)
        self._take(rm_id, translation, now_ns)

    @cython.cfunc
    def _take(self, rm_id: str, translation: Translation, now_ns: Moment) -> cython.void:
        for reason in translation.ignored:
            self._incidents.passed_over(rm_id, reason)
        self._enter(rm_id, translation.inputs, translation.outputs, translation.part, now_ns)

    @cython.cfunc
    def _enter(
        self, rm_id: str, inputs: Iterable[Input], refusals: Sequence[Output], part: Part | None, now_ns: Moment
    ) -> cython.void:
        """Do a whole call that takes in inputs; refusals of the adapter are delivered first."""
        self._begin(now_ns)
        if self._strict:
            inputs = list(inputs)
            try:
                refuse_unknown(self.cluster.managers[rm_id], inputs)
            except LookupError:
                self._end_refused(rm_id)
                raise
        if self.input_log is not None:
            inputs = list(inputs)
            self.input_log.submitted(rm_id, inputs, refusals, part)
        if refusals:
            self.cluster.managers[rm_id].out += refusals
        self.cluster.submit(rm_id, inputs)
        self._deliver()

    # -- decisions -------------------------------------------------------------------------------------

    def schedule(self, *, now_ns: Moment = None, limit: Moment = None) -> int:
        """Decide until nothing more is possible or `limit` allocations are made; return their number.

        Deadlines up to now are handled first. The allocations are announced through the callbacks before the call
        returns, a thousand at a time if no resource manager has a predicate.

        Raises:
            RequestError: the time or the limit is not a whole number, or is negative.
        """
        made: cython.longlong = 0
        wanted: cython.longlong = UNLIMITED
        if limit is not None:
            if type(limit) is not int or limit < 0:
                refuse_limit(limit)
            wanted = min(limit, UNLIMITED)
        # One batch only with predicates: an ask that one refused is tried once a call, not once a batch.
        run: cython.longlong = wanted if self._predicates else min(wanted, DELIVERY_BATCH)
        last: cython.longlong
        self._begin(now_ns)
        while True:
            self._busy = True
            try:
                last = self.cluster.schedule(min(run, wanted - made))
            finally:
                self._busy = False
            if self.input_log is not None:
                self.input_log.decided(min(run, wanted - made), last)
            made += last
            self._deliver()
            if last < run or made >= wanted:
                return made

    # -- time and callbacks ----------------------------------------------------------------------------

    @cython.ccall
    def _begin(self, now_ns: Moment) -> cython.void:
        """Begin a call: set the time to `now_ns`, or else to the clock's; without a clock it stands still."""
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
        if self.input_log is not None:
            self.input_log.advanced(self.cluster.now)

    @cython.ccall
    def _end_refused(self, rm_id: str) -> cython.void:
        """End a call that was refused: `_begin` has advanced the time, which may have had effects."""
        if self.input_log is not None:
            self.input_log.submitted(rm_id, (), (), None)
        self._deliver()

    @cython.ccall
    def _deliver(self) -> cython.void:
        """End a call: deliver outputs and records of events to the host or the callbacks."""
        connection: ManagerConnection | None
        self._busy = True
        try:
            for plugins in self._syncing:
                plugins.sync(last=True)
            for rm_id, outputs in self.cluster.outputs():
                if self.input_log is not None:
                    self.input_log.delivered(rm_id, outputs)
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
