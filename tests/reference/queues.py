"""The queues of a partition, as a configuration makes them (docs/spec/config.md, sections 6 to 9)."""

from __future__ import annotations

from collections.abc import Iterator

from licorne.config.model import LimitConfig, PartitionConfig, QueueConfig, TemplateConfig
from reference.life import watch_queues
from reference.model import Amounts, Limit, Partition, Queue, QueueLimits
from reference.sums import matching_group

NOT_INHERITED = ("priority.policy", "priority.offset")


def find(root: Queue, path: str) -> Queue | None:
    """The queue of this path."""
    return next((queue for queue in root.walk() if queue.path == path), None)


def apply(partition: Partition, config: PartitionConfig) -> None:
    """A first configuration, or another one: everything is set anew."""
    partition.config = config
    _apply(partition.root, config.root)
    partition.number("configuration")
    partition.checks.clear()
    partition.pauses.clear()
    before, partition.limits = partition.limits, dict(_limits(config.root, ""))
    for app in partition.apps.values():  # difference 28: whose group lost a limit is matched again
        lost = [
            queue
            for queue in app.queue.lineage()
            if app.group in before.get(queue.path, QueueLimits()).groups
            and app.group not in partition.limits.get(queue.path, QueueLimits()).groups
        ]
        if app.group is not None and lost:
            app.group = matching_group(partition, app)
    watch_queues(partition)


def _apply(queue: Queue, config: QueueConfig) -> None:
    queue.managed, queue.draining = True, False
    queue.leaf = queue.parent is not None and not config.parent and not config.children
    queue.max_apps = config.max_applications
    own = dict(config.properties)
    if queue.parent is not None:
        own = {**_inherited(queue.parent.properties), **own}
        queue.maximum, queue.guaranteed = dict(config.max or {}), dict(config.guaranteed or {})
    queue.set_properties(own)
    queue.template = None if queue.leaf else _template(config.template, queue)
    for below in config.children:
        if below.name not in queue.children:
            queue.children[below.name] = Queue(below.name, queue, leaf=True, managed=True)
        _apply(queue.children[below.name], below)
    named = {below.name for below in config.children}
    for child in queue.children.values():
        if child.managed and child.name not in named:
            _drain(child)


def _inherited(properties: dict[str, str]) -> dict[str, str]:
    """The properties that a configured child takes from its parent (docs/spec/config.md, section 7)."""
    return {
        name: value
        for name, value in properties.items()
        if name not in NOT_INHERITED and (name != "preemption.policy" or value.lower() == "disabled")
    }


def _template(own: TemplateConfig | None, queue: Queue) -> TemplateConfig | None:
    """Its own, or that of the nearest ancestor (section 9; difference 16)."""
    return own or (queue.parent.template if queue.parent is not None else None)


def _drain(queue: Queue) -> None:
    queue.draining = True
    for child in queue.children.values():
        if child.managed:
            _drain(child)


def create_dynamic(root: Queue, path: str) -> Queue | None:
    """Create the leaf that an application names, with the missing queues on the way; None where that cannot be done.

    A dynamic leaf has the settings of its parent's template, a dynamic parent none; a template is handed down.
    """
    queue, missing = root, path.split(".")[1:]
    while missing and missing[0] in queue.children:
        queue = queue.children[missing.pop(0)]
    if queue.leaf or queue.draining or not missing or not path.startswith(f"{root.name}."):
        return None
    while len(missing) > 1:
        queue.children[missing[0]] = Queue(missing[0], queue, leaf=False, managed=False, template=queue.template)
        queue = queue.children[missing.pop(0)]
    leaf = queue.children[missing[0]] = Queue(missing[0], queue, leaf=True, managed=False)
    template = queue.template
    if template is not None:
        leaf.max_apps = template.max_applications
        leaf.maximum, leaf.guaranteed = dict(template.max or {}), dict(template.guaranteed or {})
        leaf.set_properties(dict(template.properties))
    return leaf


# -- limits of users and groups (docs/spec/config.md, section 5.5) ------------------------------------------------


def _limits(config: QueueConfig, above: str) -> Iterator[tuple[str, QueueLimits]]:
    path = f"{above}.{config.name}" if above else config.name
    found = QueueLimits()
    for limit in config.limits:
        found.users |= dict.fromkeys(limit.users, _limit(limit))
        found.groups |= dict.fromkeys(limit.groups, _limit(limit))
    yield path, found
    for child in config.children:
        yield from _limits(child, path)


def _limit(config: LimitConfig) -> Limit:
    amounts: Amounts = dict(config.max_resources or {})
    return Limit(amounts if any(amounts.values()) else {}, config.max_applications)
