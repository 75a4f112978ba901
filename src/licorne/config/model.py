"""What a configuration says, once it has been read and found sound: the only form in which the core sees it.

The text has many ways to say one thing (a root that may be left out, limits on the partition or on root, a
maximum of zeros that counts as none). They end here: every field below holds the one meaning, defaults
filled in, so that the core never asks how it was spelled. What is derived from a queue's place in the tree
(inherited properties, effective maxima) is not in these records: it belongs to the running queue, because
queues are also created while the scheduler runs.

Resources are maps from resource type to an integer: millicores for `vcore`, bytes or pieces for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

NodePolicy = Literal["fair", "binpacking"]
FilterType = Literal["allow", "deny"]


class FilterConfig(msgspec.Struct, frozen=True):
    """Whom a placement rule serves (docs/spec/placement.md, section 3).

    `type` is what the author wrote, in lower case, and `allow` if nothing was written: unlike the original,
    which takes `DENY` for allow, licorne takes it at its word. The lists are as configured; what of them is a
    name and what a regular expression is decided where the filter is built.
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
    """What each named user, and each named group, may use in a queue and below (docs/spec/config.md, section 5.5).

    The maxima hold for every user or group by itself, not for the list together. `*` stands last and for
    everybody else. `max_resources` None: no limit on resources; `max_applications` 0: none on applications.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: dict[str, int] | None = None
    max_applications: int = 0


class TemplateConfig(msgspec.Struct, frozen=True):
    """What a dynamic leaf gets when it is created under a queue (docs/spec/config.md, section 9).

    Resources are None unless one value is above zero; `max_applications` 0 is no limit.
    """

    max_applications: int = 0
    properties: dict[str, str] = {}
    guaranteed: dict[str, int] | None = None
    max: dict[str, int] | None = None


class QueueConfig(msgspec.Struct, frozen=True):
    """A configured queue and what is below it.

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
    """In which order nodes are tried, and how much each resource type weighs.

    Source: *Sorting Policies*; docs/spec/scheduling.md, section 7.5.

    Weights that are given replace the defaults (vcore 1, memory 1) as a whole. They are finite and not negative.
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
    """A whole configuration. Two with the same `checksum` are the same: a reload of it changes nothing."""

    partitions: tuple[PartitionConfig, ...]
    checksum: str
    text: str


def queue_types(config: QueueConfig) -> Iterator[str]:
    """The resource types that a queue and those below it name, each as often as it is named."""
    template = config.template
    maps = [config.max, config.guaranteed, *(limit.max_resources for limit in config.limits)]
    if template is not None:
        maps += [template.max, template.guaranteed]
    for amounts in maps:
        yield from amounts or ()
    for child in config.children:
        yield from queue_types(child)


def resource_types(config: PartitionConfig) -> Iterator[str]:
    """The resource types that a partition's configuration names, each as often as it is named."""
    yield from config.node_sort.weights
    yield from queue_types(config.root)
