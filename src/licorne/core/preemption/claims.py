"""Claims: what is reserved for an ask while its victims end, until it is placed or gives up (docs/understand/preemption.md).

Victims are evicted so that one ask may run. From the eviction on that ask has a *claim* to the node that it has
reserved, and to its amounts under every quota and limit that applies to it. Without claims other asks would take the
room as it is freed. Comparisons use the *planned* usage: what is used, less what victims give back, plus what is
claimed. An ask is placed only if it fits now, and if it also fits beside the claims when the victims have ended.

A claim holds against all asks but those of higher order: asks of a higher priority than everything that was pending at
the eviction, as the lowest common queue sees it. So no ask that was pending then can undo the eviction; a more
important one that comes later can. A claim that no longer fits its node, its quotas and its limits *gives up*: its
reservation is cancelled too, the reason is noted in the records of its evictions, and its ask may preempt again.

A claim begins and ends with its reservation (`licorne.core.scheduling.reservations`). Claims may become too large when
something is used without a look at them, or taken away: `review` is called there, at once, so that the cause is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from licorne.core.amounts.vectors import Vec
from licorne.core.constants import IS_NEAR, PRIORITY_HIGHEST, PRIORITY_LOWEST
from licorne.core.queues.usage import Tracker

from .evictions import Outcome
from .kept_off import KeptOff
from .verdicts import claims_devices, lift, verdict_of

if TYPE_CHECKING:
    from licorne.core.nodes.domains import DomainCheck
    from licorne.core.nodes.node import Need, Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .evictions import Eviction

    Level: TypeAlias = Queue | Tracker
    """What limits amounts: a queue, or a user or group at a queue."""

NOTHING = Vec()
KNOWN_MAX = 1_000
"""For how many kinds of asks it is remembered where claims keep them off."""
GAVE_UP = frozenset(Outcome) - {Outcome.WAITING, Outcome.PLACED, Outcome.ENDED}


class Claim:
    """What one ask claims: `amounts`, on its node and at each of `levels`.

    `number` is larger for newer claims, `at_ns` is the time of the eviction. `top_priorities` is, for the ask's leaf
    and the queues above it, the highest priority that was pending there at the eviction. `records` are those of the
    evictions of `victims`.
    """

    def __init__(self, ask: Ask, number: int, at_ns: int, victims: list[Ask], records: list[Eviction]) -> None:
        self.ask: Ask = ask
        self.number: int = number
        self.at_ns: int = at_ns
        self.victims: list[Ask] = victims
        self.records: list[Eviction] = records
        self.top_priorities: dict[Queue, int] = {queue: queue.bag.top for queue in ask.app.queue.lineage()}
        self.amounts: Vec = ask.shape.amounts
        self.levels: dict[Level, None] = _levels(ask.app)

    @property
    def node(self) -> Node:
        """The node that the ask has reserved."""
        node: Node | None = self.ask.reserved
        assert node is not None, f"{self.ask.key}: claims without a reservation"
        return node

    def going(self) -> bool:
        """Is one of the claim's victims still to end, or another one on its node?"""
        found = (*self.victims, *self.node.allocations)
        return any(alloc.preempted and alloc.app.allocations.get(alloc.id) is alloc for alloc in found)


