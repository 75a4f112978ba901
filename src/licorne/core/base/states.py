"""The state machines of applications, queues and partitions, as tables.

A state machine is a mapping `(state, event) -> state` and nothing else. The tables hold no actions: what an
application does on entering a state is part of the application, so that this file can be read in one minute,
printed as documentation (`docs/reference/states.md`) and compared with the specification row by row. An event without a
row changes nothing; whether that is an error is for the caller to decide.

Applications have four tables because two questions are independent: which dialect the resource manager speaks
(in the first, Failed and Rejected are final and there is no Resuming), and whether Starting comes between
Accepted and Running (setting `application.state.starting`; on by default in the first interface, off in the 1.9
interface). They are put together from the same rows, so what is common is written once.

Lengths of timers are here too, since a timer is only an event that fires when a state has lasted too long.
Sources: *Scheduler Object States*; docs/spec/states.md, sections 1 and 2 and its last section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
TIME_MAX_NS = (1 << 62) - 1
"""The latest moment (in the year 2116) and the longest time, in nanoseconds, so that the sum of two fits int64."""

STARTING_TIMEOUT_NS = 5 * 60 * SECOND_NS
"""How long an application stays Starting at most, whatever the number of its allocations.

Source: *Scheduler Object States*.
"""
COMPLETING_TIMEOUT_NS = 30 * SECOND_NS
"""How long an application without asks and allocations waits for late asks (docs/spec/states.md, section 1.6)."""
TERMINATED_TIMEOUT_NS = 72 * 3600 * SECOND_NS
"""How long a completed or failed application is kept (docs/spec/states.md, section 1.6)."""
PLACEHOLDER_TIMEOUT_NS = 15 * 60 * SECOND_NS
"""How long placeholders wait to be replaced if the application doesn't say (docs/spec/states.md, section 1.6)."""


class ApplicationState(StrEnum):
    """The states of an application, spelled as they are reported."""

    NEW = "New"
    ACCEPTED = "Accepted"
    STARTING = "Starting"
    RUNNING = "Running"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    RESUMING = "Resuming"
    FAILING = "Failing"
    FAILED = "Failed"
    REJECTED = "Rejected"
    EXPIRED = "Expired"


class ApplicationEvent(StrEnum):
    """The events of an application; a resource manager reads these names in `message`."""

    RUN = "runApplication"
    REJECT = "rejectApplication"
    COMPLETE = "completeApplication"
    FAIL = "failApplication"
    EXPIRE = "expireApplication"
    RESUME = "resumeApplication"


class ObjectState(StrEnum):
    """The states of a queue or a partition."""

    ACTIVE = "Active"
    DRAINING = "Draining"
    STOPPED = "Stopped"


class ObjectEvent(StrEnum):
    """The events of a queue or a partition."""

    START = "Start"
    STOP = "Stop"
    REMOVE = "Remove"


_S = TypeVar("_S", bound=StrEnum)
_E = TypeVar("_E", bound=StrEnum)

ApplicationTable: TypeAlias = Mapping[tuple[ApplicationState, ApplicationEvent], ApplicationState]
ObjectTable: TypeAlias = Mapping[tuple[ObjectState, ObjectEvent], ObjectState]


def next_state(table: Mapping[tuple[_S, _E], _S], state: _S, event: _E) -> _S | None:
    """Return the state after `event`, or None where the table has no such transition and nothing changes.

    The same state as before is a transition too: it is accepted, and no enter or leave action runs.
    """
    return table.get((state, event))


# -- applications ----------------------------------------------------------------------------------------

_Row: TypeAlias = tuple[ApplicationEvent, tuple[ApplicationState, ...], ApplicationState]
_A, _V = ApplicationState, ApplicationEvent

