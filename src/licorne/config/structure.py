"""Checks the structure of a partition: its name, its root, its queues and their names, all that needs no arithmetic.

The original checks one partition completely before the next, and inside a partition one concern after the other
over the whole tree (docs/spec/config.md, section 5). `check_partition` keeps that order, because the first fault
found must be the one that the original reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, get_args

from licorne.config.acl import ACL, ACLError
from licorne.config.limits import check_limit_hierarchy, check_partition_limits, check_queue_limits
from licorne.config.model import NodePolicy
from licorne.config.placement import check_rules
from licorne.config.problems import Notes
from licorne.config.quantity import BLANKS
from licorne.config.raw import RawConfig, RawPartition, RawQueue, RawTemplate
from licorne.config.resources import Quantities, check_resources

DEFAULT_PARTITION: Final = "default"
ROOT: Final = "root"
QUEUE_NAME: Final = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
NODE_POLICIES: Final = get_args(NodePolicy)


def check_config(config: RawConfig, quantities: Quantities, notes: Notes) -> dict[int, RawQueue]:
    """Make all checks that decide whether the configuration is accepted.

    Returns the root queue of each partition that has one, by the partition's position.
    """
    names: dict[str, RawPartition] = {}
    roots: dict[int, RawQueue] = {}
    for index, partition in enumerate(config.partitions or ()):
        name = partition_name(partition.name)
        earlier = names.setdefault(name.lower(), partition)
        if earlier is not partition:
            message = f"partition '{name}' is there already, see line {earlier.node.line}; case makes no difference"
            notes.fault("partition-duplicate", partition.spot("name"), message)
        root = check_partition(partition, quantities, notes)
        if root is not None:
            roots[index] = root
    # The original builds the partitions after all checks have passed, and finds some faults only then.
    for root in roots.values():
        if root.name != ROOT:
            message = f"the root queue must be spelled 'root', not '{root.name}'"
            notes.fault("root-spelling", root.spot("name"), message)
        _check_build(root, quantities, notes)
    return roots


def partition_name(name: str) -> str:
    """Return the name under which a partition is known: every spelling of "default", and no name, is `default`."""
    return DEFAULT_PARTITION if name == "" or name.lower() == DEFAULT_PARTITION else name


def check_partition(partition: RawPartition, quantities: Quantities, notes: Notes) -> RawQueue | None:
    """Check one partition, in the original's order; return its root, an inserted one if the text has none."""
    if partition.queues is None:
        if "queues" not in partition.broken:
            notes.fault("queues-missing", partition.spot(), "a partition needs queues, if only an empty list")
        return None
    root = _root(partition, partition.queues)
    for key in ("guaranteed", "max"):
        if root.resources is not None and getattr(root.resources, key) is not None:
            message = "the root queue takes no resources: it has what its nodes have"
            notes.fault("root-resources", root.resources.spot(key), message)
    check_partition_limits(partition, root, notes)
    _check_queue(root, quantities, notes)
    check_resources(root, quantities, notes)
    check_rules(partition, root, notes)
    _check_node_sort(partition, quantities, notes)
    _check_max_applications(root, notes)
    check_limit_hierarchy(root, quantities, notes)
    return root


def _root(partition: RawPartition, queues: list[RawQueue]) -> RawQueue:
    if len(queues) == 1 and queues[0].name.lower() == ROOT:
        queues[0].parent = True
        return queues[0]
    return RawQueue(path=partition.path, node=partition.node, name=ROOT, parent=True, queues=queues)


def _check_queue(queue: RawQueue, quantities: Quantities, notes: Notes) -> None:
    """Check a queue's access control lists, limits and children's names; then the children, one by one."""
    for key in ("adminacl", "submitacl"):
        text = getattr(queue, key).strip(BLANKS)
        if len(re.split(f"[{BLANKS}]+", text)) > 2:
            message = f"'{text[:80]}' has more than two parts: write users, one blank, groups; no blanks after commas"
            notes.fault("acl-parts", queue.spot(key), message)
    check_queue_limits(queue, quantities, notes)
    seen: dict[str, RawQueue] = {}
    for child in queue.queues or ():
        if not QUEUE_NAME.fullmatch(child.name):
            if "name" not in child.broken:
                message = f"'{child.name}' is no queue name: up to 64 letters, digits and any of - _ # @ / :"
                notes.fault("queue-name", child.spot("name"), message)
            continue
        earlier = seen.setdefault(child.name.lower(), child)
        if earlier is not child:
            line = earlier.spot("name").line
            message = f"queue '{child.name}' has a sibling of that name, see line {line}; case makes no difference"
            notes.fault("queue-duplicate", child.spot("name"), message)
    for child in queue.queues or ():
        _check_queue(child, quantities, notes)


def _check_node_sort(partition: RawPartition, quantities: Quantities, notes: Notes) -> None:
    policy = partition.nodesortpolicy
    if policy is None:
        return
    if policy.type not in ("", *NODE_POLICIES):
        message = f"'{policy.type}' is no node sorting policy: {' or '.join(NODE_POLICIES)}, in lower case"
        notes.fault("node-sort-policy", policy.spot("type"), message)
    for resource_type, (weight, spot) in (policy.resourceweights or {}).items():
        quantities.meet(resource_type, spot)
        if weight < 0:
            notes.fault("node-sort-weight", spot, f"the weight of {resource_type} is below zero")
        elif not weight < float("inf"):
            notes.fault("node-sort-weight", spot, f"the weight of {resource_type} is not a finite number")


def _check_max_applications(queue: RawQueue, notes: Notes) -> None:
    above = queue.maxapplications
    for child in queue.queues or ():
        own = child.maxapplications
        if above != 0 and (own > above or own == 0) and "maxapplications" not in child.broken:
            what = f"{own} are more" if own else "none is set, which means unlimited, more"
            message = f"maxapplications of queue '{child.name}': {what} than the {above} of queue '{queue.name}'"
            notes.fault("max-applications-above-parent", child.spot("maxapplications"), message)
        _check_max_applications(child, notes)


# -- found by the original only when it builds the partition --------------------------------------------


def _check_build(queue: RawQueue, quantities: Quantities, notes: Notes) -> None:
    for key in ("adminacl", "submitacl"):
        text = getattr(queue, key)
        try:
            ACL.parse(text)
        except ACLError:
            message = (
                f"'{text[:80]}' has more than two parts: each blank begins another; write users, one blank, groups"
            )
            notes.fault("acl-parts", queue.spot(key), message)
    template = queue.childtemplate
    if template is not None and is_parent(queue) and not is_empty_template(template) and template.resources:
        quantities.of(template.resources.guaranteed)
        quantities.of(template.resources.max)
    for child in queue.queues or ():
        _check_build(child, quantities, notes)


def ancestors(path: str) -> Iterator[str]:
    """Yield the paths of the queues above a queue, from its parent to root."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def is_parent(queue: RawQueue) -> bool:
    """Return whether a queue holds queues rather than applications: it is declared a parent, or has children."""
    return queue.parent or bool(queue.queues)


def is_empty_template(template: RawTemplate) -> bool:
    """Return whether a template sets nothing, so that it counts as absent (docs/spec/config.md, section 9)."""
    resources = template.resources
    maps = (template.properties, resources and resources.guaranteed, resources and resources.max)
    filled = any(key and value.text for values in maps for key, value in (values or {}).items())
    return template.maxapplications == 0 and not filled
