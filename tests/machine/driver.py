"""Drives two schedulers with the same calls, keeps records of them, and checks everything after each step.

The second scheduler has parking switched off: it tries every ask again in every pass, which decides the same by
definition and needs no wake-up to be right. Any difference in their messages is a wake-up that is missing, or one
that changes more than the time it costs; it shows in the step in which it happens, and so is shrunk well.

Every call is kept in a log. At the end of a run the log is given to a third scheduler, which must send the same messages
(invariant 14); it reports allocations two at a time, which is to change nothing else. The third one is recorded, and its
recording must replay with the same digests, to the same state. So must a fourth one, which a few times in between is
replaced by one that is restored from its checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from licorne import ConfigurationError, RegistrationError, ResourceManagerCallback, SchedulerAPI
from licorne.core import calls
from licorne.si import messages, v19
from licorne.si.messages import Output, Termination
from machine import atomic, evicted, evictions, flights, work
from machine.amounts import pruned
from machine.compare import compare
from machine.eventbalances import EventBalances
from machine.expected import ExpectedState
from machine.order import passed_over
from machine.situations import Situations
from machine.things import App
from machine.versions import Versions
from recording.recorded import recorded

SECOND_NS = 10**9
START_NS = 1_700_000_000 * SECOND_NS
CLASSES = {"high": 7, "low": -3}
RESTORED = 3
"""How often a scheduler is replaced by a restored one in a run."""

PolicyGroups = dict[str, tuple[str, Mapping[str, str]]]
Call = tuple[str, tuple[Any, ...], dict[str, Any]]
Said = list[tuple[str, list[Output]]]


class Moody(ResourceManagerCallback):
    """A resource manager with a predicate that depends on its mood, which is an input like others."""

    def __init__(self) -> None:
        self.mood = 0

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        """None: yes."""
        return None if allows(self.mood, args.allocation_key, args.node_id, allocate=args.allocate) else "not today"


def allows(mood: int, key: str, node: str, *, allocate: bool) -> bool:
    """The answer of the predicate: moods 1 and 2 refuse a third of all pairs, 2 and 3 refuse reservations."""
    number = sum(map(ord, key)) + sum(map(ord, node))
    if not allocate:
        return mood not in (2, 3)
    return mood not in (1, 2) or number % 3 != mood


class Scheduler:
    """One scheduler and its messages."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.said: Said = []
        self.settings = settings
        self.callback = Moody()
        self.groups: PolicyGroups = {}
        self.api = SchedulerAPI(
            policy_groups=self.groups, settings=settings, on_output=lambda rm_id, out: self.said.append((rm_id, out))
        )

    def restore(self) -> None:
        """Replace the scheduler by one that is restored from its checkpoint, and has the same one."""
        data = self.api.checkpoint()
        asked = [rm_id for rm_id, manager in self.api.cluster.managers.items() if manager.predicates is not None]
        self.api = SchedulerAPI(
            policy_groups=self.groups,
            settings=self.settings,
            on_output=lambda rm_id, out: self.said.append((rm_id, out)),
        )
        self.api.restore_checkpoint(data, dict.fromkeys(asked, self.callback))
        assert self.api.checkpoint() == data, "a restored scheduler has another state"

    def do(self, call: Call) -> tuple[object, Said]:
        """Make a call and return (result or refusal, messages)."""
        name, args, keywords = call
        self.said = []
        result: object
        try:
            if name == "mood":
                self.callback.mood = args[0]
                result = None
            elif name == "group":
                self.groups[args[0]] = (args[1], {})
                result = None
            else:
                if name == "register_resource_manager" and keywords.pop("moody"):
                    keywords["callback"] = self.callback
                result = getattr(self.api, name)(*args, **keywords)
        except (ConfigurationError, RegistrationError) as error:
            result = str(error)
        return result, self.said