_COMMON: tuple[_Row, ...] = (
    (_V.REJECT, (_A.NEW,), _A.REJECTED),
    (_V.RUN, (_A.NEW,), _A.ACCEPTED),
    (_V.RUN, (_A.RUNNING, _A.COMPLETING), _A.RUNNING),
    (_V.COMPLETE, (_A.ACCEPTED, _A.RUNNING), _A.COMPLETING),
    (_V.COMPLETE, (_A.COMPLETING,), _A.COMPLETED),
    (_V.FAIL, (_A.NEW, _A.ACCEPTED, _A.RUNNING), _A.FAILING),
    (_V.FAIL, (_A.FAILING,), _A.FAILED),
    (_V.EXPIRE, (_A.COMPLETED,), _A.EXPIRED),
)
_STARTING_ON: tuple[_Row, ...] = (
    (_V.RUN, (_A.ACCEPTED,), _A.STARTING),
    (_V.RUN, (_A.STARTING,), _A.RUNNING),
    (_V.COMPLETE, (_A.STARTING,), _A.COMPLETING),
    (_V.FAIL, (_A.STARTING,), _A.FAILING),
)
_STARTING_OFF: tuple[_Row, ...] = ((_V.RUN, (_A.ACCEPTED,), _A.RUNNING),)
_ONLY_V19: tuple[_Row, ...] = (
    (_V.RUN, (_A.RESUMING,), _A.ACCEPTED),
    (_V.RESUME, (_A.NEW, _A.ACCEPTED), _A.RESUMING),
    (_V.EXPIRE, (_A.FAILED, _A.REJECTED), _A.EXPIRED),
)


def _table(*groups: Iterable[_Row]) -> ApplicationTable:
    return {(source, event): target for rows in groups for event, sources, target in rows for source in sources}


APPLICATION: ApplicationTable = _table(_COMMON, _STARTING_OFF, _ONLY_V19)
"""The table of applications in the 1.9 interface (docs/spec/states.md, section 1.3)."""
APPLICATION_STARTING: ApplicationTable = _table(_COMMON, _STARTING_ON, _ONLY_V19)
"""The table of applications in the 1.9 interface with `application.state.starting` on."""
APPLICATION_FIRST: ApplicationTable = _table(_COMMON, _STARTING_ON)
"""The table of applications in the first interface (*Scheduler Object States*; docs/spec/states.md, section 1.4)."""
APPLICATION_FIRST_NO_STARTING: ApplicationTable = _table(_COMMON, _STARTING_OFF)
"""The table of applications in the first interface with `application.state.starting` off."""


def application_table(*, first_interface: bool, starting: bool) -> ApplicationTable:
    """Return the table for the applications of one resource manager."""
    if first_interface:
        return APPLICATION_FIRST if starting else APPLICATION_FIRST_NO_STARTING
    return APPLICATION_STARTING if starting else APPLICATION


class StateTimer(NamedTuple):
    """How long a state lasts at most, and the event that then fires."""

    length_ns: int
    event: ApplicationEvent


STATE_TIMERS: Mapping[ApplicationState, StateTimer] = {
    _A.STARTING: StateTimer(STARTING_TIMEOUT_NS, _V.RUN),
    _A.COMPLETING: StateTimer(COMPLETING_TIMEOUT_NS, _V.COMPLETE),
    _A.COMPLETED: StateTimer(TERMINATED_TIMEOUT_NS, _V.EXPIRE),
    _A.FAILED: StateTimer(TERMINATED_TIMEOUT_NS, _V.EXPIRE),
    _A.REJECTED: StateTimer(TERMINATED_TIMEOUT_NS, _V.EXPIRE),
}
"""The timer started on entering a state and stopped on leaving it (docs/spec/states.md, section 1.6).

Where a state is final (Failed and Rejected in the first interface) the timer's event changes no state; it only
marks the moment after which the application need not be kept.
"""

RUNNING_STATES = frozenset({_A.STARTING, _A.RUNNING})
"""Applications in these states count against a queue's maximum of running applications.

Source: docs/spec/states.md, section 1.7.
"""
TERMINATED_STATES = frozenset({_A.COMPLETED, _A.FAILED, _A.REJECTED, _A.EXPIRED})
"""The states of applications of which nothing is ever scheduled again."""

# -- queues and partitions ---------------------------------------------------------------------------------

_O, _W = ObjectState, ObjectEvent

OBJECT: ObjectTable = {
    (_O.ACTIVE, _W.START): _O.ACTIVE,
    (_O.STOPPED, _W.START): _O.ACTIVE,
    (_O.DRAINING, _W.START): _O.ACTIVE,
    (_O.ACTIVE, _W.STOP): _O.STOPPED,
    (_O.STOPPED, _W.STOP): _O.STOPPED,
    (_O.ACTIVE, _W.REMOVE): _O.DRAINING,
    (_O.DRAINING, _W.REMOVE): _O.DRAINING,
}
"""The table of queues and partitions: a draining queue that is configured again becomes active.

Source: docs/spec/states.md, section 2. It is that of both interfaces (difference 118).
"""
