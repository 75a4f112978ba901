"""Claims: what is kept for an ask for which others were evicted, until it is placed or gives up (docs/preemption.md).

Victims go so that one ask may run. From the eviction on that ask has a *claim*: the node that it has reserved, and its
amounts under every quota and limit on its way. Everything here counts what is *planned*: what is used, less what victims
give back, plus what is claimed. An ask is placed only if it fits now, and beside the claims when the victims have gone.

A claim holds against all asks but those of higher order, which are of a higher priority than everything that was
pending at the eviction, as the lowest queue above both sees it. So nothing that was there can undo what was done for
the ask; what comes later can. A claim that does not fit its node, its quotas and its limits any more *gives up*: its reservation
is gone too, the reason is noted in the records of its evictions, and its ask may preempt again.

A claim lives and ends with its reservation (`licorne.core.scheduling.reservations`). Where a claim may have become too large is
where something is used that no claim was asked about: `review` is called there, at once, so that the cause is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from licorne.core.amounts.vectors import Vec
from licorne.core.constants import PRIORITY_HIGHEST, PRIORITY_LOWEST
from licorne.core.queues.usage import Tracker

from .evictions import Outcome

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .evictions import Eviction

    Level: TypeAlias = Queue | Tracker
    """What limits amounts: a queue, or a user or group at a queue."""

NOTHING = Vec()
GAVE_UP = frozenset(Outcome) - {Outcome.WAITING, Outcome.PLACED, Outcome.ENDED}


class Claim:
    """What one ask claims, and where. `number` counts claims, `at_ns` is the time of the eviction.

    `top_priorities`: for its leaf and the queues above, the highest priority that was pending there at the eviction.
    """

    def __init__(self, ask: Ask, number: int, at_ns: int, victims: list[Ask], records: list[Eviction]) -> None:
        self.ask = ask
        self.number = number
        self.at_ns = at_ns
        self.victims = victims
        self.records = records
        self.top_priorities: dict[Queue, int] = {queue: queue.bag.top for queue in ask.app.queue.lineage()}
        self.amounts: Vec = ask.shape.amounts
        self.levels: dict[Level, None] = _levels(ask.app)

    @property
    def node(self) -> Node:
        """The node that is reserved for the ask."""
        node: Node | None = self.ask.reserved
        assert node is not None, f"{self.ask.key}: claims without a reservation"
        return node

    def going(self) -> bool:
        """Has one of its victims not ended yet?"""
        return any(victim.app.allocations.get(victim.id) is victim for victim in self.victims)


class Claims:
    """The claims of one partition, by ask, oldest first. `generation` rises with whatever happens to them."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.by_ask: dict[Ask, Claim] = {}
        self.generation = 0
        self._sums: dict[Level, Vec] = {}
        self._least: dict[Queue, int] = {}  # the lowest of `Claim.top_priorities` there, or a bound below it
        partition.descent.claims = self.by_ask

    # -- the life of a claim ---------------------------------------------------------------------------

    def add(self, ask: Ask, victims: list[Ask], records: list[Eviction]) -> None:
        """Victims go for the ask, which has its reservation.

        Its application counts among those of its user and group from now on, as it holds a slot in its queues: no other
        application takes its place meanwhile.
        """
        self.generation += 1
        ask.triggered = True
        claim = self.by_ask[ask] = Claim(ask, self.generation, self._partition.now, victims, records)
        self._count(claim)
        for tracker in ask.app.trackers:
            tracker.apps[ask.app] = None
        self._partition.reservations.last_anew(ask)

    def close(self, ask: Ask, outcome: Outcome) -> None:
        """The reservation of the ask is gone."""
        partition = self._partition
        claim = self.by_ask.pop(ask)
        self.generation += 1
        for level in claim.levels:
            self._sums[level].minus(claim.amounts)
        if not self.by_ask:
            self._sums.clear()
            self._least.clear()
        for record in claim.records:
            record.outcome = outcome
        if outcome in GAVE_UP:
            ask.triggered = False
            partition.guaranteed.retry_after_giving_up(ask, claim.at_ns, outcome)
        partition.parking.wake_blocked(partition.parking.waiting_for_claims)

    def changed(self, ask: Ask) -> None:
        """The ask wants something else: its claim goes on if it fits beside all others."""
        claim = self.by_ask.get(ask)
        if claim is None:
            return
        self._count_anew()
        others = [other for other in self.by_ask.values() if other is not claim]
        if not self._fits(claim, others):
            self._give_up(claim, Outcome.CHANGED)

    def configured(self) -> None:
        """Quotas, limits, groups or priorities may be others."""
        if self.by_ask:
            self._count_anew()
            self.review(Outcome.CONFIGURATION)

    def review(self, cause: Outcome) -> None:
        """Something was used, or taken away, whatever is claimed: where claims do not fit any more the newest give up."""
        if self.by_ask:
            self._review(list(self.by_ask.values()), cause, None)

    def placed(self, by: Ask) -> None:
        """A decision was made for this ask: claims that its order allows it to ignore may have to give up."""
        yielding = self._yielding(by.app, by.priority)
        if yielding:
            self._review(yielding, Outcome.HIGHER_ORDER, by)

    def _review(self, claims: list[Claim], cause: Outcome, by: Ask | None) -> None:
        self._partition.settle_size()
        known: dict[Level | Node, bool] = {}  # whether all that is claimed there fits
        for claim in claims:
            if self._fits_with_all(claim, known):
                continue
            others = [other for other in self.by_ask.values() if other is not claim]
            first = [o for o in others if self._precedes(o, claim) or (by is not None and o not in claims)]
            if not self._fits(claim, first):
                displaced = by is not None and by.required and by.node is claim.ask.reserved
                self._give_up(claim, Outcome.REQUIRED_NODE if displaced else cause)
                known.clear()

    def _give_up(self, claim: Claim, outcome: Outcome) -> None:
        self._partition.reservations.cancel(claim.ask, outcome)
        self._partition.parking.retry(claim.ask)

    # -- order -----------------------------------------------------------------------------------------

    def _yielding(self, app: Application, priority: int) -> list[Claim]:
        """The claims that an ask of this priority is of higher order than."""
        seen = priority
        queue: Queue | None = app.queue
        while queue is not None:
            if seen > self._least.get(queue, PRIORITY_HIGHEST):
                return [claim for claim in self.by_ask.values() if _outranks(app.queue, priority, claim)]
            seen = _exported(queue, seen)
            queue = queue.parent
        return []

    def _precedes(self, one: Claim, other: Claim) -> bool:
        """Does the first of two claims stay where both do not fit? The older one, unless the newer is of higher order."""
        if one.number < other.number:
            return not _outranks(other.ask.app.queue, other.ask.priority, one)
        return _outranks(one.ask.app.queue, one.ask.priority, other)

    # -- what is claimed -------------------------------------------------------------------------------

    def claimed(self, queue: Queue) -> Vec:
        """What asks below the queue claim together."""
        return self._sums.get(queue, NOTHING)

    def levels(self, app: Application, priority: int) -> Iterator[tuple[Level, Vec, Vec]]:
        """What is limited and claimed on the way of an ask: its limit, and what is planned that holds against the ask."""
        yielding = self._yielding(app, priority)
        for level in _levels(app):
            claimed = self._sums.get(level)
            if claimed is None or level.limit is None:
                continue
            planned = self._planned(level)
            planned.plus(claimed)
            for claim in yielding:
                if level in claim.levels:
                    planned.minus(claim.amounts)
            yield level, level.limit, planned

    def short_of(self, app: Application, asks: list[Ask], total: Vec) -> list[Level]:
        """Where claims leave less than this to asks that are to be placed together."""
        if not self.by_ask:
            return []
        lowest = min(ask.priority for ask in asks)
        return [level for level, limit, planned in self.levels(app, lowest) if limit.binds(planned, total)]

    def fits_user(self, app: Application, amounts: Vec) -> bool:
        """Do the limits of user and group leave room beside all that is claimed, so that an ask may preempt?"""
        for tracker in app.trackers:
            claimed = self._sums.get(tracker)
            if tracker.limit is not None and claimed is not None:
                planned = self._planned(tracker)
                planned.plus(claimed)
                if tracker.limit.binds(planned, amounts):
                    return False
        return True

    def fits_node(self, ask: Ask, node: Node) -> bool:
        """Is there room on the node beside what is claimed there by other asks that require it?"""
        if ask in self.by_ask or not node.reservations:
            return True
        claims = [claim for other in node.reservations if (claim := self.by_ask.get(other)) is not None]
        rivals = [claim for claim in claims if not _outranks(ask.app.queue, ask.priority, claim)]
        return self._room(node, rivals).covers(ask.shape.amounts)

    def wait_for_claims(self, app: Application) -> None:
        """The application waits for what others claim, and for whatever is given back where they do."""
        self._partition.parking.waiting_for_claims[app] = None
        for level in _levels(app):
            if level in self._sums:
                level.blocked[app] = None

    def _count(self, claim: Claim) -> None:
        for level in claim.levels:
            if level not in self._sums:
                self._sums[level] = Vec()
            self._sums[level].plus(claim.amounts)
        for queue, top in claim.top_priorities.items():
            self._least[queue] = min(top, self._least.get(queue, PRIORITY_HIGHEST))

    def _count_anew(self) -> None:
        self.generation += 1
        self._sums.clear()
        for claim in self.by_ask.values():
            claim.amounts = claim.ask.shape.amounts
            claim.levels = _levels(claim.ask.app)
            self._count(claim)
        self._partition.parking.wake_blocked(self._partition.parking.waiting_for_claims)

    def _planned(self, level: Level) -> Vec:
        """What will be used there when the victims have gone, without claims."""
        planned: Vec
        if isinstance(level, Tracker):
            planned = level.used.clone()
            for victim in self._partition.accounting.victims:
                if level in victim.app.trackers:
                    planned.minus(victim.shape.amounts)
            return planned
        planned = level.allocated.clone()
        planned.minus(level.preempting)
        return planned

    def _room(self, node: Node, rivals: Iterable[Claim]) -> Vec:
        """What will be free on the node when the victims have gone and these have come."""
        room: Vec = node.free.clone()
        for alloc in node.allocations:
            if alloc.preempted:
                room.plus(alloc.shape.amounts)
        for claim in rivals:
            if claim.ask.reserved is node:
                room.minus(claim.amounts)
        return room

    def _fits(self, claim: Claim, rivals: list[Claim]) -> bool:
        """Will there be room for the ask, beside these, when the victims have gone?"""
        if not _suits(claim) or not self._room(claim.node, rivals).covers(claim.amounts):
            return False
        for level in claim.levels:
            if level.limit is None:
                continue
            planned = self._planned(level)
            for rival in rivals:
                if level in rival.levels:
                    planned.plus(rival.amounts)
            if level.limit.binds(planned, claim.amounts):
                return False
        return True

    def _fits_with_all(self, claim: Claim, known: dict[Level | Node, bool]) -> bool:
        """Do all claims fit everywhere where this one counts? `known` are the answers so far."""
        node = claim.node
        if node not in known:
            claims = [there for ask in node.reservations if (there := self.by_ask.get(ask)) is not None]
            total = Vec()
            for each in claims:
                total.plus(each.amounts)
            known[node] = self._room(node, ()).covers(total)
        for level in claim.levels:
            if level not in known:
                known[level] = level.limit is None or not level.limit.binds(self._planned(level), self._sums[level])
        return _suits(claim) and known[node] and all(known[level] for level in claim.levels)

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Prove that all claims fit together, and that each has a reservation that ends; raises AssertionError."""
        known: dict[Level | Node, bool] = {}
        sums: dict[Level, Vec] = {}
        for ask, claim in self.by_ask.items():
            assert ask.triggered and ask.is_pending, f"invariant 11: {ask.key} claims, and is not pending"
            assert ask.reserved is not None, f"invariant 11: {ask.key} claims, and has no reservation"
            assert claim.amounts.same(ask.shape.amounts), f"invariant 11: what {ask.key} claims"
            assert list(claim.levels) == list(_levels(ask.app)), f"invariant 11: where {ask.key} claims"
            assert self._fits_with_all(claim, known), f"invariant 11: {ask.key} claims what it cannot have"
            assert self._partition.reservations.ends(ask), f"invariant 9: the claim of {ask.key} never ends"
            for level in claim.levels:
                sums.setdefault(level, Vec()).plus(claim.amounts)
        for level, total in self._sums.items():
            assert total.same(sums.get(level, NOTHING)), "invariant 11: the sum of what is claimed"
        assert all(level in self._sums for level in sums), "invariant 11: the sum of what is claimed"


def _levels(app: Application) -> dict[Level, None]:
    return dict.fromkeys([*app.queue.lineage(), *app.trackers])


def _suits(claim: Claim) -> bool:
    """May the ask run on its node at all?"""
    node = claim.node
    return bool(node.schedulable or claim.ask.required) and bool(claim.ask.shape.need.matches(node))


def _exported(queue: Queue, priority: int) -> int:
    """How the queue shows this priority to its parent (`Queue.exported`)."""
    return queue.offset if queue.fence else max(PRIORITY_LOWEST, min(PRIORITY_HIGHEST, priority + queue.offset))


def _outranks(leaf: Queue, priority: int, claim: Claim) -> bool:
    """Is the priority, of an ask in this leaf, above the claim in the lowest queue that both are below?"""
    queue: Queue | None = leaf
    while queue is not None:
        if queue in claim.top_priorities:
            return priority > claim.top_priorities[queue]
        priority = _exported(queue, priority)
        queue = queue.parent
    return False
