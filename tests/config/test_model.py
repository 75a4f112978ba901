"""The model of a sound configuration: one meaning for each spelling, defaults filled in."""

from __future__ import annotations

import hashlib

import pytest

from licorne.config import DEFAULT_CONFIGURATION, load
from licorne.config.model import FilterConfig, LimitConfig, NodeSortConfig, RuleConfig, TemplateConfig


def only(fields: str) -> str:
    return f"partitions: [{{{fields}}}]"


def test_the_built_in_configuration() -> None:
    (partition,) = load(DEFAULT_CONFIGURATION).partitions
    assert partition.name == "default"
    assert partition.placement_rules == (RuleConfig(name="tag", create=True, value="namespace"),)
    assert (partition.root.name, partition.root.parent, partition.root.submit_acl) == ("root", True, "*")
    assert partition.node_sort == NodeSortConfig("fair", {"vcore": 1.0, "memory": 1.0})
    assert (partition.preemption_enabled, partition.quota_preemption_enabled) == (True, False)
    assert partition.user_group_resolver == ""


@pytest.mark.parametrize(
    ("name", "expected"), [("''", "default"), ("Default", "default"), ("GPU", "GPU"), ("'[rm]x'", "[rm]x")]
)
def test_partition_names(name: str, expected: str) -> None:
    assert load(only(f"name: {name}, queues: []")).partitions[0].name == expected


def test_root_is_inserted_and_names_are_lower_case() -> None:
    root = load(only("queues: [{name: Alpha}, {name: b, queues: [{name: C}]}]")).partitions[0].root
    assert [(queue.name, queue.parent) for queue in (root, *root.children)] == [
        ("root", True), ("alpha", False), ("b", True),
    ]  # fmt: skip
    assert root.children[1].children[0].name == "c"


def test_resources_as_they_are_stored() -> None:
    text = only(
        "queues: [{name: a, resources: {max: {pods: 0, memory: 0}, guaranteed: {vcore: 500m, memory: 0}}}, {name: b}]"
    )
    a, b = load(text).partitions[0].root.children
    assert (a.max, a.guaranteed) == (None, {"vcore": 500, "memory": 0})
    assert (b.max, b.guaranteed) == (None, None)


def test_limits_of_the_partition_are_root_s() -> None:
    text = only(
        "limits: [{users: [u], groups: [g, '*'], maxapplications: 3, maxresources: {memory: 1Ki, vcore: 0}},"
        "{users: ['*'], maxapplications: 1, maxresources: {}}], queues: []"
    )
    assert load(text).partitions[0].root.limits == (
        LimitConfig(users=("u",), groups=("g", "*"), max_resources={"memory": 1024, "vcore": 0}, max_applications=3),
        LimitConfig(users=("*",), max_applications=1),
    )


def test_templates() -> None:
    text = only(
        "queues: [{name: leaf, childtemplate: {maxapplications: 1}},"
        "{name: p, parent: true, childtemplate: {maxapplications: 1, properties: {a: b, c: ' '},"
        "resources: {guaranteed: {vcore: 0}, max: {vcore: 1}}}},"
        "{name: empty, parent: true, childtemplate: {maxapplications: 0, properties: {a: ''}}}]"
    )
    leaf, parent, empty = load(text).partitions[0].root.children
    assert parent.template == TemplateConfig(max_applications=1, properties={"a": "b"}, max={"vcore": 1000})
    assert leaf.template is None
    assert empty.template is None


def test_rules_and_filters() -> None:
    text = only(
        "queues: [], placementrules: [{name: User, create: yes, filter: {type: DENY, users: [u, '9']},"
        "parent: {name: tag, value: Namespace, filter: {groups: [dev*]}}}]"
    )
    (rule,) = load(text).partitions[0].placement_rules
    assert (rule.name, rule.create, rule.value) == ("User", True, "")
    assert rule.filter == FilterConfig(type="deny", users=("u", "9"))
    assert rule.parent == RuleConfig(name="tag", value="Namespace", filter=FilterConfig(groups=("dev*",)))


def test_node_sorting_and_preemption() -> None:
    text = only(
        "queues: [], nodesortpolicy: {type: binpacking, resourceweights: {gpu: 2}},"
        "preemption: {enabled: false, quotapreemptionenabled: true}, usergroupresolver: {type: os}"
    )
    (partition,) = load(text).partitions
    assert partition.node_sort == NodeSortConfig("binpacking", {"gpu": 2.0})
    assert (partition.preemption_enabled, partition.quota_preemption_enabled) == (False, True)
    assert partition.user_group_resolver == "os"


def test_the_checksum_leaves_itself_out() -> None:
    text = "partitions: []\n"
    plain = hashlib.sha256(text.encode()).hexdigest().upper()
    assert load(text).checksum == plain
    assert load(text + f"checksum: {plain}").checksum == plain
    assert load(text + "# é\n").checksum == hashlib.sha256((text + "# é\n").encode()).hexdigest().upper()
