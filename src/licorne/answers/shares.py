"""Who has what: use against guarantee and max, by queue, user and group, and who borrows from whom.

A queue **borrows** what it uses above its guarantee, and **lends** what is left of its guarantee, for each type of resource.
What is lent is shared out over those who borrow, in proportion to what each of them borrows: siblings first, then what is
left over goes up the tree, where it meets what is left over of other subtrees. What nobody's guarantee covers at the top is
borrowed from the rest of the cluster, which is guaranteed to nobody.

What is guaranteed to a queue is there for the queues below it. What their own guarantees leave of it they borrow from that
queue, after what their siblings lend them; only the rest of it is lent outside. So a subtree lends or borrows by its own
use and guarantee, whatever happens inside it. Amounts are integers in base units (thousandths of a vcore, bytes of memory), and are shared out exactly:
what the proportion leaves over goes to the largest remainders, then by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from licorne.core.base.states import SECOND_NS
from licorne.core.partition import Partition
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage import Tracker
from licorne.state.restored import Note, Restored
from licorne.workload.quantities import bounded

UNGUARANTEED: Final = "(unguaranteed)"
"""The lender of what is guaranteed to no queue."""
PAIRS_MAX: Final = 10_000
"""Pairs of a lender and a borrower below one queue, up to which each borrower has its proportion of each lender."""


class QueueShare(msgspec.Struct, frozen=True):
    """What a queue uses of one type, against its guarantee and max.

    `guaranteed`, `max`: None if there is none; the max of root is the size of the cluster. `pending`: what its waiting asks
    want. `below`: how far it is below its guarantee while it has demand: the smaller of what is left of the guarantee, and
    `pending`. `waits_since_s`: since when the oldest of its asks for this type waits (Unix time), 0 if none does.
    """

    queue: str
    resource: str
    used: int
    guaranteed: int | None
    max: int | None
    pending: int
    below: int
    waits_since_s: float


class PersonLimit(msgspec.Struct, frozen=True):
    """What a user or group may use of one type in a queue and those below it, and uses there."""

    queue: str
    used: int
    limit: int


class PersonShare(msgspec.Struct, frozen=True):
    """What a user or group (`kind`, `name`) uses of one type in all its queues, in how many applications.

    `limit`: the one at root, if there is one. `limits`: all of them, by queue.
    """

    kind: str
    name: str
    resource: str
    used: int
    limit: int | None
    applications: int
    limits: tuple[PersonLimit, ...] = ()

    @property
    def tightest(self) -> PersonLimit | None:
        """The limit of which the largest part is used; of equal ones the one that leaves least. None if there is none."""
        return max(self.limits, key=_tightness, default=None)


def _tightness(found: PersonLimit) -> tuple[float, int]:
    return (found.used / found.limit if found.limit else 1.0, found.used - found.limit)


class Loan(msgspec.Struct, frozen=True):
    """What one queue uses of the guarantee of another, of one type. `lender` may be `UNGUARANTEED`."""

    resource: str
    lender: str
    borrower: str
    amount: int


class LoanSum(msgspec.Struct, frozen=True):
    """What a queue borrows or lends of one type in all; a lender may be `UNGUARANTEED`."""

    resource: str
    queue: str
    amount: int


class PartitionShares(msgspec.Struct, frozen=True):
    """Who has what in a partition. Queues are in the order of the tree, users before groups, loans by type and lender.

    There are loans only of types that are guaranteed to some queue. `borrowed` and `lent` are the sums of the loans by type
    and queue: what is borrowed is all of a queue's use above its guarantee, what is lent the used part of what a queue
    leaves of its guarantee.
    """

    partition: str
    queues: tuple[QueueShare, ...]
    people: tuple[PersonShare, ...]
    loans: tuple[Loan, ...]
    borrowed: tuple[LoanSum, ...] = ()
    lent: tuple[LoanSum, ...] = ()


class HoursUsed(msgspec.Struct, frozen=True):
    """What a queue (its path), user or group (`kind`, `name`) has used of one type: base units times hours.

    A queue's use is that of all queues below it too. Of `pods` it is pod hours, where asks want one of that type, as those of
    Kubernetes do.
    """

    partition: str
    kind: str
    name: str
    resource: str
    hours: float


class Hours(msgspec.Struct, frozen=True):
    """What was used from one time to another (Unix time): queues before users and groups, each by name and type.

    Of users and groups those are told whose use the scheduler counts.
    """

    since_s: float
    until_s: float
    used: tuple[HoursUsed, ...]


class Shares(msgspec.Struct, frozen=True):
    """Who has what, at a time (Unix time), in each partition.

    `age_s`: as in `AskAnswer`. `hours`: what was used before, if a recording was asked for it.
    """

    partitions: tuple[PartitionShares, ...]
    at_s: float
    notes: tuple[Note, ...]
    age_s: float | None = None
    hours: Hours | None = None


def shares(restored: Restored, partition: str = "") -> Shares:
    """Return who has what, in all partitions or in the one with this name.

    Raises:
        UnknownNameError: there is no such partition.
    """
    return Shares(
        tuple(_of_partition(each) for each in restored.chosen(partition)), restored.now_ns / SECOND_NS, restored.notes
    )


def _of_partition(partition: Partition) -> PartitionShares:
    types = _types(partition)
    waits: dict[str, dict[str, int]] = {}
    _note_oldest(partition.tree.root, waits)
    queues = [share for queue in partition.tree.root.walk() for share in _of_queue(queue, types, waits[queue.path])]
    people = [
        *_people(partition, partition.limits.users(), "user"),
        *_people(partition, partition.limits.groups(), "group"),
    ]
    promised = {name for queue in partition.tree.queues() for name in queue.guaranteed_config or ()}
    found = tuple(loan for name in sorted(promised) for loan in loans(_as_borrower(partition.tree.root, name), name))
    return PartitionShares(
        partition=partition.name,
        queues=tuple(queues),
        people=tuple(people),
        loans=found,
        borrowed=_sums((loan.resource, loan.borrower, loan.amount) for loan in found),
        lent=_sums((loan.resource, loan.lender, loan.amount) for loan in found),
    )


def _sums(amounts: Iterable[tuple[str, str, int]]) -> tuple[LoanSum, ...]:
    found: Counter[tuple[str, str]] = Counter()
    for resource, queue, amount in amounts:
        found[resource, queue] += amount
    return tuple(LoanSum(resource, queue, amount) for (resource, queue), amount in sorted(found.items()))


def _types(partition: Partition) -> list[str]:
    """Return the types that the cluster has, or that are guaranteed or used, by name."""
    names = {*partition.total.named(partition.types)}
    for queue in partition.tree.queues():
        names |= {*(queue.guaranteed_config or ()), *queue.allocated_resource(), *queue.pending_resource()}
    return sorted(names)


def _note_oldest(queue: Queue, waits: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return, by type of resource, since when (ns) the oldest ask for it waits in the subtree of a queue.

    The same is stored in `waits` for each queue of the subtree, by its path.
    """
    found: dict[str, int] = {}
    for app in queue.apps.values():
        for ask in app.asks.values():
            for name, amount in ask.shape.resource.items():
                if amount > 0:
                    found[name] = min(ask.created, found.get(name, ask.created))
    for child in queue.children.values():
        for name, created in _note_oldest(child, waits).items():
            found[name] = min(created, found.get(name, created))
    waits[queue.path] = found
    return found


