"""The machine's records of gangs with placeholders: asks in flight, waiting asks, and the effects of their timeouts.

A real ask that replaces a placeholder is reported at the confirmation only. Until then it is neither pending nor
allocated here; on another node than the placeholder's it uses that node, which only the scheduler knows: that is read
from it (`whereabouts`), and the announcement must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from licorne.si import messages
from licorne.si.messages import Termination
from machine.amounts import Amounts, fits, met, plus

if TYPE_CHECKING:
    from machine.expected import ExpectedState
    from machine.things import Alloc, App, Ask

SECOND_NS = 10**9
DEFAULT_TIMEOUT_NS = 15 * 60 * SECOND_NS
OVER = "ResourceReservationTimeout"


@dataclass
class Gang:
    """The placeholders that an application announced, and the time since when one of them has been placed."""

    hard: bool
    timeout_ns: int
    clock: int | None = None


@dataclass
class Flight:
    """A real ask between decision and confirmation. `id` is the name that its allocation will have."""

    ask: Ask
    id: str
    node: str
    apart: bool  # on another node than the placeholder's


Whereabouts = Callable[[str, str], tuple[str, str, str]]
"""(application, id of the placeholder) -> (key, id, node) of the ask that takes its place."""


def gang_of(message: messages.AddApplication) -> Gang | None:
    """The gang that an application announces."""
    if not any(message.placeholder_ask.values()):
        return None
    told = 0 if message.timeout_is_running_time else message.execution_timeout_ms * 10**6
    return Gang(message.gang_style == "Hard", told or DEFAULT_TIMEOUT_NS)


def live(app: App, group: str) -> bool:
    """Is there a placeholder of the task group, pending, placed, or about to end?"""
    asks = any(a.placeholder and a.group == group for a in app.asks.values())
    return asks or any(a.placeholder and a.group == group for a in app.allocs.values())


def waits(app: App, ask: Ask) -> bool:
    """Tell whether the ask waits for a placeholder."""
    return bool(ask.group) and not ask.placeholder and app.gang is not None and live(app, ask.group)


def replaceable(expected: ExpectedState, app: App, ask: Ask, predicate: Any) -> str:
    """A placeholder that this ask could replace where it is; empty if there is none."""
    for place in app.allocs.values():
        if not place.placeholder or place.group != ask.group or place.ending or not fits(ask.resource, place.resource):
            continue
        node = expected.nodes[place.node]
        may_stay = met(ask.constraint, node.labels, tainted=node.tainted) and ask.required in ("", node.id)
        if may_stay and predicate(ask.key, node.id, allocate=False):
            return place.key
    return ""


def any_apart(expected: ExpectedState) -> bool:
    """Is one in flight to another node than the placeholder's?"""
    return any(flight.apart for app in expected.apps.values() for flight in app.flights.values())


# -- what is said ------------------------------------------------------------------------------------------


def depart(expected: ExpectedState, app: App, place: Alloc) -> None:
    """A placeholder is to be replaced."""
    assert place.placeholder, f"{place.key} is replaced, and is no placeholder"
    key, id_, node = expected.whereabouts(app.id, place.id)
    ask = app.asks.get(key)
    assert ask is not None and not ask.placeholder, f"invariant 7: {key} was not asked for, and is in flight"
    assert ask.group == place.group, f"{key} replaces {place.key} of another task group"
    assert fits(ask.resource, place.resource), f"{key} replaces {place.key}, which is smaller"
    ask.left -= 1
    if ask.left == 0:
        del app.asks[key]
    there = expected.nodes[node]
    assert expected.meets(ask, there) and ask.required in ("", node), f"{key} may not run on {node}"
    apart = node != place.node
    if apart:
        assert there.schedulable and expected.has_room(ask, there), f"invariant 1: no room on {node} for {key}"
    flight = Flight(ask.one(), id_, node, apart)
    app.flights[place.id] = flight
    _use(expected, flight, 1)


def dropped(expected: ExpectedState, app: App, output: messages.Released) -> None:
    """A pending ask is not wanted any more."""
    assert output.termination is Termination.TIMEOUT
    told = (app.id, output.key)
    if told in expected.untold:
        expected.untold.remove(told)
        return
    ask = app.asks.get(output.key)
    assert ask is not None and ask.placeholder, f"invariant 7: {output.key} is dropped, and is no pending placeholder"
    del app.asks[output.key]


