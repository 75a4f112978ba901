"""Builds the model from a configuration without faults: each value in its one meaning, with defaults filled in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, cast

from licorne.config import model
from licorne.config.quantity import BLANKS, MAX_QUANTITY
from licorne.config.raw import RawConfig, RawFilter, RawLimit, RawPartition, RawQueue, RawRule, RawTemplate, Value
from licorne.config.resources import Quantities, stored
from licorne.config.structure import is_empty_template, is_parent, partition_name

DEFAULT_WEIGHTS: Final = {"vcore": 1.0, "memory": 1.0}
_CHECKSUM: Final = re.compile(r"checksum: \S{64}(?=\s*\Z)")


def build(config: RawConfig, roots: Mapping[int, RawQueue], quantities: Quantities, text: str) -> model.Configuration:
    """Build the model of a configuration in which no check found a fault."""
    partitions = [
        _partition(partition, roots[index], quantities) for index, partition in enumerate(config.partitions or ())
    ]
    return model.Configuration(partitions=tuple(partitions), checksum=checksum(text), text=text)


def checksum(text: str) -> str:
    """Return the SHA-256 of the text in capitals, a checksum at its end left out (docs/spec/config.md, section 1.4)."""
    bare = _CHECKSUM.sub("", text)
    return hashlib.sha256(bare.encode("utf-8", "surrogatepass")).hexdigest().upper()


def _partition(partition: RawPartition, root: RawQueue, quantities: Quantities) -> model.PartitionConfig:
    policy = partition.nodesortpolicy
    weights = {name: weight for name, (weight, _) in ((policy and policy.resourceweights) or {}).items()}
    preemption = partition.preemption
    enabled = preemption.enabled if preemption is not None else None
    return model.PartitionConfig(
        name=partition_name(partition.name),
        root=_queue(root, quantities),
        placement_rules=tuple(_rule(rule) for rule in partition.placementrules or ()),
        node_sort=model.NodeSortConfig(
            policy=cast("model.NodePolicy", (policy and policy.type) or "fair"),
            weights=weights or dict(DEFAULT_WEIGHTS),
        ),
        preemption_enabled=True if enabled is None else enabled,
        quota_preemption_enabled=bool(preemption is not None and preemption.quotapreemptionenabled),
        user_group_resolver=partition.usergroupresolver.type if partition.usergroupresolver is not None else "",
    )


def _queue(queue: RawQueue, quantities: Quantities) -> model.QueueConfig:
    return model.QueueConfig(
        name=queue.name.lower(),
        parent=is_parent(queue),
        children=tuple(_queue(child, quantities) for child in queue.queues or ()),
        guaranteed=stored(quantities.guaranteed(queue)),
        max=stored(quantities.maximum(queue)),
        max_applications=_bounded(queue.maxapplications),
        properties=_texts(queue.properties),
        admin_acl=queue.adminacl,
        submit_acl=queue.submitacl,
        template=_template(queue.childtemplate, quantities) if is_parent(queue) else None,
        limits=tuple(_limit(limit, quantities) for limit in queue.limits or ()),
    )


def _template(template: RawTemplate | None, quantities: Quantities) -> model.TemplateConfig | None:
    if template is None or is_empty_template(template):
        return None
    resources = template.resources
    return model.TemplateConfig(
        max_applications=_bounded(template.maxapplications),
        properties={
            key: text for key, text in _texts(template.properties).items() if key.strip(BLANKS) and text.strip(BLANKS)
        },
        guaranteed=stored(quantities.of(resources.guaranteed)) if resources else None,
        max=stored(quantities.of(resources.max)) if resources else None,
    )


def _limit(limit: RawLimit, quantities: Quantities) -> model.LimitConfig:
    return model.LimitConfig(
        users=_names(limit.users),
        groups=_names(limit.groups),
        max_resources=dict(quantities.of(limit.maxresources)) if limit.maxresources else None,
        max_applications=_bounded(limit.maxapplications),
    )


def _rule(rule: RawRule) -> model.RuleConfig:
    return model.RuleConfig(
        name=rule.name,
        create=rule.create,
        value=rule.value,
        parent=_rule(rule.parent) if rule.parent is not None else None,
        filter=_filter(rule.filter),
    )


def _filter(rule_filter: RawFilter | None) -> model.FilterConfig:
    if rule_filter is None:
        return model.FilterConfig()
    kind = cast("model.FilterType", rule_filter.type.lower() or "allow")
    return model.FilterConfig(type=kind, users=_names(rule_filter.users), groups=_names(rule_filter.groups))


def _names(values: list[Value] | None) -> tuple[str, ...]:
    return tuple(value.text for value in values or ())


def _texts(values: Mapping[str, Value] | None) -> dict[str, str]:
    return {key: value.text for key, value in (values or {}).items()}


def _bounded(number: int) -> int:
    """Bound a maximum of applications to a signed integer of 64 bits, as all quantities are.

    Source: docs/spec/design.md, rule 7.
    """
    return min(number, MAX_QUANTITY)