class Claims:
    """The claims of one partition, by ask, oldest first. `generation` rises with each change of any claim.

    `tried`: asks with claims that a trial has put on nodes; there the topology counts their pods already.
    """

    TRANSIENT = ("tried", "_known", "_known_at")  # of trials, which end within a call; a cache

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self.by_ask: dict[Ask, Claim] = {}
        self.generation: int = 0
        self.tried: dict[Ask, None] = {}
        self._known: dict[object, KeptOff] = {}
        self._known_at: tuple[int, int] = (-1, -1)  # the generation of claims, and the changes of counts, then
        self._sums: dict[Level, Vec] = {}
        self._least: dict[Queue, int] = {}  # the lowest of `Claim.top_priorities` at a queue, or a bound below it
        partition.descent.claims = self.by_ask

    # -- the life of a claim ---------------------------------------------------------------------------

    def add(self, ask: Ask, victims: list[Ask], records: list[Eviction]) -> None:
        """Give the ask its claim, after victims were evicted for it and it has its reservation.

        From now on its application counts among those of its user and group, as it already holds a slot in its queues:
        no other application takes that slot while the victims end.
        """
        self.generation += 1
        ask.triggered = True
        claim = self.by_ask[ask] = Claim(ask, self.generation, self._partition.now, victims, records)
        self._count(claim)
        for tracker in ask.app.trackers:
            tracker.apps[ask.app] = None
        self._partition.reservations.last_anew(ask)

    def close(self, ask: Ask, outcome: Outcome) -> None:
        """End the claim of an ask, whose reservation is gone; `outcome` goes to the records of its evictions."""
        partition = self._partition
        claim = self.by_ask.pop(ask)
        self.generation += 1
        for level in claim.levels:
            self._sums[level].minus(claim.amounts)
        if not self.by_ask:
            self._known.clear()
            self._sums.clear()
            self._least.clear()
        for record in claim.records:
            record.outcome = outcome
        if outcome in GAVE_UP:
            ask.triggered = False
            partition.guarantee_preemption.retry_after_giving_up(ask, claim.at_ns, outcome)
        elif ask.repeats > 1:  # one of it is placed, and the next one may preempt too
            ask.triggered = False
            partition.guarantee_preemption.look_again(ask)
        partition.wakeups.claims_changed(None)
        if ask.app.atomic is not None and outcome is not Outcome.GANG:  # the gang starts as a whole
            for other in list(ask.app.reservations.values()):
                partition.reservations.cancel(other, Outcome.GANG)

    def changed(self, ask: Ask) -> None:
        """Adjust the claim of an ask whose amounts have changed; it gives up if it does not fit beside all others."""
        claim = self.by_ask.get(ask)
        if claim is None:
            return
        self._count_anew()
        others = [other for other in self.by_ask.values() if other is not claim]
        if not self._fits(claim, others):
            self._give_up(claim, Outcome.CHANGED)

    def configured(self) -> None:
        """Recount and review all claims, after quotas, limits, groups or priorities may have changed."""
        if self.by_ask:
            self._count_anew()
            self.review(Outcome.CONFIGURATION)

    def review(self, cause: Outcome) -> None:
        """Let claims that no longer fit give up, the newest first.

        Called when something was used, or taken away, without a look at the claims; `cause` is the outcome to record.
        """
        if self.by_ask:
            self._review(list(self.by_ask.values()), cause, None)

    def placed(self, by: Ask) -> None:
        """Review the claims that this ask could ignore by its higher order, after it was placed or has preempted."""
        yielding = self.yielding(by.app, by.priority)
        if yielding:
            self._review(yielding, Outcome.HIGHER_ORDER, by)

    def _review(self, claims: list[Claim], cause: Outcome, by: Ask | None) -> None:
        self._partition.settle_size()
        known: dict[Level | Node, bool] = {}  # whether all that is claimed there fits
        for claim in claims:
            if claim.ask not in self.by_ask:
                continue  # it has ended with another claim of its gang
            # The cheap test first: if all claims fit together, this one stays.
            if self._fits_with_all(claim, known):
                continue
            others = [other for other in self.by_ask.values() if other is not claim]
            # Claims that stay whatever happens to this one: those that precede it, and those that hold against `by`.
            first = [o for o in others if self._precedes(o, claim) or (by is not None and o not in claims)]
            if not self._fits(claim, first):
                displaced = by is not None and by.required and by.node is claim.ask.reserved
                self._give_up(claim, Outcome.REQUIRED_NODE if displaced else cause)
                known.clear()

    def _give_up(self, claim: Claim, outcome: Outcome) -> None:
        self._partition.reservations.cancel(claim.ask, outcome)
        self._partition.wakeups.reservation_lost(claim.ask)

    # -- order -----------------------------------------------------------------------------------------

    def yielding(self, app: Application, priority: int) -> list[Claim]:
        """The claims that do not hold against an ask of this priority, as it is of higher order."""
        seen = priority
        queue: Queue | None = app.queue
        while queue is not None:
            if seen > self._least.get(queue, PRIORITY_HIGHEST):
                return [claim for claim in self.by_ask.values() if _outranks(app.queue, priority, claim)]
            seen = _exported(queue, seen)
            queue = queue.parent
        return []

    def _precedes(self, one: Claim, other: Claim) -> bool:
        """Does `one` stay if both claims do not fit? The older claim stays, unless the newer one is of higher order."""
        if one.number < other.number:
            return not _outranks(other.ask.app.queue, other.ask.priority, one)
        return _outranks(one.ask.app.queue, one.ask.priority, other)

    # -- claimed amounts -------------------------------------------------------------------------------

    def claimed(self, queue: Queue) -> Vec:
        """The sum of the claims of all asks below the queue. It must not be changed."""
        return self._sums.get(queue, NOTHING)

    def on(self, node: Node) -> list[Claim]:
        """The claims to room on a node."""
        return [claim for ask in node.reservations if (claim := self.by_ask.get(ask)) is not None]

    def levels(self, app: Application, priority: int) -> Iterator[tuple[Level, Vec, Vec]]:
        """Each level with a limit that applies to an ask of this application, and has claims that hold against its priority.

        With the level come its limit, and the planned usage with these claims.
        """
        yielding = self.yielding(app, priority)
        for level in _levels(app):
            claimed = self._sums.get(level)
            if claimed is None or level.limit is None:
                continue
            held = claimed.clone()
            for claim in yielding:
                if level in claim.levels:
                    held.minus(claim.amounts)
            if not held.zero():
                held.plus(self._planned(level))
                yield level, level.limit, held

    def short_of(self, app: Application, asks: list[Ask], total: Vec) -> list[Level]:
        """The levels at which claims leave less than `total` to asks that are to be placed together.

        The root queue is left out: its limit is the size of the cluster, and what is claimed there is claimed on nodes.
        """
        if not self.by_ask:
            return []
        lowest, root = min(ask.priority for ask in asks), self._partition.tree.root
        found = self.levels(app, lowest)
        return [level for level, limit, planned in found if level is not root and limit.binds(planned, total)]

    def fits_user(self, app: Application, amounts: Vec) -> bool:
        """Do the limits of user and group leave room to preempt for these amounts, beside all claims of any order?"""
        for tracker in app.trackers:
            claimed = self._sums.get(tracker)
            if tracker.limit is not None and claimed is not None:
                planned = self._planned(tracker)
                planned.plus(claimed)
                if tracker.limit.binds(planned, amounts):
                    return False
        return True

    def fits_node(self, ask: Ask, node: Node) -> bool:
        """Is there room for the ask on the node beside the claims of other asks that have reserved it?

        An ask with a claim shares the node with others only if there is room for all of them.
        """
        if ask in self.by_ask or not node.reservations:
            return True
        rivals = [claim for claim in self.on(node) if not _outranks(ask.app.queue, ask.priority, claim)]
        if any(claim.ask.shape.need.excludes(ask.shape.need) for claim in rivals):
            return False
        return self._room(node, rivals).covers(ask.shape.amounts)

    def spare_domains(
        self,
        ask: Ask,
        node: Node,
        victims: Sequence[Ask] = (),
        *,
        leaving: Sequence[Ask] = (),
        more: Sequence[tuple[Ask, Node]] = (),
        without: Iterable[Ask] = (),
    ) -> bool:
        """Do terms of pods still let each ask with a claim onto its node if this one runs here, and all victims have ended?

        `victims` are those of the ask; `leaving` and `more` are victims and places of asks that are planned with it, which
        must not be shut out either. Claims of lower order, and those of the same gang, do not count; nor do asks that would
        be kept off all the same, with the claim that this one may have used. `without`: asks whose claims are not used.
        Each must fit beside all others, but members of a gang without placeholders, which are placed in their order. Where
        victims end, it must also fit beside those before it alone: so no two asks wait until the other one has been placed.
        """
        gone = [*victims, ask] if ask.triggered else victims
        apart = dict.fromkeys(one for one in (*self._rivals(ask), *more) if _may_shut(*one, ask, node, gone))
        if not apart:
            return True
        claiming = [(claim.ask, claim.node) for claim in self.by_ask.values()]
        in_turn = [one for one in (*claiming, *more) if one[0] is not ask and one[0] not in without] if victims else []
        needs = [other.shape.need for other, _ in apart]
        members = {*more} if ask.app.atomic is not None else ()
        beside = [one for one in apart if one not in members]

        def shut_out(gone: Iterable[Ask], come: Iterable[tuple[Ask, Node]], unused: Iterable[Ask]) -> set[Ask]:
            with self.as_planned(*needs, leaving=gone, more=come, without=unused):
                found = {other for other, at in beside if self._is_shut(other, at)}
            with self.as_planned(*needs, leaving=gone, without=self.by_ask), ExitStack() as placed:
                for other, at in in_turn:
                    if (other, at) in apart and other.shape.need.mismatch_of_pods(at):
                        found.add(other)
                    placed.enter_context(self._counting([(at, other, 1)]))
            return found

        shut = shut_out((*leaving, *victims), (*more, (ask, node)), (ask, *without))
        return not shut or shut <= shut_out(leaving, more, without)

    def _is_shut(self, ask: Ask, node: Node) -> bool:
        """Return whether terms of pods shut a node to an ask that is counted there."""
        with self._before(ask, node):
            return bool(ask.shape.need.mismatch_of_pods(node))

    def _before(self, ask: Ask, node: Node) -> AbstractContextManager[None]:
        """Let the topology count neither an ask that is counted on a node, nor what is placed after it: others of its gang."""
        gone: list[tuple[Node | None, Ask, int]] = [(node, ask, -1)]
        if ask.app.atomic is not None:
            claims = [self.by_ask[one] for one in ask.app.reservations.values()]
            gone += [(one.node, one.ask, -1) for one in claims if one.number > self.by_ask[ask].number]
        return self._counting(gone)

    def keep_off(self, ask: Ask, node: Node) -> bool:
        """Return whether `spare_domains` refuses a node to an ask without victims: computed once for all asks that count alike."""
        key = self._kind(ask, at_home=ask in self.by_ask and node is ask.reserved)
        if key not in self._known:
            asks, pods = self.by_ask, ask.shape.need.pods
            gone = (ask,) if ask.triggered else ()
            if ask not in asks and not any(_may_shut(c.ask, c.node, ask, node, gone) for c in asks.values()):
                if not any(check.is_about(pods) for other in asks for check in other.shape.need.checks or ()):
                    self._known[key] = KeptOff()
                return False
            self._known[key] = self._find_kept_off(ask, at_home=key[0])
            self._known_at = self.generation, self._partition.needs.topology.changes  # the counts are as they were
        kept = self._known[key]
        return kept.stays or kept.at(node.slot)

    def keep_off_all(self, ask: Ask) -> bool:
        """Return whether claims have kept an ask like this one, and no larger, off all nodes, and nothing has changed since."""
        kept, at = self._known.get(self._kind(ask, at_home=False)), self._partition.index.generation
        return kept is not None and kept.generation == at and ask.shape.amounts.covers(kept.amounts)

    def note_kept_off(self, ask: Ask) -> None:
        """Note that claims keep an ask off all nodes that have room for it."""
        kept = self._known.get(self._kind(ask, at_home=False))
        if kept is not None:
            kept.generation, kept.amounts = self._partition.index.generation, ask.shape.amounts

    def _kind(self, ask: Ask, *, at_home: bool) -> tuple[Any, ...]:
        """Return what asks have in common that claims keep off the same nodes; nothing is known once a claim or count has changed.

        `at_home`: from the node of its own claim only those that are of higher order than this keep an ask off.
        """
        state = self.generation, self._partition.needs.topology.changes
        if self._known_at != state or len(self._known) >= KNOWN_MAX:
            self._known, self._known_at = {}, state
        need, app = ask.shape.need, ask.app
        counts = need.pods.counts if need.pods is not None else ()
        whose = (app.queue, ask.priority, app.atomic and app, self.by_ask.get(ask))
        return (at_home, *whose, need.base, *(need.checks or ()), *counts)

    def _find_kept_off(self, ask: Ask, *, at_home: bool) -> KeptOff:
        """Find the domains in which one more pod like the ask shuts out an ask with a claim (`spare_domains`).

        Each check is looked at by itself: it depends on one count alone, but for what makes a pod the first of an affinity.
        """
        kept, pods = KeptOff(), ask.shape.need.pods
        rivals = [
            (other, at, about)
            for other, at in self._rivals(ask)
            if (about := [check for check in other.shape.need.checks or () if check.is_about(pods)])
            and not (at_home and not _outranks(other.app.queue, other.priority, self.by_ask[ask]))
        ]
        shut, needs = [], [other.shape.need for other, _, _ in rivals]
        with self.as_planned(*needs, without=(ask,)):
            for other, at, about in rivals:
                with self._before(other, at):
                    if other.shape.need.mismatch_of_pods(at):
                        shut.append((other, at))
                    else:
                        for check in about:
                            self._look(kept, check, at, ask)
        if ask in self.by_ask and shut and not at_home:
            with self.as_planned(*needs):
                kept.stays = not all(self._is_shut(*one) for one in shut)
        return kept

    def _look(self, kept: KeptOff, check: DomainCheck, at: Node, ask: Ask) -> None:
        """Note where one more pod like the ask has a check shut a node that it does not shut now."""
        count, domain = check.count, check.key.domain_of[at.slot]
        if check.kind == IS_NEAR:
            if check.room and not any(one.total for one in count.others):
                kept.first.append((count, domain))
            return
        slot = next((slot for slot in check.key.members[domain] if slot not in count.absent), None)
        if domain and slot is not None:
            with self._counting([(self._partition.needs.topology.nodes[slot], ask, 1)]):
                if check.shuts(domain):
                    kept.shut.setdefault(count, {})[domain] = None

    def _rivals(self, ask: Ask) -> list[tuple[Ask, Node]]:
        """Return the other asks whose claims an ask must not break, each with the node that it claims; claims of lower order yield."""
        gang = ask.app if ask.app.atomic is not None else None
        return [
            (claim.ask, claim.node)
            for claim in self.by_ask.values()
            if claim.ask is not ask and claim.ask.app is not gang and not _outranks(ask.app.queue, ask.priority, claim)
        ]

    @contextmanager
    def as_planned(
        self,
        *needs: Need,
        leaving: Iterable[Ask] = (),
        more: Iterable[tuple[Ask, Node]] = (),
        without: Iterable[Ask] = (),
    ) -> Iterator[None]:
        """Let the topology count pods as if evictions had ended and claims were used; in the end the counts are as before.

        Victims and those `leaving` do not count; asks with claims, except those `without`, and `more` count on their nodes. `needs`:
        for which verdicts are asked; without checks among them nothing is counted.
        """
        topology = self._partition.needs.topology
        with ExitStack() as undo:
            if any(need.checks for need in needs):
                ending = [(alloc.node, alloc, -1) for alloc in (*self._partition.accounting.victims, *leaving)]
                devices = any(map(claims_devices, needs))
                for key in ("", *dict.fromkeys(alloc.key for _, alloc, _ in ending)) if devices else ():
                    lift(topology, key, 1)
                    undo.callback(lift, topology, key, -1)
                without = dict.fromkeys((*without, *self.tried))
                coming = [(one.node, one.ask, 1) for one in self.by_ask.values() if one.ask not in without]
                coming += [(node, ask, 1) for ask, node in more]
                undo.enter_context(self._counting([*ending, *coming]))
            yield

    @contextmanager
    def _counting(self, changes: Iterable[tuple[Node | None, Ask, int]]) -> Iterator[None]:
        """Let the topology count these asks more (1) or less (-1) on their nodes."""
        topology, made = self._partition.needs.topology, []
        try:
            for node, ask, change in changes:
                if ask.shape.need.pods is not None and node is not None:
                    topology.attempt(node.slot, ask.shape.need.pods, change)
                    made.append((node.slot, ask.shape.need.pods, change))
            yield
        finally:
            for slot, pods, change in reversed(made):
                topology.attempt(slot, pods, -change)

    def give_up_if_shut(self, ask: Ask, later: Sequence[Ask] = ()) -> None:
        """Let an ask whose victims have ended give up if terms of pods shut it out of its node even so.

        `later`: asks that are placed after it, members of its gang.
        """
        claim = self.by_ask.get(ask)
        if claim is None or not ask.shape.need.checks or claim.going():
            return
        lower = [one.ask for one in self.yielding(ask.app, ask.priority)]  # it may have been planned beside those
        for unused in ([], lower):
            with self.as_planned(ask.shape.need, without=(ask, *later, *unused)):
                if not ask.shape.need.mismatch_of_pods(claim.node):
                    return
        self._give_up(claim, Outcome.TERMS)

    def wait_for_claims(self, app: Application) -> None:
        """Let the application wait until a claim ends, or something is given back where something is claimed."""
        self._partition.parking.block_for_claims(app, [level for level in _levels(app) if level in self._sums])

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
        self._partition.wakeups.claims_changed(None)

    def _planned(self, level: Level) -> Vec:
        """The usage of a level when all victims have ended, without claims; a new vector."""
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
        """What will be free on the node when all victims have ended and these claims are used; a new vector."""
        room: Vec = node.free.clone()
        for alloc in node.allocations:
            if alloc.preempted:
                room.plus(alloc.shape.amounts)
        for claim in rivals:
            if claim.ask.reserved is node:
                room.minus(claim.amounts)
        return room

    def _fits(self, claim: Claim, rivals: list[Claim]) -> bool:
        """Will there be room for the claiming ask, beside these rivals, when all victims have ended?"""
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
        """Do all claims fit together on the node and at the levels of this one? `known` collects the answers."""
        node = claim.node
        if node not in known:
            total = Vec()
            for each in self.on(node):
                total.plus(each.amounts)
            known[node] = self._room(node, ()).covers(total)
        for level in claim.levels:
            if level not in known:
                known[level] = level.limit is None or not level.limit.binds(self._planned(level), self._sums[level])
        return _suits(claim) and known[node] and all(known[level] for level in claim.levels)

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Check that all claims fit together, and that each has a reservation that will end; raises AssertionError."""
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
    """May the claiming ask run on its node, with what victims leave there? Amounts and terms of pods are not looked at."""
    node, need = claim.node, claim.ask.shape.need
    if not (node.schedulable or claim.ask.required) or not need.labels_may_match(node):
        return False
    verdict = verdict_of(node, claim.ask)
    return verdict is None or verdict.suffices_on_node()


def _may_shut(other: Ask, its_node: Node, ask: Ask, node: Node, gone: Sequence[Ask]) -> bool:
    """May terms of pods keep the other ask off its node once this one runs here, and those `gone` are nowhere?"""
    pods = ask.shape.need.pods
    return any(
        check.may_shut(pods, node, its_node) or any(check.is_about(one.shape.need.pods) for one in gone)
        for check in other.shape.need.checks or ()
    )


def _exported(queue: Queue, priority: int) -> int:
    """The priority as the queue shows it to its parent (`Queue.exported`)."""
    return queue.offset if queue.fence else max(PRIORITY_LOWEST, min(PRIORITY_HIGHEST, priority + queue.offset))


def _outranks(leaf: Queue, priority: int, claim: Claim) -> bool:
    """Is an ask of this leaf and priority of higher order than the claim?

    It is if its priority, as the lowest common queue sees it, is above all that was pending there at the eviction.
    """
    queue: Queue | None = leaf
    while queue is not None:
        if queue in claim.top_priorities:
            return priority > claim.top_priorities[queue]
        priority = _exported(queue, priority)
        queue = queue.parent
    return False