class Driver:
    """The driver of the schedulers (see the module's docstring). `expected[rm, partition]` is the state expected of each partition."""

    def __init__(self, situations: Situations, *, alone: bool = False) -> None:
        """`alone`: without the second scheduler, to see what the other checks find."""
        self.situations = situations
        self.first = Scheduler({})
        self.events = EventBalances()  # of the first one alone: a listener changes no decision
        self.versions = Versions()
        self.first.api.cluster.recorder = self.events.record
        self.second = self.first if alone else Scheduler({"scheduler.parking": "false"})
        self.log: list[Call] = []
        self.digest = hashlib.sha256()
        self.now = START_NS
        self.expected: dict[tuple[str, str], ExpectedState] = {}
        self.queues: dict[tuple[str, str], dict[str, Any]] = {}
        self.moody: set[str] = set()
        self.mood = 0
        self.broken = False  # a step was begun, and not checked
        self.holding: set[tuple[str, str]] = set()  # where nodes were held for a gang before the last call of schedule
        self.quiet = False  # nothing has happened since the last call of schedule without limit

    # -- calls -----------------------------------------------------------------------------------------

    def call(self, name: str, *args: Any, **keywords: Any) -> tuple[Any, Said]:
        """Make the call on both, and compare."""
        self.broken = True
        call = (name, args, keywords)
        self.log.append((name, args, dict(keywords)))
        result, said = self.first.do((name, args, dict(keywords)))
        other_result, other_said = result, said
        if self.second is not self.first:
            other_result, other_said = self.second.do((name, args, dict(keywords)))
        assert said == other_said, f"invariant 14: with and without parking differ\n{said}\n{other_said}"
        assert _comparable(result) == _comparable(other_result), f"invariant 14: {result} and {other_result} of {call}"
        self.digest.update(repr((_comparable(result), _by_manager(said))).encode())
        return result, said

    def partition(self, rm_id: str, name: str) -> Any:
        """The product's partition."""
        return self.first.api.cluster.partition(rm_id, name)

    def whereabouts(self, rm_id: str, name: str) -> flights.Whereabouts:
        """The scheduler's data of asks in flight, by application and placeholder."""

        def find(app_id: str, place_id: str) -> tuple[str, str, str]:
            app = self.partition(rm_id, name).applications[app_id]
            real = app.gang.replacing[app.allocations[place_id]]
            return real.key, real.id, real.node.id

        return find

    def register(self, request: Any, *, moody: bool) -> Any:
        """Register a resource manager; everything that it had is forgotten."""
        kept = self.events.balances.pop(request.rm_id, None)
        result, said = self.call("register_resource_manager", request, moody=moody, now_ns=self.now)
        assert not said
        if isinstance(result, str) and kept is not None:
            self.events.balances[request.rm_id] = kept
        if not isinstance(result, str):
            self.forget(request.rm_id)
            if moody:
                self.moody.add(request.rm_id)
        self.quiet = False
        return result

    def forget(self, rm_id: str) -> None:
        """Drop the records of a resource manager."""
        self.moody.discard(rm_id)
        for key in [key for key in self.expected if key[0] == rm_id]:
            del self.expected[key], self.queues[key]

    def submit(self, rm_id: str, inputs: list[Any], send: Callable[[str, list[Any]], list[Call]] | None = None) -> None:
        """Submit messages, as internal ones or by `send` in a dialect, and record them."""
        calls = [("submit", (rm_id, inputs), {})] if send is None else send(rm_id, inputs)
        answers: list[Output] = []
        for name, args, keywords in calls:
            _, said = self.call(name, *args, **keywords)
            answers += _of(said, rm_id)
        for message in inputs:
            expected = self.expected.get((rm_id, message.partition))
            if expected is None:
                self._unknown(message, answers)
            else:
                expected.take(message, answers, self.now)
        self.hear(rm_id, answers)
        self.quiet = False

    def _unknown(self, message: Any, answers: list[Output]) -> None:
        """Send to an unknown partition: the message is refused where there is a refusal, and changes nothing."""
        if isinstance(message, messages.Allocation):
            assert any(isinstance(a, messages.RejectedAllocation) and a.key == message.key for a in answers)
        if isinstance(message, messages.AddApplication):
            app_id = message.application_id
            assert any(isinstance(a, messages.RejectedApplication) and a.application_id == app_id for a in answers)

    def hear(self, rm_id: str, said: list[Output]) -> None:
        """Enter the messages of a call that makes no decisions."""
        for output in said:
            expected = self._meant(rm_id, output)
            if expected is not None:
                expected.hear(output)
                self.situations.heard(output)

    def _meant(self, rm_id: str, output: Any) -> ExpectedState | None:
        """The records that an output is about: those of the partition that it names, or in which the application is."""
        name = getattr(output, "partition", "")
        if name:
            return self.expected.get((rm_id, name))
        app_id = getattr(output, "application_id", "")
        mine = [expected for (rm, _), expected in self.expected.items() if rm == rm_id]
        return next((expected for expected in mine if app_id in expected.apps or app_id in expected.gone), None)

    def advance(self, passed_ns: int) -> None:
        """Let time pass: every deadline until then takes effect, and no decision is made."""
        self.now += passed_ns
        rm_id = min(rm for rm, _ in self.expected)
        self.situations.before_time(self)
        _, said = self.call("submit", rm_id, [], now_ns=self.now)
        for rm, outputs in said:
            self.hear(rm, outputs)
            evicted.check(self, rm, outputs)
        self.situations.after_time(self)

    # -- decisions -------------------------------------------------------------------------------------

    def schedule(self, limit: int | None = None) -> int:
        """Decide; every decision is checked when it is entered, and what still waits afterwards too."""
        reserved = {key: self.reservations(*key) for key in self.expected}
        self.situations.before_schedule(self)
        self.holding = {key for key in self.expected if atomic.holds(self.partition(*key))}
        evicted_before = {key: len(self.partition(*key).evictions) for key in self.expected}
        made, said = self.call("schedule", now_ns=self.now, limit=limit)
        count = 0
        for rm_id, outputs in said:
            count += self._decided(rm_id, outputs, reserved)
        assert count == made, f"{made} allocations were said to be made, {count} were told"
        assert limit is None or count < limit + atomic.SIZE_MAX
        for key in self.expected:
            assert self.reservations(*key) == self.reservations(*key, scheduler=self.second), (
                "invariant 14: reservations"
            )
        for key, before in evicted_before.items():
            partition = self.partition(*key)
            new = list(partition.evictions)[before:]
            evictions.check(partition, new)
            self.situations.met["victims needed"] += evictions.needed(partition, new)
        if limit is None:
            self._work_conserved()
        self.quiet = limit is None
        self.situations.after_schedule(self, reserved)
        return count

    def reservations(self, rm_id: str, name: str, scheduler: Scheduler | None = None) -> dict[str, list[str]]:
        """The keys of the asks that reserve a node, by node."""
        partition = (scheduler or self.first).api.cluster.partition(rm_id, name)
        return {
            node.id: [ask.key for ask in node.reservations] for node in partition.nodes.values() if node.reservations
        }

    def _decided(self, rm_id: str, outputs: list[Output], reserved: dict[tuple[str, str], dict[str, list[str]]]) -> int:
        count = 0
        usages: dict[int, work.Usage] = {}
        for output in outputs:
            expected = self._meant(rm_id, output)
            assert expected is not None, f"said of nobody: {output}"
            if isinstance(output, messages.NewAllocation):
                count += 1
                key = (rm_id, output.partition)
                usage = usages.setdefault(id(expected), work.Usage(expected, self.partition(*key), self.queues[key]))
                if rm_id not in self.moody and not (reserved[key] or self.reservations(*key) or key in self.holding):
                    self._check_order(usage, output)
                expected_app = self._allocate(expected, output, usage, reserved[key])
                work.within_limits(usage, expected_app, pruned(output.resource))
            else:
                count += getattr(output, "termination", None) is Termination.PLACEHOLDER_REPLACED
                expected.hear(output)
            self.situations.heard(output)
        return count

    def _check_order(self, usage: work.Usage, output: messages.NewAllocation) -> None:
        app = usage.expected.apps[output.application_id]
        ask = app.asks.get(output.key)
        if ask is None or ask.required:
            return
        found = passed_over(usage, app, ask, self.now)
        assert found is None, f"invariant 13: {app.id}/{ask.key} before {found[0].id}/{found[1].key}"
        self.situations.count("order checked")

    def _allocate(
        self, expected: ExpectedState, output: messages.NewAllocation, usage: work.Usage, reserved: dict[str, list[str]]
    ) -> App:
        node = expected.nodes[output.node_id]
        app = expected.apps[output.application_id]
        ask = app.asks.get(output.key)
        assert ask is not None, f"invariant 7: {output.key} was not asked for"
        assert expected.has_room(ask, node), f"invariant 1: no room on {node.id} for {ask.key}"
        assert expected.meets(ask, node), f"{ask.key} may not run on {node.id}"
        assert node.schedulable or ask.required, f"{node.id} is not schedulable"
        assert not ask.required or ask.required == node.id, f"{ask.key} requires {ask.required}"
        assert app.queue == output.queue
        self.situations.allocated(app, ask, node, reserved)
        heard = expected.hear(output)
        assert heard is not None
        usage.allocated(app, pruned(output.resource))
        return heard

    def _work_conserved(self) -> None:
        for (rm_id, name), expected in self.expected.items():
            partition = self.partition(rm_id, name)
            for app in expected.apps.values():
                if app.independent:
                    app.state = str(partition.applications[app.id].state)  # this is never reported
            usage = work.Usage(expected, partition, self.queues[rm_id, name])
            for app in expected.apps.values():
                for ask in app.asks.values():
                    why = work.why_wait(usage, app, ask, self.predicate(rm_id), self.now)
                    assert why, f"invariant 12: {ask.key} of {app.id} could run, and waits"
                    self.situations.count(f"waits: {why}")

    def predicate(self, rm_id: str) -> Callable[..., bool]:
        """Answer a predicate as the resource manager would."""
        return partial(allows, self.mood if rm_id in self.moody else 0)

    # -- after each step -------------------------------------------------------------------------------

    def check(self) -> None:
        """Invariants 1 to 9 by the product's own `validate`, 6 and 7 by these records."""
        self.first.api.validate()
        for rm_id, manager in self.first.api.cluster.managers.items():
            self.events.check(rm_id, list(manager.partitions.values()))
            for partition in manager.partitions.values():
                self.versions.check(partition)
        for (rm_id, name), expected in self.expected.items():
            partition = self.partition(rm_id, name)
            expected.settled()
            for app_id, app in expected.apps.items():
                assert app_id in partition.applications, f"invariant 7: application {app_id} is lost"
                app.queue = partition.applications[app_id].queue.path
            compare(expected, partition)
            flights.check(expected, self.now)
            self.situations.met["placed elsewhere in flight"] += flights.any_apart(expected)
        self.situations.stepped()
        self.broken = False

    def replay(self) -> None:
        """Invariant 14: the same inputs, the same answers. Not asked after a failure, which it would hide."""
        if self.broken:
            return
        third = Scheduler({})
        digest = hashlib.sha256()
        alone = self.second is self.first  # with a planted fault, which others are to notice
        with nullcontext() if alone else recorded(third.api), patch.object(calls, "DELIVERY_BATCH", 2):
            for name, args, keywords in self.log:
                result, said = third.do((name, args, dict(keywords)))
                digest.update(repr((_comparable(result), _by_manager(said))).encode())
        assert digest.digest() == self.digest.digest(), "invariant 14: the same inputs gave other answers"
        self.second.api.validate()
        if not alone:
            self._replay_restored()

    def _replay_restored(self) -> None:
        """Check that checkpoints change nothing: the same inputs, the same answers."""
        fourth = Scheduler({})
        digest = hashlib.sha256()
        moments = Random(len(self.log)).choices(range(1, len(self.log)), k=RESTORED) if len(self.log) > 1 else []
        for at, (name, args, keywords) in enumerate(self.log):
            if at in moments:
                fourth.restore()
            result, said = fourth.do((name, args, dict(keywords)))
            digest.update(repr((_comparable(result), _by_manager(said))).encode())
        assert digest.digest() == self.digest.digest(), "a restored scheduler gave other answers"

    def confirmations(self, rm_id: str, name: str) -> list[messages.Release]:
        """The answers that the scheduler waits for."""
        return [
            messages.Release(
                partition=name,
                application_id=app.id,
                key="" if self.expected[rm_id, name].first_interface else alloc.key,
                uuid=alloc.id if self.expected[rm_id, name].first_interface else "",
                termination=Termination.PLACEHOLDER_REPLACED if alloc.id in app.flights else Termination.TIMEOUT,
                what="allocation" if self.expected[rm_id, name].first_interface else "both",
            )
            for app in self.expected[rm_id, name].apps.values()
            for alloc in app.allocs.values()
            if alloc.ending
        ]


def _comparable(result: object) -> object:
    return type(result).__name__ if isinstance(result, msgspec.Struct) else result


def _by_manager(said: Said) -> Said:
    """All outputs for each resource manager, in the order of their names."""
    outputs: dict[str, list[Output]] = {}
    for rm_id, some in said:
        outputs.setdefault(rm_id, []).extend(some)
    return sorted(outputs.items())


def _of(said: Said, rm_id: str) -> list[Output]:
    """All outputs for one resource manager; there must be none for others."""
    assert all(rm == rm_id for rm, _ in said), "another resource manager was told something"
    return [output for _, outputs in said for output in outputs]
