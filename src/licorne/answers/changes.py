"""Changes of a cluster or its configuration that may let an ask run: what they say, and how they are applied to a copy.

Each change is what a person can do: write another number into the configuration, add a node, take a taint away, end
allocations. Amounts are in base units: thousandths of a vcore, bytes of memory.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace
from ruamel.yaml import YAML

from licorne.answers.restore import Restored
from licorne.config.quantity import parse_quantity, spoken
from licorne.core.base.tags import GUARANTEED_TAG, MAX_APPLICATIONS_TAG, MAX_TAG
from licorne.core.inputs.admission import apply_namespace_tags
from licorne.core.nodes.constraints import LABEL_PREFIX, TAINTS_ATTRIBUTE
from licorne.si import messages, v19

if TYPE_CHECKING:
    from licorne.core.partition import Partition

HOSTNAMES: Final = ("si/hostname", f"{LABEL_PREFIX}kubernetes.io/hostname")
"""Attributes that hold the name of the node."""


NAMED: Final = 5
"""How many allocations a text names."""


class ChangeError(ValueError):
    """A change that cannot be applied; the text says why."""


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

    `like` is empty where no node is of use: then they have `capacity`, and `attributes` that the ask selects.
    """

    count: int
    like: str
    capacity: dict[str, int] = {}
    attributes: dict[str, str] = {}


class NoTaint(msgspec.Struct, tag="no-taint", frozen=True):
    """A taint of a node is taken away. `taint` is written `key=value:effect`."""

    node: str
    taint: str


class Schedulable(msgspec.Struct, tag="schedulable", frozen=True):
    """A node that takes no asks (it is cordoned, or drains) takes them again."""

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


Change = QueueMax | LimitMax | MaxApplications | MoreNodes | NoTaint | Schedulable | End


# -- in words ------------------------------------------------------------------------------------------------------


def text(change: Change) -> str:
    """Return a change in words, as the end of a sentence "it would run with …"."""
    match change:
        case QueueMax():
            where = f"{change.queue}'s max"
            if change.dynamic:
                where += " (a dynamic queue: its namespace's annotation or its parent's template has it)"
            return f"{_amounts(change.more)} more in {where}"
        case LimitMax():
            return f"{_amounts(change.more)} more in {_limit(change.kind, change.name, change.queue, change.wildcard)}"
        case MaxApplications():
            more = "application" if change.more == 1 else "applications"
            if change.kind == "queue":
                return f"{change.more} running {more} more in {change.queue}"
            limit = _limit(change.kind, change.name, change.queue, change.wildcard)
            return f"{change.more} running {more} more in {limit}"
        case MoreNodes(like=""):
            nodes = "one node more" if change.count == 1 else f"{change.count} nodes more"
            labels = {key.removeprefix(LABEL_PREFIX): value for key, value in sorted(change.attributes.items())}
            said = ", ".join(f"{key}={value}" for key, value in labels.items())
            return f"{nodes} of {_amounts(change.capacity)}" + (f" with the labels {said}" if said else "")
        case MoreNodes():
            return f"{'one node more' if change.count == 1 else f'{change.count} nodes more'} like {change.like}"
        case NoTaint():
            return f"taint {change.taint} of node {change.node} gone"
        case Schedulable():
            return f"node {change.node} schedulable again"
        case End():
            return _end(change)


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
    return f"the limit of {kind} {name} at {queue}" + (" (that of `*`)" if wildcard else "")


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{spoken(name, amount)} {name}" for name, amount in amounts.items())


# -- adding up, and making smaller ---------------------------------------------------------------------------------


def merged(changes: list[Change], new: Change, *, doubled: bool = False) -> list[Change]:
    """Return the changes with a new one, which is added to one of its kind at the same place, if there is one.

    `doubled`: amounts there at least double, so that few trials are needed where many asks compete. Nodes always do.
    """
    for index, old in enumerate(changes):
        both = _both(old, new, doubled=doubled)
        if both is not None:
            return [*changes[:index], both, *changes[index + 1 :]]
    return [*changes, new]


