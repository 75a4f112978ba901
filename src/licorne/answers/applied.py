"""Applies changes (`licorne.answers.changes`) to a copy of a scheduler, by the messages and configurations that make them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from licorne.answers.asks import AskChange, ChangeError, Wanted, asked_otherwise, elsewhere
from licorne.answers.changes import (
    BiggerNode,
    Change,
    End,
    LimitMax,
    MaxApplications,
    MoreNodes,
    NoTaint,
    OtherQueue,
    OwnNode,
    QueueMax,
    Schedulable,
    Tolerates,
)
from licorne.config import as_data
from licorne.config.quantity import parse_queue_quantity, spoken
from licorne.core.base.tags import GUARANTEED_TAG, MAX_APPLICATIONS_TAG, MAX_TAG
from licorne.core.inputs.admission import apply_namespace_tags
from licorne.core.nodes.constraints import CORDON, FIELD_NAME, LABEL_PREFIX, TAINTS_ATTRIBUTE, Taint
from licorne.core.partition import Partition
from licorne.si import messages, v19
from licorne.state.restored import Restored

HOSTNAMES: Final = ("si/hostname", f"{LABEL_PREFIX}kubernetes.io/hostname", LABEL_PREFIX + FIELD_NAME)
"""Attributes that hold the name of the node."""


def apply(home: Restored, wanted: Wanted, changes: Sequence[Change], now_ns: int) -> Wanted:
    """Apply changes at a time to a scheduler that is a copy; return the ask that is wanted then, which may have another application.

    Raises:
        ChangeError: one of them is not possible, such as a configuration that would be refused.
    """
    partition = home.api.cluster.partition(home.rm_id, wanted.partition)
    in_configuration = [change for change in changes if _configured(change)]
    if in_configuration:
        _reconfigure(home, partition, in_configuration, now_ns)
    for change in changes:
        match change:
            case QueueMax(dynamic=True) | MaxApplications(dynamic=True):
                _raise_dynamic(partition, change)
            case OwnNode():
                home.api.submit(home.rm_id, list(_inputs(partition, change)), now_ns=now_ns)
                wanted = _ask_otherwise(home, partition, wanted, Tolerates(change.taint), now_ns)
            case _ if isinstance(change, AskChange):
                wanted = _ask_otherwise(home, partition, wanted, change, now_ns)
            case _ if not _configured(change):
                home.api.submit(home.rm_id, list(_inputs(partition, change)), now_ns=now_ns)
    return wanted


def _ask_otherwise(home: Restored, partition: Partition, wanted: Wanted, change: AskChange, now_ns: int) -> Wanted:
    app = partition.applications.get(wanted.application)
    ask = None if app is None else app.asks.get(wanted.key)
    if app is None or ask is None:
        raise ChangeError("the ask is gone")
    home.api.submit(home.rm_id, list(asked_otherwise(partition, app, ask, change)), now_ns=now_ns)
    if not isinstance(change, OtherQueue):
        return wanted
    found = partition.applications.get(elsewhere(app))
    if found is None or found.queue.path != change.queue:
        raise ChangeError(f"the placement rules do not let it into {change.queue}")
    return replace(wanted, application=found.id)


def _configured(change: Change) -> bool:
    return isinstance(change, LimitMax) or (isinstance(change, QueueMax | MaxApplications) and not change.dynamic)


def _inputs(partition: Partition, change: Change) -> Iterator[messages.Input]:
    match change:
        case MoreNodes():
            names = [change.name] if change.name else islice(_free_names(partition, change), change.count)
            for name in names:
                yield _new_node(partition, name, change)
        case OwnNode():
            created = _new_node(partition, f"{change.like or 'new-node'}~own", change)
            like = partition.nodes.get(change.like)
            there = () if like is None else like.labels.taints
            key, _, rest = change.taint.partition("=")
            value, _, effect = rest.rpartition(":")
            own = {"key": key, "value": value, "effect": effect}
            created.attributes = {**(created.attributes or {}), TAINTS_ATTRIBUTE: _taints(there, own)}
            yield created
        case BiggerNode():
            capacity = partition.nodes[change.node].capacity.named(partition.types)
            yield messages.NodeUpdate(
                node_id=change.node,
                action=messages.NodeAction.UPDATE,
                partition=partition.name,
                capacity={
                    name: capacity.get(name, 0) + change.more.get(name, 0) for name in {**capacity, **change.more}
                },
            )
        case NoTaint():
            yield _without_taint(partition, change.node, change.taint)
        case Schedulable():
            node = partition.nodes[change.node]
            if CORDON in node.labels.taints:
                yield _without_taint(partition, node.id, str(CORDON))
            if not node.schedulable:
                yield messages.NodeUpdate(
                    node_id=node.id, action=messages.NodeAction.DRAIN_TO_SCHEDULABLE, partition=partition.name
                )
        case End():
            ending = set(change.keys)
            for app in partition.applications.values():
                for key in app.allocations.keys() & ending:
                    yield messages.Release(partition=partition.name, application_id=app.id, key=key)
        case _:
            raise AssertionError(f"{change}: is applied as a configuration")


def _without_taint(partition: Partition, name: str, gone: str) -> messages.NodeUpdate:
    node = partition.nodes[name]
    left = [taint for taint in node.labels.taints if str(taint) != gone]
    return messages.NodeUpdate(
        node_id=name,
        action=messages.NodeAction.UPDATE,
        partition=partition.name,
        attributes={**node.attributes, TAINTS_ATTRIBUTE: _taints(left)},
    )


def _free_names(partition: Partition, change: MoreNodes) -> Iterator[str]:
    """Return names for the nodes that a change adds, without end, in order, and without those that nodes of the partition have."""
    names = (f"{change.like or 'new-node'}~{number}" for number in count(1))
    return (name for name in names if name not in partition.nodes)


def _new_node(partition: Partition, name: str, change: MoreNodes | OwnNode) -> messages.NodeUpdate:
    like = partition.nodes.get(change.like)
    attributes = dict(like.attributes if like is not None else change.attributes)
    attributes.update({key: name for key in HOSTNAMES if key in attributes})
    return messages.NodeUpdate(
        node_id=name,
        action=messages.NodeAction.CREATE,
        partition=partition.name,
        attributes=attributes,
        capacity=like.capacity.named(partition.types) if like is not None else change.capacity,
        occupied=like.occupied.named(partition.types) if like is not None else None,
    )


def _taints(taints: Iterable[Taint], *more: dict[str, str]) -> str:
    """Return the JSON of taints that a node reports as its attribute `taints`; `more`: taints as they stand there."""
    found = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]
    return msgspec.json.encode([*found, *more]).decode()


def _raise_dynamic(partition: Partition, change: QueueMax | MaxApplications) -> None:
    """Give a dynamic leaf another quota, as the tags of a new application of its namespace would."""
    queue = partition.tree.find(change.queue)
    if queue is None:
        raise ChangeError(f"there is no queue {change.queue}")
    if isinstance(change, MaxApplications):
        tags = {MAX_APPLICATIONS_TAG: str(queue.max_apps + change.more)}
    else:
        most = queue.max_config or {}
        amounts = {name: most.get(name, 0) + change.more.get(name, 0) for name in {**most, **change.more}}
        tags = {MAX_TAG: _as_tag(amounts)}
        if queue.guaranteed_config:  # the two tags count together
            tags[GUARANTEED_TAG] = _as_tag(queue.guaranteed_config)
    apply_namespace_tags(partition, queue, tags)


def _as_tag(amounts: Mapping[str, int]) -> str:
    values = {name: {"value": value} for name, value in amounts.items()}
    return msgspec.json.encode({"resources": values}).decode()


def _reconfigure(home: Restored, partition: Partition, changes: list[Change], now_ns: int) -> None:
    found = copy.deepcopy(parsed(home.config))
    config = next(each for each in found["partitions"] if _partition_name(each) == partition.name)
    for change in changes:
        _write(config, change)
    text = msgspec.yaml.encode(found).decode()
    try:
        home.api.update_configuration(v19.UpdateConfigurationRequest(rm_id=home.rm_id, config=text), now_ns=now_ns)
    except ValueError as error:
        raise ChangeError(str(error)) from None


parsed: Final = lru_cache(maxsize=1)(as_data)
"""Returns a configuration as data, which must not be changed; it is read once for all trials."""


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
    """Return the amounts of a max or a limit, each raised by what is in `more`; a resource that it does not limit stays unlimited."""
    said = {name: parse_queue_quantity(str(value), name) for name, value in amounts.items()}
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
