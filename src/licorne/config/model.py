"""The model of a configuration that was read and found valid: the only form in which the core sees it.

The text has many ways to say one thing (a root that may be left out, limits on the partition or on root, a
maximum of zeros that counts as none). The model has one: every field below holds the meaning, with defaults
filled in, so that the core never needs to know how it was spelled. Values that derive from a queue's place in the
tree (inherited properties, effective maxima) are not in the model: they belong to the running queue, because
queues are also created while the scheduler runs.

Resources are maps from resource type to an integer: millicores for `vcore`, bytes or pieces for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

NodePolicy = Literal["fair", "binpacking"]
"""The orders of nodes; their scores are in `licorne.core.nodes.node`."""
FilterType = Literal["allow", "deny"]


class FilterConfig(msgspec.Struct, frozen=True):
    """The users and groups to which a placement rule applies (docs/spec/placement.md, section 3).

    `type` is the configured type in lower case, and `allow` if none is configured. The original takes `DENY` for
    allow; licorne takes it for deny. The lists are as configured; whether an entry is a name or a regular
    expression is decided where the filter is built.
    """

    type: FilterType = "allow"
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class RuleConfig(msgspec.Struct, frozen=True):
    """One placement rule with the rule that makes its parent queue (docs/spec/placement.md, section 2).

    `name` and `value` are as configured. A name that no rule has, or a rule without the value that it needs,
    is not a fault of the configuration: it makes the partition's rule list unusable (docs/spec/config.md, section
    5.11).
    """

    name: str
    create: bool = False
    value: str = ""
    parent: RuleConfig | None = None
    filter: FilterConfig = FilterConfig()


class LimitConfig(msgspec.Struct, frozen=True):
    """The maxima that each named user and group may use in a queue and below (docs/spec/config.md, section 5.5).

    The maxima hold for every user or group by itself, not for all of the list together. `*` comes last and means
    everybody else. `max_resources` None: no limit on resources; `max_applications` 0: none on applications.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: dict[str, int] | None = None
    max_applications: int = 0


class TemplateConfig(msgspec.Struct, frozen=True):
    """The settings of a dynamic leaf that is created under a queue (docs/spec/config.md, section 9).

    Resources are None unless one value is above zero; `max_applications` 0 means no limit.
    """

    max_applications: int = 0
    properties: dict[str, str] = {}
    guaranteed: dict[str, int] | None = None
    max: dict[str, int] | None = None


class QueueConfig(msgspec.Struct, frozen=True):
    """A configured queue and its children.

    `name` is in lower case. `parent` is true if the queue has children or is declared a parent; the root always
    is. `guaranteed` and `max` are as the queue keeps them: None unless one value is above zero (docs/spec/config.md,
    4.1). `properties` are the queue's own, not merged with its parent's. The two access control lists are
    texts that `licorne.config.acl` can parse. `template` is None where it is empty and on leaves.
    `max_applications` 0 is no limit.
    """

    name: str
    parent: bool = False
    children: tuple[QueueConfig, ...] = ()
    guaranteed: dict[str, int] | None = None
    max: dict[str, int] | None = None
    max_applications: int = 0
    properties: dict[str, str] = {}
    admin_acl: str = ""
    submit_acl: str = ""
    template: TemplateConfig | None = None
    limits: tuple[LimitConfig, ...] = ()


class NodeSortConfig(msgspec.Struct, frozen=True):
    """The order in which nodes are tried, and the weight of each resource type in it.

    Source: *Sorting Policies*; docs/spec/scheduling.md, section 7.5.

    Configured weights replace the defaults (vcore 1, memory 1) as a whole. They are finite and not negative.
    """

    policy: NodePolicy
    weights: dict[str, float]


class PartitionConfig(msgspec.Struct, frozen=True):
    """A partition: a cluster of its own, with its own nodes, queues and rules.

    `name` is as configured, without the resource manager's id; every spelling of "default" is `default`.
    """

    name: str
    root: QueueConfig
    placement_rules: tuple[RuleConfig, ...]
    node_sort: NodeSortConfig
    preemption_enabled: bool
    quota_preemption_enabled: bool
    user_group_resolver: str


class Configuration(msgspec.Struct, frozen=True):
    """A whole configuration. Two with the same `checksum` are equal, so a reload with it changes nothing."""

    partitions: tuple[PartitionConfig, ...]
    checksum: str
    text: str


def queue_types(config: QueueConfig) -> Iterator[str]:
    """Yield the resource types that a queue and those below it name, each as often as it is named."""
    template = config.template
    maps = [config.max, config.guaranteed, *(limit.max_resources for limit in config.limits)]
    if template is not None:
        maps += [template.max, template.guaranteed]
    for amounts in maps:
        yield from amounts or ()
    for child in config.children:
        yield from queue_types(child)


def resource_types(config: PartitionConfig) -> Iterator[str]:
    """Yield the resource types that a partition's configuration names, each as often as it is named."""
    yield from config.node_sort.weights
    yield from queue_types(config.root)