def _both(old: Change, new: Change, *, doubled: bool) -> Change | None:
    add = _grown if doubled else _sum
    match old, new:
        case QueueMax(), QueueMax() if old.queue == new.queue:
            return replace(old, more=add(old.more, new.more))
        case LimitMax(), LimitMax() if (old.kind, old.name, old.queue) == (new.kind, new.name, new.queue):
            return replace(old, more=add(old.more, new.more))
        case MaxApplications(), MaxApplications() if (old.kind, old.name, old.queue) == (new.kind, new.name, new.queue):
            return replace(old, more=old.more + (max(old.more, new.more) if doubled else new.more))
        case MoreNodes(), MoreNodes() if old.like == new.like:
            return replace(old, count=2 * old.count)
        case End(), End():
            return End(tuple(sorted({*old.allocations, *new.allocations})))
        case _:
            return old if old == new else None


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _grown(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    return _sum(old, {name: max(amount, old.get(name, 0)) for name, amount in new.items()})


# -- applying them to a copy ---------------------------------------------------------------------------------------


def apply(home: Restored, partition: Partition, changes: list[Change], now_ns: int) -> None:
    """Apply changes at a time to a scheduler that is a copy.

    Raises:
        ChangeError: one of them is not possible, such as a configuration that would be refused.
    """
    in_configuration = [change for change in changes if _configured(change)]
    if in_configuration:
        _reconfigure(home, partition, in_configuration, now_ns)
    for change in changes:
        match change:
            case QueueMax(dynamic=True) | MaxApplications(dynamic=True):
                _raise_dynamic(partition, change)
            case _ if not _configured(change):
                home.api.submit(home.rm_id, list(_inputs(partition, change)), now_ns=now_ns)


def _configured(change: Change) -> bool:
    return isinstance(change, LimitMax) or (isinstance(change, QueueMax | MaxApplications) and not change.dynamic)


def _inputs(partition: Partition, change: Change) -> Iterator[messages.Input]:
    match change:
        case MoreNodes():
            like = partition.nodes.get(change.like)
            for number in range(1, change.count + 1):
                name = f"{change.like or 'new-node'}~{number}"
                attributes = dict(like.attributes if like is not None else change.attributes)
                attributes.update({key: name for key in HOSTNAMES if key in attributes})
                yield messages.NodeUpdate(
                    node_id=name,
                    action=messages.NodeAction.CREATE,
                    partition=partition.name,
                    attributes=attributes,
                    capacity=like.capacity.named(partition.types) if like is not None else change.capacity,
                    occupied=like.occupied.named(partition.types) if like is not None else None,
                )
        case NoTaint():
            node = partition.nodes[change.node]
            left = [taint for taint in node.labels.taints if str(taint) != change.taint]
            taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in left]
            yield messages.NodeUpdate(
                node_id=change.node,
                action=messages.NodeAction.UPDATE,
                partition=partition.name,
                attributes={**node.attributes, TAINTS_ATTRIBUTE: msgspec.json.encode(taints).decode()},
            )
        case Schedulable():
            yield messages.NodeUpdate(
                node_id=change.node, action=messages.NodeAction.DRAIN_TO_SCHEDULABLE, partition=partition.name
            )
        case End():
            ending = set(change.keys)
            for app in partition.applications.values():
                for key in app.allocations.keys() & ending:
                    yield messages.Release(partition=partition.name, application_id=app.id, key=key)
        case _:
            raise AssertionError(f"{change}: is applied as a configuration")


def _raise_dynamic(partition: Partition, change: QueueMax | MaxApplications) -> None:
    """Give a dynamic leaf another quota, as the tags of a new application of its namespace would."""
    queue = partition.tree.find(change.queue)
    if queue is None:
        raise ChangeError(f"there is no queue {change.queue}")
    if isinstance(change, MaxApplications):
        tags = {MAX_APPLICATIONS_TAG: str(queue.max_apps + change.more)}
    else:
        amounts = _sum(queue.max_config or {}, change.more)
        tags = {MAX_TAG: _as_tag(amounts)}
        if queue.guaranteed_config:  # the two tags count together
            tags[GUARANTEED_TAG] = _as_tag(queue.guaranteed_config)
    apply_namespace_tags(partition, queue, tags)