def _of_queue(queue: Queue, types: Iterable[str], waits: Mapping[str, int]) -> Iterable[QueueShare]:
    used, pending = queue.allocated_resource(), queue.pending_resource()
    guaranteed, most = queue.guaranteed_resource() or {}, bounded(queue.max_resource() or {})
    for name in types:
        if not any(name in amounts for amounts in (used, pending, guaranteed, most)):
            continue
        left = max(0, guaranteed.get(name, 0) - used.get(name, 0))
        wanted = pending.get(name, 0)
        yield QueueShare(
            queue=queue.path,
            resource=name,
            used=used.get(name, 0),
            guaranteed=guaranteed.get(name),
            max=most.get(name),
            pending=wanted,
            below=min(left, wanted),
            waits_since_s=waits.get(name, 0) / SECOND_NS if wanted else 0.0,
        )


def _people(partition: Partition, named: Mapping[str, list[Tracker]], kind: str) -> Iterable[PersonShare]:
    """Yield what each user or group uses: its tracker at root has the sum over all queues, each tracker its own limit."""
    for name in sorted(named):
        top = next((tracker for tracker in named[name] if tracker.path == "root"), None)
        used = {} if top is None else top.used.named(partition.types)
        limits: dict[str, list[PersonLimit]] = {}
        for tracker in named[name]:
            if tracker.limit is not None:
                there = tracker.used.named(partition.types)
                for resource, limit in tracker.limit.named(partition.types).items():
                    limits.setdefault(resource, []).append(PersonLimit(tracker.path, there.get(resource, 0), limit))
        for resource in sorted({*used, *limits}):
            yield PersonShare(
                kind=kind,
                name=name,
                resource=resource,
                used=used.get(resource, 0),
                limit=next((each.limit for each in limits.get(resource, ()) if each.queue == "root"), None),
                applications=0 if top is None else len(top.apps),
                limits=tuple(limits.get(resource, ())),
            )


