"""Warnings about queues, limits and their maps that are legal but surely not meant, or differ in the original.

A warning does not refuse the configuration. Each says what will happen, since the author expects something else.
Placement rules, amounts, and what another part leaves without effect have files of their own,
`licorne.config.lint_rules`, `lint_amounts` and `lint_effect`; some warnings are noted by the code that finds
their cause (`number-spelling` in the reader, `guaranteed-sum-lost` among the sums).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from licorne.config.acl import ACL, ACLError, lets_everybody_in
from licorne.config.lint_amounts import lint_amounts, meant_resource
from licorne.config.lint_effect import lint_effect
from licorne.config.lint_rules import lint_rules
from licorne.config.problems import NO_PARTITION, Notes
from licorne.config.properties import APPLICATION_SORT_POLICY, PROPERTIES, QUOTA_PREEMPTION_DELAY, bad_properties
from licorne.config.quantity import QueueQuantityError, parse_queue_quantity
from licorne.config.raw import RawConfig, RawPartition, RawQueue, RawResources, Value
from licorne.config.simulation import SIMULATED
from licorne.config.structure import is_empty_template, is_parent

_RECOVERY: Final = "@recovery@"
_RESOLVERS: Final = ("", "os", "ldap", "test")


def lint(config: RawConfig, roots: Mapping[int, RawQueue], notes: Notes) -> None:
    """Note the warnings for a configuration, be it faulty or not."""
    if not config.partitions and "partitions" not in config.broken:
        message = "there is no partition, so every node and every application is refused; is this the right file?"
        notes.warn(NO_PARTITION, config.spot("partitions"), message)
    for index, partition in enumerate(config.partitions or ()):
        _lint_partition(partition, notes)
        lint_rules(partition, notes)
        root = roots.get(index)
        if root is not None:
            quota_preemption = bool(partition.preemption and partition.preemption.quotapreemptionenabled)
            if root.maxapplications:
                message = (
                    "a reload that changes root's maxapplications takes effect; the original keeps the first value"
                )
                notes.warn("root-max-applications", root.spot("maxapplications"), message)
            _lint_queue(root, False, quota_preemption, notes)
            _lint_open(root, notes)
            lint_effect(partition, root, notes)


def _lint_partition(partition: RawPartition, notes: Notes) -> None:
    if partition.name.startswith("["):
        message = "a name that starts with '[' is taken as qualified with a resource manager's id"
        notes.warn("partition-name-qualified", partition.spot("name"), message)
    resolver = partition.usergroupresolver
    if resolver is not None and resolver.type not in _RESOLVERS:
        message = f"'{resolver.type}' is no user group resolver: os, ldap or test; each user is in a group of that name"
        notes.warn("resolver-unknown", resolver.spot("type"), message)
    policy = partition.nodesortpolicy
    weights = policy.resourceweights if policy is not None else None
    if policy is not None and weights and not any(weight for weight, _ in weights.values()):
        message = "all weights are zero, so all nodes have the same score; leave the weights out for the default"
        notes.warn("weights-zero", policy.spot("resourceweights"), message)
    for name, (_, spot) in (weights or {}).items():
        meant = meant_resource(name)
        if meant:
            message = f"no node has '{name}', so this weight has no effect; the resource is called '{meant}'"
            notes.warn("resource-name", spot, message)


def _lint_queue(queue: RawQueue, below_capitals: bool, quota_preemption: bool, notes: Notes) -> None:
    if queue.name.lower() == _RECOVERY:
        message = f"'{_RECOVERY}' is the scheduler's own queue for recovered applications; give this one another name"
        notes.warn("queue-recovery", queue.spot("name"), message)
    below_capitals = below_capitals or queue.name != queue.name.lower()
    if below_capitals and queue.limits:
        message = "these limits are applied; in the original limits on or below a queue spelled with capitals never are"
        notes.warn("limit-capitals", queue.spot("limits"), message)
    lint_amounts(queue, notes)
    _lint_resources(queue.resources, notes)
    _lint_properties(queue.properties, quota_preemption, notes)
    _lint_acls(queue, notes)
    _lint_template(queue, quota_preemption, notes)
    for child in queue.queues or ():
        _lint_queue(child, below_capitals, quota_preemption, notes)


def _lint_resources(resources: RawResources | None, notes: Notes) -> None:
    if resources is None:
        return
    for key in ("guaranteed", "max"):
        amounts: dict[str, Value] | None = getattr(resources, key)
        if amounts and all(_is_zero(value.text, resource_type) for resource_type, value in amounts.items()):
            message = f"a {key} of zeros alone counts as not set" + (": the queue is unlimited" if key == "max" else "")
            notes.warn("resources-zero", resources.spot(key), message)


def _is_zero(text: str, resource_type: str) -> bool:
    try:
        return parse_queue_quantity(text, resource_type) == 0
    except QueueQuantityError:
        return False


def _lint_properties(properties: dict[str, Value] | None, quota_preemption: bool, notes: Notes) -> None:
    if not properties:
        return
    for key, value in properties.items():
        if key not in PROPERTIES and key not in SIMULATED:
            close = difflib.get_close_matches(key.lower().replace("_", ".")[:80], PROPERTIES, 1, 0.75)
            meant = f"; did you mean '{close[0]}'?" if close else ""
            notes.warn("property-unknown", value.spot, f"the property '{key}' is unknown and says nothing{meant}")
    texts = {key: value.text for key, value in properties.items()}
    for key, text, expects in bad_properties(texts):
        message = f"'{text}' is no value of {key}, so the default stands; expected is {expects}"
        notes.warn("property-value", properties[key].spot, message)
    if texts.get(APPLICATION_SORT_POLICY) == "stateaware":
        message = "stateaware is fifo, unless the resource manager has application.state.starting on"
        notes.warn("sort-policy-stateaware", properties[APPLICATION_SORT_POLICY].spot, message)
    if QUOTA_PREEMPTION_DELAY in texts and not quota_preemption:
        message = "the delay does nothing, because the partition's preemption.quotapreemptionenabled is not set"
        notes.warn("quota-preemption-off", properties[QUOTA_PREEMPTION_DELAY].spot, message)


def _lint_acls(queue: RawQueue, notes: Notes) -> None:
    if lets_everybody_in(queue.adminacl):
        message = (
            "everybody may administer this queue and all below it, and so also submit to them; "
            "name those who may, as in 'ann,ben ops'"
        )
        notes.warn("acl-open-admin", queue.spot("adminacl"), message)
    for key in ("adminacl", "submitacl"):
        text = getattr(queue, key)
        try:
            acl = ACL.parse(text)
        except ACLError:
            continue
        if acl.dropped:
            names = ", ".join(f"'{name}'" for name in acl.dropped)
            notes.warn("acl-name-dropped", queue.spot(key), f"no legal names, left out of the list: {names}")
        users, _, groups = text.partition(" ")
        if (users.endswith(",") or groups.startswith(",")) and groups.strip():
            message = (
                f"the blank divides users from groups, so this lets in the user{'s' * (users.count(',') > 1)} "
                f"{users.strip(',')!r} and the groups {groups.strip(',')!r}; "
                f"for a list of users alone write '{users.strip(',')},{groups.strip(',')}'"
            )
            notes.warn("acl-blank", queue.spot(key), message)
        if users == "*" and groups.strip():
            message = "'*' lets everybody in, so the groups say nothing"
            notes.warn("acl-groups-ignored", queue.spot(key), message)


def _lint_open(queue: RawQueue, notes: Notes) -> None:
    """Warn of the topmost queues to which everybody may submit, if queues below them say who may."""
    if lets_everybody_in(queue.submitacl):
        stricter = [name for below in queue.queues or () for name in _stricter(below, f"{queue.name}.")]
        if stricter:
            shown = ", ".join(stricter[:3]) + (f" and {len(stricter) - 3} more" if len(stricter) > 3 else "")
            message = (
                f"everybody may submit here and to all queues below, so the submitacl of {shown} keeps nobody out; "
                "give this one to those alone who may submit everywhere"
            )
            notes.warn("acl-open-above", queue.spot("submitacl"), message)
        return
    for child in queue.queues or ():
        _lint_open(child, notes)


def _stricter(queue: RawQueue, prefix: str) -> Iterator[str]:
    """Yield the names of the queue and those below it that say who may submit, and do not let everybody in."""
    if queue.submitacl.strip() and not lets_everybody_in(queue.submitacl):
        yield prefix + queue.name
    for child in queue.queues or ():
        yield from _stricter(child, f"{prefix}{queue.name}.")


def _lint_template(queue: RawQueue, quota_preemption: bool, notes: Notes) -> None:
    template = queue.childtemplate
    if template is None:
        return
    if not is_parent(queue):
        notes.warn("template-on-leaf", queue.spot("childtemplate"), "the queue is a leaf, so its template does nothing")
    elif is_empty_template(template) and not template.broken:
        message = "the template says nothing and counts as not written: that of a queue above is used"
        notes.warn("template-empty", queue.spot("childtemplate"), message)
    _lint_resources(template.resources, notes)
    _lint_properties(template.properties, quota_preemption, notes)