def _as_tag(amounts: Mapping[str, int]) -> str:
    values = {name: {"value": value} for name, value in amounts.items()}
    return msgspec.json.encode({"resources": values}).decode()


def _reconfigure(home: Restored, partition: Partition, changes: list[Change], now_ns: int) -> None:
    found = YAML(typ="safe", pure=True).load(home.config)
    config = next(each for each in found["partitions"] if _partition_name(each) == partition.name)
    for change in changes:
        _write(config, change)
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump(found, out)
    try:
        home.api.update_configuration(
            v19.UpdateConfigurationRequest(rm_id=home.rm_id, config=out.getvalue()), now_ns=now_ns
        )
    except ValueError as error:
        raise ChangeError(str(error)) from None


def _partition_name(config: Mapping[str, Any]) -> str:
    name = str(config.get("name") or "default").lower()
    return name.rpartition("]")[2]


def _write(config: dict[str, Any], change: Change) -> None:
    assert isinstance(change, QueueMax | LimitMax | MaxApplications)
    queue = _queue_config(config, change.queue)
    if isinstance(change, QueueMax):
        if queue is None:
            raise ChangeError(f"the configuration has no queue {change.queue}")
        resources = queue["resources"] = dict(queue.get("resources") or {})
        resources["max"] = _raised(dict(resources.get("max") or {}), change.more)
        return
    if isinstance(change, MaxApplications) and change.kind == "queue":
        if queue is None:
            raise ChangeError(f"the configuration has no queue {change.queue}")
        queue["maxapplications"] = int(queue["maxapplications"]) + change.more
        return
    for limit in _limits(config, queue, change):
        if isinstance(change, MaxApplications):
            limit["maxapplications"] = int(limit["maxapplications"]) + change.more
        else:
            limit["maxresources"] = _raised(dict(limit["maxresources"]), change.more)


def _raised(amounts: dict[str, Any], more: Mapping[str, int]) -> dict[str, str]:
    """Return amounts as a configuration has them, each raised; one that is not limited stays so."""
    said = {name: parse_quantity(str(value), name) for name, value in amounts.items()}
    return {name: spoken(name, value + more.get(name, 0)) for name, value in said.items()}


def _queue_config(config: Mapping[str, Any], path: str) -> dict[str, Any] | None:
    """Return the queue with this path; None for a root that the configuration does not write."""
    queues: list[dict[str, Any]] = config.get("queues") or []
    below = path.split(".")[1:]
    written = [queue for queue in queues if str(queue.get("name", "")).lower() == "root"]
    found: dict[str, Any] | None = written[0] if len(queues) == 1 and written else None
    if found is not None:
        queues = found.get("queues") or []
    for name in below:
        found = next((queue for queue in queues if str(queue.get("name", "")).lower() == name), None)
        if found is None:
            return None
        queues = found.get("queues") or []
    return found


def _limits(
    config: Mapping[str, Any], queue: Mapping[str, Any] | None, change: LimitMax | MaxApplications
) -> list[dict[str, Any]]:
    """Return the limit in the configuration that counts for the user or group: the first one that names it.

    Those of the partition are those of root; where both are written they are the same, and must stay so.
    """
    lists = [(queue or {}).get("limits"), config.get("limits") if change.queue == "root" else None]
    name = "*" if change.wildcard else change.name
    found = [
        next((limit for limit in limits or () if name in map(str, limit.get(f"{change.kind}s") or ())), None)
        for limits in lists
    ]
    if not any(found):
        raise ChangeError(f"the configuration has no limit of {change.kind} {name} at {change.queue}")
    return [limit for limit in found if limit is not None]


__all__ = [
    "Change",
    "ChangeError",
    "End",
    "LimitMax",
    "MaxApplications",
    "MoreNodes",
    "NoTaint",
    "QueueMax",
    "Running",
    "Schedulable",
    "apply",
    "merged",
    "text",
]
