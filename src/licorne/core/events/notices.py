"""Event records about asks that wait, and applications that may not run (docs/spec/events.md, section 2).

The descent does not report why an ask waits, because it keeps no more about waiting asks than decisions need. So the
state is inspected instead: at the end of a call of `schedule` in which nothing more could be placed, at most once a
second of the core's time, and a bounded number of asks at a time; the next inspection continues where the last one
ended. A message that the original gives when an ask is refused for the first time comes here up to a second later, and
not at all if the ask was placed by then. What was recorded of an ask is remembered while the ask is pending, so that
the opposite is recorded too, once.

What people are told of why an ask waits comes from `licorne.core.inspection.explain` alone. These records do not, though
both compare with the same bounds (`licorne.core.queues.bounds`): a record has the original's words, says only whether the
quotas of user and queue leave enough, and one inspection looks at up to 2,000 asks between two decisions, each against
bounds that were summed up once for its application; `explain` goes through the whole tree and all nodes for one ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import SECOND_NS
from licorne.core.constants import AWAITS_NODE, AWAITS_PLACEHOLDER, LIVE, UNLIMITED
from licorne.core.queues.bounds import Bound, available, queue_bounds, user_bounds
from licorne.si.v19 import ChangeDetail, ChangeType

if TYPE_CHECKING:
    from licorne.core.contents import PartitionContents
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask, Shape

    from .records import Records

REPEAT_NS = 15 * SECOND_NS
"""The same message about an ask is not repeated before this time has passed."""
STEPS = 2_000
"""The number of steps of one inspection.

