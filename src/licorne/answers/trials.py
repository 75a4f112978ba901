"""Whether an ask would be placed: tried on a copy of the scheduler, with everything else competing as it would.

On the copy the resource manager is played: it ends what the scheduler asks it to end, and creates each evicted allocation
again as an ask, as a controller would. Time goes on for as long as anything that was begun before may still have an
effect: back-off, the age at which an ask may reserve a node, the delay of preemption, the time after which an application
without work completes, the timeout of placeholders, and two more attempts at preemption. Running allocations do not end by
themselves, and no other asks, nodes or configurations come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from licorne.answers.applied import apply, parsed
from licorne.answers.asks import ChangeError, Wanted
from licorne.answers.budget import work_of
from licorne.answers.changes import Change, End
from licorne.answers.repairs import Order, Present, obstacles, repairs
from licorne.core.base.states import COMPLETING_TIMEOUT_NS, SECOND_NS, TIME_MAX_NS
from licorne.core.inspection.reported import asked_again
from licorne.core.partition import Partition
from licorne.core.preemption.guarantee_preemption import RETRY_NS
from licorne.core.preemption.planned_usage import can_preempt
from licorne.core.queues.ask import Ask
from licorne.si import messages
from licorne.state.copies import on_a_copy
from licorne.state.restored import Restored

STEP_NS: Final = SECOND_NS
"""Deadlines that are nearer to each other than this are handled at the same time."""
SLICE: Final = 100
"""After so many decisions it is looked at whether the ask is placed."""
WORK_UNBOUNDED: Final = 1 << 62
"""As many steps as a trial may make where nothing bounds them."""
LONGEST_NS: Final = 3600 * SECOND_NS
"""A trial ends after this much simulated time, whatever was begun."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a trial.

    `node` is where the ask runs at the end, empty if it does not: one that was placed may have been evicted since.
    `after_ns`: how long after the changes it was placed. `repairs`: what may be done about the reasons why it waits at the
    end, where that is wanted. `refused`: why the changes are not possible. `work`: how many steps were made
    (`licorne.answers.budget`). `cut`: more would have been made than the trial may, so it says nothing.
    """

    node: str = ""
    after_ns: int = 0
    repairs: tuple[Change, ...] = ()
    refused: str = ""
    work: int = 0
    cut: bool = False

    @property
    def placed(self) -> bool:
        """Whether the ask runs at the end."""
        return self.node != ""


class Home:
    """A restored scheduler at its time, `now_ns`: as it was then, or after `decide`.

    `owed` are the ends that it has asked for, and that the resource manager has not confirmed; `placed` are the asks that it
    has placed by `decide`, as (application, key).
    """

    def __init__(self, restored: Restored) -> None:
        self.restored = restored
        self.now_ns = restored.now_ns
        self.owed = [release for partition in restored.partitions for release in _owed(partition)]
        self.placed: set[tuple[str, str]] = set()
        for partition in restored.partitions:
            for app in partition.applications.values():
                if app.asks:  # as its first turn does: from then on it is known which limits are in its way
                    partition.limits.attach(app)

    def decide(self) -> Home:
        """Make the decisions that are possible at its time, and return this."""
        self.restored.outputs.handler = self._take
        self.restored.api.schedule(now_ns=self.now_ns)
        self.restored.outputs.handler = None
        return self

    def partition(self, name: str) -> Partition:
        """Return a partition by its short name."""
        return self.restored.api.cluster.partition(self.restored.rm_id, name)

    def _take(self, output: messages.Output) -> None:
        if isinstance(output, messages.Released):
            self.owed.append(output)
        elif isinstance(output, messages.NewAllocation):
            self.placed.add((output.application_id, output.key))


def _owed(partition: Partition) -> Iterator[messages.Released]:
    """Yield the ends that a scheduler has asked for, and that are not confirmed."""
    for app in partition.applications.values():
        replacing = {} if app.gang is None else app.gang.replacing
        for alloc in app.allocations.values():
            if alloc in replacing:
                termination = messages.Termination.PLACEHOLDER_REPLACED
            elif alloc.preempted:
                termination = messages.Termination.PREEMPTED_BY_SCHEDULER
            elif alloc.released:
                termination = messages.Termination.TIMEOUT
            else:
                continue
            yield messages.Released(application_id=app.id, key=alloc.key, termination=termination, uuid=alloc.id)


def horizon_ns(partition: Partition) -> int:
    """Return for how long something that was begun before may still have an effect."""
    delays = [COMPLETING_TIMEOUT_NS, partition.settings.reservation_age_ns if partition.settings.reservations else 0]
    for queue in partition.tree.queues():
        delays += (queue.settings.backoff_delay_ns if queue.settings.backoff else 0, queue.settings.preemption_delay_ns)
    for app in partition.applications.values():
        delays.append(app.backoff_until - partition.now)
        if app.gang is not None and app.gang.timer is not None:
            delays.append(app.gang.timer[0] - partition.now)
    return min(max(delays) + 2 * (RETRY_NS + STEP_NS), LONGEST_NS)


def is_steady(partition: Partition) -> bool:
    """Return whether nothing but a message gives room back: nobody may be evicted, and no placeholder waits or is replaced."""
    if partition.config.preemption_enabled and any(can_preempt(leaf) for leaf in partition.tree.queues()):
        return False
    return not partition.quotas.starts and not any(
        app.gang is not None or app.atomic is not None or any(ask.required for ask in app.asks.values())
        for app in partition.applications.values()
    )


class Trials:
    """Trials of changes by which one ask may be placed, with this object in the place of the resource manager.

    The scheduler of `home` must be a copy, because its time passes once, before any change; `first` is what becomes of the
    ask by that. If it still waits, `run` tries changes from there on: whatever was begun before, such as a back-off or the
    age at which an ask may reserve a node, has had its effect. `present`: all that was there at the beginning.
    """

    def __init__(self, home: Home, wanted: Wanted) -> None:
        self.partition = home.partition(wanted.partition)
        allocations = [key for app in self.partition.applications.values() for key in app.allocations]
        self.present = Present(frozenset(self.partition.nodes), frozenset(allocations))
        parsed(home.restored.config)  # once, and not on each copy
        self.home = home.decide()
        self.wanted = wanted  # or the ask with which it was created again
        self.answers: list[messages.Input] = []
        self.evicted = 0
        self.steady = False  # nothing gives room back, so an ask that is placed stays so
        self.decisions = 0
        self.work_before = 0
        self.work_max = WORK_UNBOUNDED
        self.served = ""  # the node on which the ask, a placeholder, was replaced by an ask of its task group
        self._look_for_nobody()
        for output in home.owed:
            self._take(output)
        home.restored.outputs.handler = self._take
        self.first = self._wait()
        self.steady = is_steady(self.partition)

    def run(self, changes: Sequence[Change], order: Order, *, work_max: int) -> Outcome:
        """Return what becomes of the ask if the changes are made then; nothing here changes.

        `order`: with repairs, of each reason the first of these kinds. `work_max`: the trial is cut short after so many steps.

        Raises:
            CopyError: the trial could not be made.
        """
        return on_a_copy(lambda: self._change(changes, order, work_max), Outcome)

    @property
    def work(self) -> int:
        """The steps that were made since the changes."""
        return work_of(self.partition, self.decisions) - self.work_before

    def _change(self, changes: Sequence[Change], order: Order, work_max: int) -> Outcome:
        """Make the changes, and wait."""
        self.decisions, self.work_max = 0, work_max
        self.work_before = work_of(self.partition, 0)
        try:
            self.wanted = apply(self.home.restored, self.wanted, changes, self.home.now_ns)
        except ChangeError as error:
            return Outcome(refused=str(error))
        self._look_for_nobody()  # a new configuration brings the settings back
        outcome = self._wait()
        if outcome.placed or outcome.cut:
            return outcome
        ended = sum(len(change.allocations) for change in changes if isinstance(change, End))
        return replace(outcome, repairs=self.repairs(order, rooms=max(1, 7 * ended)))

    def _look_for_nobody(self) -> None:
        """Switch the hints for autoscalers off, for which all pending asks are looked at after each second."""
        for partition in self.home.restored.partitions:
            partition.settings = replace(partition.settings, outstanding_inspection=False)

    def _wait(self) -> Outcome:
        """Let time pass until nothing more that was begun can have an effect; only then it counts where the ask is."""
        api, start = self.home.restored.api, self.home.now_ns
        latest = start + horizon_ns(self.partition)
        node, placed_ns = "", 0
        while True:
            self._settle()
            if self.work > self.work_max:
                return Outcome(work=self.work, cut=True)
            now = self._node()
            if now != node:
                node, placed_ns = now, self.home.now_ns - start
            due = api.next_deadline_ns()
            end = min(latest, self._ends_ns())
            if self.home.now_ns >= end or due is None or (node and self.steady):
                break
            self.home.now_ns = min(max(due, self.home.now_ns + STEP_NS), end)
        if node:
            return Outcome(node, placed_ns, work=self.work)
        if self.ask is None:
            return Outcome(refused="the application or the ask ends before it is placed", work=self.work)
        return Outcome(work=self.work)

    def repairs(self, order: Order, rooms: int = 1) -> tuple[Change, ...]:
        """Return what may be done now about the reasons why the ask waits, and why those wait for which it waits.

        All nodes are looked at for that, so it is not done where `order` is empty.
        """
        ask = self.ask
        found = obstacles(self.partition, ask) if order and ask is not None else ()
        made = (repairs(self.partition, self.present, obstacle, order, rooms) for obstacle in found)
        return tuple(chain.from_iterable(made))

    def _ends_ns(self) -> int:
        """Return until when the ask is looked at: with the timeout of its gang's placeholders it ends, unplaced or as one of them."""
        each = self.ask or self._placed
        gang = None if each is None else each.app.gang
        if each is None or gang is None or gang.timer is None:
            return TIME_MAX_NS
        ends = each.placeholder or (gang.hard and self.ask is not None)
        return int(gang.timer[0]) - 1 if ends else TIME_MAX_NS

    def _settle(self) -> None:
        """Decide, and confirm what is to end, until neither does anything."""
        api, rm_id, now = self.home.restored.api, self.home.restored.rm_id, self.home.now_ns
        made = api.schedule(now_ns=now, limit=SLICE)
        self.decisions += made
        while (made or self.answers) and not (self.steady and self._node()) and self.work <= self.work_max:
            answers, self.answers = self.answers, []
            api.submit(rm_id, answers, now_ns=now)
            made = api.schedule(now_ns=now, limit=SLICE)
            self.decisions += made

    @property
    def ask(self) -> Ask | None:
        """The ask while it waits."""
        app = self.partition.applications.get(self.wanted.application)
        return None if app is None else app.asks.get(self.wanted.key)

    @property
    def _placed(self) -> Ask | None:
        app = self.partition.applications.get(self.wanted.application)
        return None if app is None else app.allocations.get(self.wanted.key)

    def _node(self) -> str:
        placed = self._placed
        return self.served or ("" if placed is None or placed.node is None else placed.node.id)

    def _take(self, output: messages.Output) -> None:
        if not isinstance(output, messages.Released) or output.termination not in messages.CONFIRMED:
            return
        if output.termination is messages.Termination.PLACEHOLDER_REPLACED and self._is_wanted(output):
            self.served = self._node()
        created = None
        if output.termination is messages.Termination.PREEMPTED_BY_SCHEDULER:
            created = self._again(output)
        self.answers.append(
            messages.Release(
                partition=self.partition.name,
                application_id=output.application_id,
                key=output.key,
                termination=output.termination,
            )
        )
        if created is not None:
            self.answers.append(created)

    def _is_wanted(self, output: messages.Released) -> bool:
        return (output.application_id, output.key) == (self.wanted.application, self.wanted.key)

    def _again(self, output: messages.Released) -> messages.Allocation | None:
        """Return the ask with which a controller creates an evicted allocation again."""
        app = self.partition.applications.get(output.application_id)
        alloc = None if app is None else app.allocations.get(output.key)
        if app is None or alloc is None or alloc.placeholder:
            return None
        self.evicted += 1
        key = f"{alloc.key}~{self.evicted}"
        if self._is_wanted(output):
            self.wanted = replace(self.wanted, key=key)
        return asked_again(self.partition, alloc, key=key, placeholder=False, max_allocations=1)
