"""Changes of a cluster, its configuration or an ask that may let the ask run: what they are, and what they say.

Each change is what a person can do: write another number into the configuration, add a node, take a taint away, end
allocations, ask for less. Amounts are in base units: thousandths of a vcore, bytes of memory. How a change is applied to a
copy is in `licorne.answers.applied`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from licorne.config.quantity import spoken
from licorne.core.nodes.constraints import LABEL_PREFIX

NAMED: Final = 5
"""How many allocations a text names."""


class QueueMax(msgspec.Struct, tag="queue-max", frozen=True):
    """The max of a queue is raised by `more`, by type. `dynamic`: its quota is not in the configuration."""

    queue: str
    more: dict[str, int]
    dynamic: bool = False


class LimitMax(msgspec.Struct, tag="limit-max", frozen=True):
    """The limit of a user or group (`kind`, `name`) at a queue is raised by `more`. `wildcard`: it is that of `*`."""

    kind: str
    name: str
    queue: str
    more: dict[str, int]
    wildcard: bool = False


class MaxApplications(msgspec.Struct, tag="max-applications", frozen=True):
    """A queue, or a user or group there, may run `more` applications more. `wildcard`: it is the limit of `*`."""

    queue: str
    more: int
    kind: str = "queue"
    name: str = ""
    dynamic: bool = False
    wildcard: bool = False


class MoreNodes(msgspec.Struct, tag="more-nodes", frozen=True):
    """`count` nodes more, which have the capacity, labels, taints and foreign use of `like`.

    `like` is empty where no node is of use: then they have `capacity`, and `attributes` that the ask selects. `name`: the
    id of the one node that the ask requires, where that is not there.
    """

    count: int
    like: str
    capacity: dict[str, int] = {}
    attributes: dict[str, str] = {}
    name: str = ""


class OwnNode(msgspec.Struct, tag="own-node", frozen=True):
    """One node more, as of `MoreNodes`, with a taint that the ask alone is made to tolerate. `taint` is written `key=value:effect`."""

    like: str
    taint: str
    capacity: dict[str, int] = {}
    attributes: dict[str, str] = {}


class BiggerNode(msgspec.Struct, tag="bigger-node", frozen=True):
    """A node has `more` of some types."""

    node: str
    more: dict[str, int]


class NoTaint(msgspec.Struct, tag="no-taint", frozen=True):
    """A taint of a node is taken away. `taint` is written `key=value:effect`."""

    node: str
    taint: str


class Schedulable(msgspec.Struct, tag="schedulable", frozen=True):
    """A node that is cordoned, or drains, takes asks again. Where a taint stands for the cordon, it goes too."""

    node: str


class Running(msgspec.Struct, frozen=True, order=True):
    """An allocation, with its queue and node, and its pod as NAMESPACE/NAME, if that is known."""

    key: str
    queue: str
    node: str
    pod: str = ""


class End(msgspec.Struct, tag="end", frozen=True):
    """Allocations end; they are in the order of their keys."""

    allocations: tuple[Running, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the allocations."""
        return tuple(each.key for each in self.allocations)


class LessAsked(msgspec.Struct, tag="less-asked", frozen=True):
    """The ask wants `less` of some types. Its age and its place among other asks stay as they are."""

    less: dict[str, int]


class Tolerates(msgspec.Struct, tag="tolerates", frozen=True):
    """The ask tolerates a taint, written `key=value:effect`."""

    taint: str


class Unconstrained(msgspec.Struct, tag="unconstrained", frozen=True):
    """The ask does not select nodes by the label `label`, which it wants to be `value`; without a label: by affinity."""

    label: str = ""
    value: str = ""


class Priority(msgspec.Struct, tag="priority", frozen=True):
    """The ask is submitted again, with another priority than `before`."""

    priority: int
    before: int


class OtherQueue(msgspec.Struct, tag="other-queue", frozen=True):
    """The ask is submitted again, by an application of its own in another queue than `before`."""

    queue: str
    before: str