def failing(expected: ExpectedState, app: App, message: str) -> None:
    """Record that the application is going to fail: no ask of it is pending or in flight any longer."""
    if message == OVER:
        keys = dict.fromkeys([*app.asks, *(flight.ask.key for flight in app.flights.values())])
        expected.untold += [(app.id, key) for key in keys]
    abandon(expected, app)
    app.asks.clear()


# -- what is sent ------------------------------------------------------------------------------------------


def ended(expected: ExpectedState, app: App, alloc: Alloc, termination: Termination) -> None:
    """Record that an allocation has ended, with what happens to the real ask that was to replace it."""
    flight = app.flights.pop(alloc.id, None)
    if flight is None:
        return
    _use(expected, flight, -1)
    if termination is Termination.PLACEHOLDER_REPLACED:
        expected.announced.append((app.id, flight.ask.key, flight.node, flight.ask.resource))
    else:
        _pend(app, flight)


def released(expected: ExpectedState, app: App, message: messages.Release) -> None:
    """Real ones in flight are released by key, or with all that the application asks for."""
    if message.what == "allocation" or (message.what == "both" and message.termination is Termination.TIMEOUT):
        return
    for place, flight in list(app.flights.items()):
        if not message.key or message.key == flight.ask.key:
            _use(expected, flight, -1)
            del app.flights[place]


def node_lost(expected: ExpectedState, app: App, node: str) -> None:
    """Record the loss of a node: asks that were to come there are pending again; those on other nodes are announced."""
    for place, flight in list(app.flights.items()):
        if app.allocs[place].node == node:
            kept = Termination.PLACEHOLDER_REPLACED if flight.apart else Termination.STOPPED_BY_RM
            ended(expected, app, app.allocs[place], kept)
        elif flight.node == node:
            del app.flights[place]
            _pend(app, flight)


def resized(expected: ExpectedState, app: App, key: str, resource: Amounts) -> bool:
    """Give an ask another size, if it is in flight; tell whether it is."""
    for flight in app.flights.values():
        if flight.id == key:
            _use(expected, flight, -1)
            flight.ask.resource = resource
            _use(expected, flight, 1)
            return True
    return False


def placed_outside(expected: ExpectedState, app: App, key: str) -> Ask | None:
    """Record that an ask in flight has been placed from outside."""
    for place, flight in list(app.flights.items()):
        if flight.id == key:
            _use(expected, flight, -1)
            del app.flights[place]
            return flight.ask
    return None


def abandon(expected: ExpectedState, app: App) -> None:
    """Drop all asks in flight."""
    for flight in app.flights.values():
        _use(expected, flight, -1)
    app.flights.clear()


def _use(expected: ExpectedState, flight: Flight, times: int) -> None:
    if flight.apart and flight.node in expected.used:
        expected.used[flight.node] = plus(expected.used[flight.node], flight.ask.resource, times)


def _pend(app: App, flight: Flight) -> None:
    ask = app.asks.get(flight.ask.key)
    if ask is None:
        app.asks[flight.ask.key] = flight.ask
    else:
        ask.left += 1


# -- after each step ---------------------------------------------------------------------------------------


def check(expected: ExpectedState, now: int) -> None:
    """Check the timeout of every gang (invariant 10). The beginning that is recorded here is never too early."""
    assert not expected.untold, f"invariant 7: asks that were dropped, and nobody was told: {expected.untold}"
    for app in expected.apps.values():
        gang = app.gang
        if gang is None:
            continue
        placed = [a for a in app.allocs.values() if a.placeholder and not a.ending]
        pending = [a for a in app.asks.values() if a.placeholder]
        if gang.clock is not None and now >= gang.clock + gang.timeout_ns and app.state != "Failing":
            assert not gang.hard or app.state != "Accepted", f"invariant 10: {app.id} of hard style has not failed"
            assert not placed and not pending, f"invariant 10: {app.id} keeps its placeholders for too long"
            gang.clock = None
        if not pending and not any(a.placeholder for a in app.allocs.values()):
            gang.clock = None
        elif gang.clock is None and placed and app.state == "Accepted":
            gang.clock = now