A step is an ask, an application without any, a node whose labels do not suit an ask, or a set of labels.
"""
REFUSALS_MAX = 1_000
"""For how many asks the last answers of predicates are kept."""
TEXTS_MAX = 20
"""How many different texts of refusals are kept for one ask; a further one counts as the last of these."""

Key = tuple[str, str]
"""The id of an application and the key of an ask."""
Room = tuple[dict[str, int], Vec]
_USER, _QUEUE = 1, 2  # bits: what an ask does not fit in


class RequestEvents:
    """Makes the records of type REQUEST of one partition, and those of applications that may not run, or may again."""

    def __init__(self, partition: PartitionContents, records: Records) -> None:
        self._partition = partition
        self._records = records
        self.waiting: dict[Key, int] = {}
        """The asks that were recorded as not fitting, with the bits of what they do not fit in."""
        self._last_ns: dict[tuple[str, str, str], int] = {}  # (application, key, kind of message): time of the record
        self._held: dict[str, tuple[bool, bool]] = {}  # by application: (may run in its queue, within the limits)
        self._refusals: dict[str, dict[str, int]] = {}  # by ask's key: number of refusing nodes by text
        self._asked = ""  # the key of the ask that a predicate refused last
        self._asked_nodes: set[str] = set()  # the nodes that it was refused since it is being tried
        self._round: Iterator[tuple[Application, Ask | None]] | None = None  # where the next inspection continues

    # -- inspection ------------------------------------------------------------------------------------

    def look(self) -> bool:
        """Inspect the asks that wait; False if there were too many for one inspection."""
        steps = STEPS
        asks = self._pending() if self._round is None else self._round
        self._round = None
        last: Application | None = None
        user: Room = ({}, Vec())
        queue: Room = ({}, Vec())
        quotas: Room | None = None  # the same for asks that require their node
        counted: dict[Shape, dict[str, int]] = {}
        for app, ask in asks:
            if ask is not None:
                if app is not last:
                    last, user, queue, quotas = app, self._room(user_bounds(app)), self._room(queue_bounds(app)), None
                if ask.required and quotas is None:
                    quotas = self._room(queue_bounds(app, cluster=False))
                if (
                    self._fits(app, ask, user, quotas if ask.required and quotas else queue)
                    and LIVE < ask.parked <= AWAITS_NODE
                ):
                    steps -= self._unschedulable(app, ask, counted)
            steps -= 1
            if steps <= 0:
                self._round = asks
                return False
        return True

    def _pending(self) -> Iterator[tuple[Application, Ask | None]]:
        """The pending asks, with None for one that has not had its turn, and for an application without such asks.

        The Nones let the caller count them as steps.
        """
        partition = self._partition
        app: Application
        for app in list(partition.applications.values()):
            if app.asks_pending and app.group_chosen and app.atomic is None:
                for ask in app.requests.in_order():
                    tried = ask.attempted or ask.seq <= app.visited_seq
                    yield app, ask if tried and ask.is_pending and ask.parked < AWAITS_PLACEHOLDER else None
            else:
                yield app, None

    def _fits(self, app: Application, ask: Ask, user: Room, queue: Room) -> bool:
        """Does the ask fit in what its user, its group and its queues leave? A changed answer is recorded."""
        key = (app.id, ask.key)
        was = self.waiting.get(key, 0)
        fits_user = user[1].covers(ask.shape.amounts)
        fits_queue = queue[1].covers(ask.shape.amounts) if fits_user else not was & _QUEUE
        now = (0 if fits_user else _USER) | (0 if fits_queue else _QUEUE)
        if now == was:
            return not now
        self._fits_now(app, ask, was & ~now)
        wanted = text(ask.shape.resource)
        if now & ~was & _USER:
            self._records.request(
                ask,
                f"Request '{ask.key}' exceeds the available user quota (requested {wanted}, available {text(user[0])})",
            )
        if now & ~was & _QUEUE:
            self._records.request(
                ask,
                f"Request '{ask.key}' does not fit in queue '{app.queue.path}' "
                f"(requested {wanted}, available {text(queue[0])})",
            )
        if now:
            self.waiting[key] = now
        else:
            self.waiting.pop(key, None)
        return not now

    def _fits_now(self, app: Application, ask: Ask, fits: int) -> None:
        """Record that an ask now fits in what it was recorded not to fit in (the bits `fits`)."""
        if fits & _USER:
            self._records.request(ask, f"Request '{ask.key}' fits in the available user quota")
        if fits & _QUEUE:
            self._records.request(ask, f"Request '{ask.key}' has become schedulable in queue '{app.queue.path}'")

    def _room(self, bounds: Iterable[Bound]) -> Room:
        room = available(self._partition.types, bounds)
        return room, self._partition.types.vector(room, UNLIMITED)

    # -- nodes -----------------------------------------------------------------------------------------

    def _unschedulable(self, app: Application, ask: Ask, counted: dict[Shape, dict[str, int]]) -> int:
        """Record what keeps the ask off the nodes that have room for it; return the number of steps that this took.

        `counted` keeps the results by shape, so that equal asks of one inspection are counted once.
        """
        if not self._may_repeat(app, ask, "unschedulable"):
            return 0
        steps = 0
        shape: Shape = ask.shape
        if shape not in counted and not ask.required:
            counted[shape] = {}
            for labels, nodes in self._partition.needs.kinds():
                why = shape.need.constraints.mismatch(labels)
                by_pods = not why and shape.need.pods is not None  # then nodes of equal labels differ
                steps += 1 + (len(nodes) if why or by_pods else 0)
                for node in nodes if why or by_pods else ():
                    reason = why or shape.need.mismatch(node)
                    if reason and node.open and node.free.covers(shape.amounts):
                        counted[shape][reason] = counted[shape].get(reason, 0) + 1
        failed = dict(counted.get(shape, {}))
        for why, number in self._refusals.get(ask.key, {}).items():
            failed[why] = failed.get(why, 0) + number
        if failed:
            said = "".join(f"{why} ({failed[why]}x); " for why in sorted(failed))
            self._records.request(ask, f"Unschedulable request '{ask.key}': {said}")
            self._last_ns[app.id, ask.key, "unschedulable"] = self._partition.now
        return steps

    def refused(self, key: str, node_id: str, why: str) -> None:
        """Note that a predicate of the resource manager keeps an ask off a node with room, and why."""
        # Another ask, or a node for the second time: the ask is being tried anew, so older answers do not count.
        if key != self._asked or node_id in self._asked_nodes:
            self._asked = key
            self._asked_nodes.clear()
            self._refusals.pop(key, None)
            self._refusals[key] = {}
            if len(self._refusals) > REFUSALS_MAX:
                del self._refusals[next(iter(self._refusals))]
        self._asked_nodes.add(node_id)
        texts = self._refusals[key]
        if why not in texts and len(texts) >= TEXTS_MAX:
            why = next(reversed(texts))
        texts[why] = texts.get(why, 0) + 1

    def no_victims(self, ask: Ask) -> None:
        """Record that for an ask that requires its node no victims were found there."""
        app: Application = ask.app
        if self._may_repeat(app, ask, "no victims"):
            message = (
                f"Unschedulable request '{ask.key}' with required node '{ask.required}', no preemption victim found"
            )
            self._records.request(ask, message)
            self._last_ns[app.id, ask.key, "no victims"] = self._partition.now

    def _may_repeat(self, app: Application, ask: Ask, what: str) -> bool:
        last = self._last_ns.get((app.id, ask.key, what))
        return last is None or self._partition.now - last >= REPEAT_NS

    # -- changes of asks and applications --------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Is anything remembered of any ask?"""
        return bool(self.waiting or self._last_ns or self._refusals)

    def placed(self, app_id: str, key: str, alloc_id: str) -> None:
        """Record, for an ask that was placed, that it fits in what it did not fit in before; then forget it."""
        if (app_id, key) in self.waiting:
            app: Application | None = self._partition.applications.get(app_id)
            ask: Ask | None = None if app is None else app.allocations.get(alloc_id)
            if app is not None and ask is not None:
                self._fits_now(app, ask, self.waiting[app_id, key])
        self.gone(app_id, key)

    def gone(self, app_id: str, key: str) -> None:
        """Forget an ask that is no longer pending."""
        self.waiting.pop((app_id, key), None)
        self._refusals.pop(key, None)
        if self._last_ns:
            for what in ("unschedulable", "no victims"):
                self._last_ns.pop((app_id, key, what), None)

    def may_run(self, app: Application, in_queue: bool, within_limits: bool) -> None:
        """Record whether an accepted application may run, as its queue, and its user and group, have a slot or not.

        Only changes are recorded.
        """
        now = (in_queue, within_limits)
        was = self._held.get(app.id, (True, True))
        if now == was:
            return
        details = (
            (ChangeDetail.APP_CANNOTRUN_QUEUE, ChangeDetail.APP_RUNNABLE_QUEUE),
            (ChangeDetail.APP_CANNOTRUN_QUOTA, ChangeDetail.APP_RUNNABLE_QUOTA),
        )
        for before, after, detail in zip(was, now, details, strict=True):
            if before != after:
                self._records.app(app.id, ChangeType.NONE, detail[after], group=app.queue.path)
        self._held[app.id] = now
        if all(now):
            del self._held[app.id]

    def runs(self, app_id: str) -> None:
        """Record that an application may run which was held back, as it runs now or needs no slot any more."""
        if app_id in self._held:
            app = self._partition.applications.get(app_id)
            if app is not None:
                self.may_run(app, True, True)
            self.left(app_id)

    def left(self, app_id: str) -> None:
        """Forget an application that is gone."""
        self._held.pop(app_id, None)


def text(amounts: dict[str, int]) -> str:
    """Amounts as the text of a message (docs/spec/events.md, section 2)."""
    return f"map[{' '.join(f'{name}:{amounts[name]}' for name in sorted(amounts))}]"