class MoreMembers(msgspec.Struct, tag="more-members", frozen=True):
    """An application that starts as a whole has `more` members, by task group."""

    application: str
    more: dict[str, int]


class FewerMembers(msgspec.Struct, tag="fewer-members", frozen=True):
    """An application is submitted again, whose task groups need `less` members than `before`, by task group."""

    application: str
    less: dict[str, int]
    before: dict[str, int]


Change = (
    QueueMax
    | LimitMax
    | MaxApplications
    | MoreNodes
    | OwnNode
    | BiggerNode
    | NoTaint
    | Schedulable
    | End
    | LessAsked
    | Tolerates
    | Unconstrained
    | Priority
    | OtherQueue
    | MoreMembers
    | FewerMembers
)
Counted = QueueMax | LimitMax | BiggerNode | MoreMembers | LessAsked | FewerMembers
"""Changes by amounts, which can be larger or smaller."""


# -- in words ------------------------------------------------------------------------------------------------------


def text(change: Change) -> str:
    """Return a change in words, as the end of a sentence "it would run with …"."""
    match change:
        case MaxApplications() | QueueMax() | LimitMax():
            return _of_configuration(change)
        case MoreNodes() | BiggerNode() | NoTaint() | Schedulable():
            return _of_nodes(change)
        case OwnNode():
            new = MoreNodes(1, change.like, change.capacity, change.attributes)
            return f"{_of_nodes(new)}, for it alone (with a taint that nothing else tolerates)"
        case End():
            return _end(change)
        case LessAsked():
            return f"{_amounts(change.less)} less in the ask"
        case Tolerates():
            return f"a toleration of the taint {change.taint} in the ask"
        case Unconstrained(label=""):
            return "no node affinity in the ask"
        case Unconstrained():
            return f"no node selector {change.label}={change.value} in the ask"
        case Priority():
            return f"priority {change.priority} of the ask in place of {change.before}"
        case OtherQueue():
            return f"the ask in queue {change.queue} in place of {change.before}"
        case MoreMembers():
            return " and ".join(
                f"{number} {'member' if number == 1 else 'members'} more of task group {name}"
                for name, number in change.more.items()
            )
        case FewerMembers():
            return " and ".join(
                f"minMember {change.before[name] - number} in place of {change.before[name]} of task group {name}"
                for name, number in change.less.items()
            )


def _of_configuration(change: QueueMax | LimitMax | MaxApplications) -> str:
    if isinstance(change, LimitMax):
        return f"{_amounts(change.more)} more in {_limit(change.kind, change.name, change.queue, change.wildcard)}"
    if isinstance(change, QueueMax):
        where = f"{change.queue}'s max"
        if change.dynamic:
            where += " (a dynamic queue: its namespace's annotation or its parent's template has it)"
        return f"{_amounts(change.more)} more in {where}"
    more = "application" if change.more == 1 else "applications"
    where = change.queue
    if change.kind != "queue":
        where = _limit(change.kind, change.name, change.queue, change.wildcard)
    return f"{change.more} running {more} more in {where}"


def _of_nodes(change: MoreNodes | BiggerNode | NoTaint | Schedulable) -> str:
    match change:
        case MoreNodes(like=""):
            nodes = "one node more" if change.count == 1 else f"{change.count} nodes more"
            if change.name:
                nodes = f"a node {change.name}"
            labels = {key.removeprefix(LABEL_PREFIX): value for key, value in sorted(change.attributes.items())}
            said = ", ".join(f"{key}={value}" for key, value in labels.items())
            return f"{nodes} of {_amounts(change.capacity)}" + (f" with the labels {said}" if said else "")
        case MoreNodes():
            return f"{'one node more' if change.count == 1 else f'{change.count} nodes more'} like {change.like}"
        case BiggerNode():
            return f"{_amounts(change.more)} more on node {change.node}"
        case NoTaint():
            return f"taint {change.taint} of node {change.node} gone"
        case Schedulable():
            return f"node {change.node} schedulable again"