# -- who borrows from whom ---------------------------------------------------------------------------------------


class Borrower(msgspec.Struct, frozen=True):
    """A queue as one who borrows or lends one type: its use, its guarantee (None: none), and the queues below it."""

    queue: str
    used: int
    guaranteed: int | None = None
    children: tuple[Borrower, ...] = ()

    @property
    def promised(self) -> int:
        """What is guaranteed to the subtree: to the queue, or if it has no guarantee to those below."""
        return sum(child.promised for child in self.children) if self.guaranteed is None else self.guaranteed


def _as_borrower(queue: Queue, resource: str) -> Borrower:
    return Borrower(
        queue.path,
        queue.allocated_resource().get(resource, 0),
        None if queue.parent is None else (queue.guaranteed_config or {}).get(resource),
        tuple(_as_borrower(queue.children[name], resource) for name in sorted(queue.children)),
    )


def loans(root: Borrower, resource: str) -> list[Loan]:
    """Return who uses whose guarantee of one type below a queue, by lender and borrower."""
    found: Counter[tuple[str, str]] = Counter()
    _, borrowed = _settle(root, found)
    for name, amount in borrowed.items():
        found[UNGUARANTEED, name] += amount
    return [Loan(resource, lender, borrower, amount) for (lender, borrower), amount in sorted(found.items()) if amount]


def _settle(queue: Borrower, found: Counter[tuple[str, str]]) -> tuple[dict[str, int], dict[str, int]]:
    """Note the loans among the queues below, and return what is left there to lend, and left to borrow, by queue.

    A queue with a guarantee of its own answers for its subtree: what its children have left over stands behind it.
    """
    guaranteed = queue.guaranteed or 0
    if not queue.children:
        return {queue.queue: max(0, guaranteed - queue.used)}, {queue.queue: max(0, queue.used - guaranteed)}
    lent: dict[str, int] = {}
    borrowed: dict[str, int] = {}
    for child in queue.children:
        more_lent, more_borrowed = _settle(child, found)
        lent |= more_lent
        borrowed |= more_borrowed
    _lend(lent, borrowed, found)
    if queue.guaranteed is not None:  # it gives its children what theirs do not cover, and lends the rest
        own = {queue.queue: max(0, guaranteed - sum(child.promised for child in queue.children))}
        _lend(own, borrowed, found)
        lent |= own
    return lent, borrowed


def _lend(lent: dict[str, int], borrowed: dict[str, int], found: Counter[tuple[str, str]]) -> None:
    """Add loans to `found`, from queues with something to lend to those that borrow, and take them out of `lent` and `borrowed`."""
    for (lender, borrower), amount in _shared_out(lent, borrowed).items():
        found[lender, borrower] += amount
        lent[lender] -= amount
        borrowed[borrower] -= amount


def _shared_out(lent: Mapping[str, int], borrowed: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Share out what is lent over those who borrow, exactly: each lends and borrows in proportion to what it has and wants.

    Up to `PAIRS_MAX` pairs each borrower has its proportion of each lender. Among more it is the largest lenders who lend to
    the largest borrowers, which takes no more pairs than there are lenders and borrowers.
    """
    total = min(sum(lent.values()), sum(borrowed.values()))
    given = {name: amount for name, amount in _apportioned(total, lent).items() if amount}
    taken = {name: amount for name, amount in _apportioned(total, borrowed).items() if amount}
    found: dict[tuple[str, str], int] = {}
    if len(given) * len(taken) > PAIRS_MAX:
        smallest_first = sorted(taken, key=lambda name: (taken[name], name))
        for lender in sorted(given, key=lambda name: (-given[name], name)):
            while given[lender]:
                borrower = smallest_first.pop()
                found[lender, borrower] = amount = min(given[lender], taken[borrower])
                given[lender] -= amount
                taken[borrower] -= amount
                if taken[borrower]:
                    smallest_first.append(borrower)
        return found
    for lender, amount in given.items():
        for borrower, part in _apportioned(amount, taken).items():
            found[lender, borrower] = part
            taken[borrower] -= part
    return found


def _apportioned(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Divide a total in proportion to weights, whose sum is at least the total, by the largest remainders; none exceeds its weight."""
    whole = sum(weights.values())
    parts = {name: total * weight // whole for name, weight in weights.items()} if whole else {}
    left = total - sum(parts.values())
    order = sorted(parts, key=lambda name: (-(total * weights[name] % whole), name))
    for name in order[:left]:
        parts[name] += 1
    return parts