def _end(change: End) -> str:
    shown = [each.pod or each.key for each in change.allocations]
    number = len(shown)
    what = "pod" if all(each.pod for each in change.allocations) else "allocation"
    queues = Counter(each.queue for each in change.allocations)
    nodes = {each.node for each in change.allocations}
    of = (
        f"of {next(iter(queues))}"
        if len(queues) == 1
        else f"({', '.join(f'{n} of {q}' for q, n in sorted(queues.items()))})"
    )
    where = f" on {next(iter(nodes))}" if len(nodes) == 1 else ""
    if number == 1:
        return f"the end of {what} {shown[0]} {of}{where}"
    names = ", ".join(shown[:NAMED]) + (f" and {number - NAMED} more" if number > NAMED else "")
    return f"the end of these {number} {what}s {of}{where}: {names}"


def _limit(kind: str, name: str, queue: str, wildcard: bool) -> str:
    return f"the limit of {kind} {name} at {queue}" + (
        f" (that of `*`, each {kind} without one of its own)" if wildcard else ""
    )


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{spoken(name, amount)} {name}" for name, amount in amounts.items())


# -- adding up, and making smaller ---------------------------------------------------------------------------------


def amounts(change: Counted) -> dict[str, int]:
    """Return the amounts of a change."""
    return change.less if isinstance(change, LessAsked | FewerMembers) else change.more


def with_amounts(change: Counted, by_name: dict[str, int]) -> Counted:
    """Return a change with other amounts, without those that are 0."""
    by_name = {name: amount for name, amount in by_name.items() if amount}
    if isinstance(change, LessAsked | FewerMembers):
        return replace(change, less=by_name)
    return replace(change, more=by_name)


def all_merged(changes: Iterable[Change], new: Sequence[Change], *, doubled: bool = False) -> tuple[Change, ...]:
    """Return a set of changes with new ones. Two of one kind at the same place, such as one queue's max, become one.

    `doubled`: amounts there at least double, so that few trials are needed where many asks compete. New nodes always become
    eight times as many. What the ask wants less counts once: it is less for all reasons at the same time.
    """
    less: dict[str, int] = {}
    for change in new:
        if isinstance(change, LessAsked):
            less = {name: max(less.get(name, 0), change.less.get(name, 0)) for name in {**less, **change.less}}
    new = [*(change for change in new if not isinstance(change, LessAsked)), *([LessAsked(less)] if less else ())]
    merged = list(changes)
    for number, change in enumerate(new):
        if change in new[:number]:
            continue
        for index, old in enumerate(merged):
            both = _both(old, change, doubled=doubled)
            if both is not None:
                merged[index] = both
                break
        else:
            merged.append(change)
    return tuple(merged)


def _both(old: Change, new: Change, *, doubled: bool) -> Change | None:
    match old, new:
        case MaxApplications(), MaxApplications() if (old.kind, old.name, old.queue) == (new.kind, new.name, new.queue):
            return replace(old, more=old.more + (max(old.more, new.more) if doubled else new.more))
        case MoreNodes(), MoreNodes() if old.name and old.name == new.name:
            both = {**old.attributes, **new.attributes}
            return replace(old, capacity=_sum(old.capacity, new.capacity), attributes=both)
        case MoreNodes(), MoreNodes() if old == replace(new, count=old.count):
            return replace(old, count=8 * old.count)
        case End(), End():
            return End(tuple(sorted({*old.allocations, *new.allocations})))
    if isinstance(old, Counted) and isinstance(new, Counted) and _at_one_place(old, new):
        add = _grown if doubled and not isinstance(old, LessAsked) else _sum
        return with_amounts(old, add(amounts(old), amounts(new)))
    return old if old == new else None


def _at_one_place(old: Counted, new: Counted) -> bool:
    if isinstance(old, FewerMembers) and isinstance(new, FewerMembers):
        return old.application == new.application
    return with_amounts(old, {}) == with_amounts(new, {})


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _grown(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    return _sum(old, {name: max(amount, old.get(name, 0)) for name, amount in new.items()})
