"""The valid and the invalid examples of the specification (docs/spec/config.md, sections 10, 11 and 13)."""

from __future__ import annotations

import pytest

from licorne.config import DEFAULT_CONFIGURATION, ConfigError, check, load

BIG = """
partitions:
  - name: default
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 4.0, memory: 1.0}}
    preemption: {enabled: true, quotapreemptionenabled: true}
    usergroupresolver: {type: os}
    placementrules:
      - name: provided
      - name: tag
        value: namespace
        create: true
        parent: {name: fixed, value: root.tenants}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: batch
            maxapplications: 20
            resources:
              guaranteed: {vcore: 10, memory: 40Gi}
              max: {vcore: 40, memory: 160Gi, nvidia.com/gpu: 4}
            properties: {application.sort.policy: fair, priority.offset: "5", preemption.delay: 2m}
            limits:
              - {limit: named, users: [alice], maxapplications: 10, maxresources: {vcore: 20}}
              - {limit: others, users: ["*"], maxapplications: 5}
          - name: tenants
            parent: true
            childtemplate:
              maxapplications: 4
              resources: {guaranteed: {vcore: 500m}, max: {vcore: 8, memory: 32G}}
"""
TWO_PARTITIONS = """
partitions:
  - name: default
    queues:
      - name: a
      - {name: b, adminacl: "ops opsgroup", submitacl: " devgroup,testgroup"}
  - name: gpu
    queues: [{name: a}]
"""
PARTITION_LIMITS = """
partitions:
  - name: default
    limits:
      - {limit: g, groups: [dev, "*"], maxresources: {memory: 10G}}
    queues: [{name: q}]
"""


def partition(fields: str) -> str:
    return f"partitions: [{{name: default, {fields}}}]"


def root(fields: str) -> str:
    return partition(f"queues: [{{name: root, {fields}}}]")


def queue(fields: str) -> str:
    return root(f"queues: [{{name: q, {fields}}}]")


def rule(fields: str, queues: str = "[{name: a}, {name: b, parent: true}]") -> str:
    return partition(f"placementrules: [{{{fields}}}], queues: [{{name: root, queues: {queues}}}]")


VALID = {
    "10.1": partition("queues: [{name: root, submitacl: '*'}]"),
    "10.2": BIG,
    "10.3": TWO_PARTITIONS,
    "10.4": PARTITION_LIMITS,
    "1.6 built in": DEFAULT_CONFIGURATION,
    "1.1 empty text": "",
    "no document": "# nothing\n",
    "null document": "---\n---\npartitions: 5\n",
    "no partitions": "partitions: []",
    "no queues": partition("queues: []"),
    "2 checksum": "partitions: []\nchecksum: ABC\n",
    "3 recovery passes the pattern": root("queues: [{name: '@recovery@'}]"),
    "4.1 max of zeros": queue("resources: {max: {vcore: 0}}"),
    "5.1 no root": partition("queues: [{name: a}, {name: root}]"),
    "5.1.4 null max": root("resources: {max: null}"),
    "5.5.2 wildcard last": queue("limits: [{users: [a, '*'], maxapplications: 1}]"),
    "5.5.4 wildcard after a name": queue("limits: [{groups: [dev, '*'], maxapplications: 1}]"),
    "5.5.5 partly zero": queue("limits: [{users: [a], maxresources: {vcore: 0, memory: 1}}]"),
    "5.5.8 the name root is exempt": root(
        "queues: [{name: root, resources: {max: {vcore: 1}}, limits: [{users: [a], maxresources: {vcore: 2}}]}]"
    ),
    "5.7 zero weight": partition("nodesortpolicy: {resourceweights: {vcore: 0}}, queues: []"),
    "5.11 unknown property": queue("properties: {no.such: thing, priority.offset: five}"),
    "5.11 unknown rule": rule("name: nonsense"),
    "5.11 recovery rule": rule("name: recovery"),
    "5.11 tag without a value": rule("name: tag"),
    "5.11 full path with a dynamic parent": rule("name: fixed, value: root.a, parent: {name: user}"),
    "9 junk template of a leaf": queue("childtemplate: {resources: {max: {vcore: junk}}}"),
    "13 template of an empty text": queue("parent: true, childtemplate: {resources: {max: {memory: ''}}}"),
    "13.1 saturated sum": root(
        "queues: [{name: p, resources: {guaranteed: {a: 9223372036854775807}}, queues: ["
        "{name: x, resources: {guaranteed: {a: 9223372036854775807}}},"
        "{name: y, resources: {guaranteed: {a: 9223372036854775807}}}]}]"
    ),
    "13.2 null elements": "partitions: [null, {queues: [null, {name: q, limits: [null]}], placementrules: [null]}]",
    "13.2 null names": queue("limits: [{users: [a, null, b], maxapplications: 1}]"),
    "13.3 same text": partition(
        "limits: [{users: [u], maxresources: {vcore: 1}}],"
        "queues: [{name: root, limits: [{users: [u], maxresources: {vcore: '1'}}]}]"
    ),
    "13.3 an empty list of limits is none": partition(
        "limits: [], queues: [{name: root, limits: [{users: [u], maxapplications: 1}]}]"
    ),
    "13.7 merge key": "partitions: [{queues: [{name: root, queues: [&a {name: a, maxapplications: 1}, {<<: *a, name: b}]}]}]",
    "13.7 byte order mark": "\ufeffpartitions: []",
    "13.8 POSIX class": rule("name: user, filter: {users: ['[[:alpha:]]+']}"),
    "13.9 blanks": queue('resources: {max: {memory: "\u2003 10 \\tGi "}}'),
    "13 tab in a list": queue('submitacl: "a\\tb"'),
    "placement 7: Fixed is not checked": rule("name: Fixed, value: nowhere"),
    "placement 7: rooted with create": rule("name: fixed, value: rooted, create: true"),
    "placement 7: below a parent": rule("name: fixed, value: b.c, create: true"),
    "placement 7: dynamic rest": rule("name: user, create: true, parent: {name: fixed, value: b}"),
}

INVALID = {
    "11.1": (partition("statedump: true, queues: []"), "yaml-key-unknown"),
    "11.2": (root("resources: {max: {memory: 1G}}"), "root-resources"),
    "11.3 dot": (root("queues: [{name: a.b}]"), "queue-name"),
    "11.3 long": (root(f"queues: [{{name: {'a' * 65}}}]"), "queue-name"),
    "11.4": (root("queues: [{name: A}, {name: a}]"), "queue-duplicate"),
    "11.5": (queue("resources: {guaranteed: {vcore: 2}, max: {vcore: 1500m}}"), "guaranteed-above-max"),
    "11.6": (
        queue("resources: {max: {vcore: 2}}, queues: [{name: u, queues: [{name: g, resources: {max: {vcore: 3}}}]}]"),
        "max-above-parent",
    ),
    "11.7": (
        queue(
            "resources: {guaranteed: {vcore: 2}}, queues: [{name: a, resources: {guaranteed: {vcore: 1}}},"
            "{name: b, resources: {guaranteed: {vcore: 1500m}}}]"
        ),
        "guaranteed-sum-above-parent",
    ),
    "11.8": (
        queue(
            "resources: {max: {vcore: 2}}, queues: [{name: a, resources: {guaranteed: {vcore: 1}}},"
            "{name: b, resources: {guaranteed: {vcore: 1500m}}}]"
        ),
        "guaranteed-sum-above-max",
    ),
    "11.9": (queue("resources: {max: {memory: 100m}}"), "quantity-suffix"),
    "11.10 sign": (queue("resources: {max: {vcore: -1}}"), "quantity-invalid"),
    "11.10 point": (queue("resources: {max: {vcore: 1.5}}"), "quantity-invalid"),
    "11.10 exponent": (queue("resources: {max: {memory: 1e3}}"), "quantity-invalid"),
    "11.10 two letters": (queue("resources: {max: {memory: 10KB}}"), "quantity-invalid"),
    "11.10 empty": (queue("resources: {max: {memory: ''}}"), "quantity-invalid"),
    "11.11 K": (queue("resources: {max: {memory: 10K}}"), "quantity-suffix"),
    "11.11 mi": (queue("resources: {max: {vcore: 10mi}}"), "quantity-suffix"),
    "11.12": (queue("resources: {max: {memory: 10E}}"), "quantity-overflow"),
    "11.13": (queue("submitacl: 'a b c'"), "acl-parts"),
    "11.13 at building": (queue("submitacl: 'a b '"), "acl-parts"),
    "11.14 above": (
        queue("maxapplications: 2, queues: [{name: c, maxapplications: 3}]"),
        "max-applications-above-parent",
    ),
    "11.14 unset": (queue("maxapplications: 2, queues: [{name: c}]"), "max-applications-above-parent"),
    "11.15 nobody": (queue("limits: [{maxapplications: 1}]"), "limit-nobody"),
    "11.15 nothing": (queue("limits: [{users: [u]}]"), "limit-empty"),
    "11.16": (queue("limits: [{users: [u], maxresources: {vcore: 0}}]"), "limit-zero"),
    "11.17": (
        queue("limits: [{users: [u], maxapplications: 1}, {users: [u], maxapplications: 1}]"),
        "limit-duplicate",
    ),
    "11.18": (
        queue("limits: [{users: ['*'], maxapplications: 1}, {users: [u], maxapplications: 1}]"),
        "limit-after-wildcard",
    ),
    "11.19": (queue("limits: [{groups: ['*'], maxapplications: 1}]"), "limit-group-wildcard-alone"),
    "11.20 max": (
        queue("resources: {max: {vcore: 1}}, limits: [{users: [u], maxresources: {vcore: 2}}]"),
        "limit-above-queue-max",
    ),
    "11.20 applications": (
        queue("maxapplications: 2, limits: [{users: [u], maxapplications: 3}]"),
        "limit-above-queue-applications",
    ),
    "11.21": (
        queue(
            "limits: [{users: [u], maxresources: {vcore: 1}}],"
            "queues: [{name: c, limits: [{users: [u], maxresources: {vcore: 2}}]}]"
        ),
        "limit-above-parent-max",
    ),
    "11.22": (
        queue(
            "limits: [{users: ['*'], maxapplications: 2}],"
            "queues: [{name: c, limits: [{users: [u], maxapplications: 3}]}]"
        ),
        "limit-above-parent-applications",
    ),
    "11.23": (
        partition(
            "limits: [{users: [u], maxapplications: 1}],"
            "queues: [{name: root, limits: [{users: [u], maxapplications: 2}]}]"
        ),
        "limit-partition-root",
    ),
    "11.24 user": (queue("limits: [{users: [1abc], maxapplications: 1}]"), "limit-name"),
    "11.24 group": (queue("limits: [{groups: [a@b], maxapplications: 1}]"), "limit-name"),
    "11.25": ("partitions: [{name: default, queues: []}, {name: DEFAULT, queues: []}]", "partition-duplicate"),
    "11.26": ("partitions: [{name: default}]", "queues-missing"),
    "11.27 random": (partition("nodesortpolicy: {type: random}, queues: []"), "node-sort-policy"),
    "11.27 Fair": (partition("nodesortpolicy: {type: Fair}, queues: []"), "node-sort-policy"),
    "11.27 weight": (partition("nodesortpolicy: {resourceweights: {vcore: -1}}, queues: []"), "node-sort-weight"),
    "11.28 name": (rule("name: my-rule"), "rule-name"),
    "11.28 create": (rule("name: user, create: maybe"), "yaml-type"),
    "11.28 parent": (rule("name: user, parent: [{name: tag}]"), "yaml-type"),
    "11.29 type": (rule("name: user, filter: {type: maybe}"), "filter-type"),
    "11.29 expression": (rule("name: user, filter: {users: ['a[']}"), "filter-entry"),
    "11.29 name": (rule("name: user, filter: {users: [9abc]}"), "filter-entry"),
    "11.30": (rule("name: fixed, value: nope"), "rule-path-missing"),
    "1.2 capitals": (queue("maxApplications: 1"), "yaml-key-unknown"),
    "2 scalar policy": (partition("nodesortpolicy: fair, queues: []"), "yaml-type"),
    "5.1 ROOT": (partition("queues: [{name: ROOT}]"), "root-spelling"),
    "5.1.4 empty map": (root("resources: {max: {}}"), "root-resources"),
    "5.5.8 ROOT is not exempt": (
        root("queues: [{name: ROOT, resources: {max: {a: 1}}, limits: [{users: [u], maxresources: {a: 2}}]}]"),
        "limit-above-queue-max",
    ),
    "5.5.6 empty map is none": (queue("limits: [{users: [u], maxresources: {}}]"), "limit-empty"),
    "5.9 zero below a limit": (
        queue(
            "limits: [{users: [u], maxapplications: 2}],"
            "queues: [{name: c, limits: [{users: [u], maxresources: {vcore: 1}}]}]"
        ),
        "limit-above-parent-applications",
    ),
    "5.10 template": (queue("parent: true, childtemplate: {resources: {max: {vcore: junk}}}"), "quantity-invalid"),
    "13 zero max is enforced": (
        queue("resources: {max: {vcore: 0}}, queues: [{name: c, resources: {guaranteed: {vcore: 1m}}}]"),
        "guaranteed-sum-above-max",
    ),
    "13 template with an empty text": (
        queue("parent: true, childtemplate: {maxapplications: 1, resources: {max: {memory: ''}}}"),
        "quantity-invalid",
    ),
    "13.2 null in a map": (queue("resources: {max: {vcore: }}"), "quantity-invalid"),
    "13.2 no names left": (queue("limits: [{users: [null], maxapplications: 1}]"), "limit-nobody"),
    "13.2 empty limit": (queue("limits: [{}]"), "limit-nobody limit-empty"),
    "13.3 empty list differs": (
        partition(
            "limits: [{users: [u], groups: [], maxapplications: 1}],"
            "queues: [{name: root, limits: [{users: [u], maxapplications: 1}]}]"
        ),
        "limit-partition-root",
    ),
    "13.3 other spelling": (
        partition(
            "limits: [{users: [u], maxresources: {vcore: 1}}],"
            "queues: [{name: root, limits: [{users: [u], maxresources: {vcore: 1000m}}]}]"
        ),
        "limit-partition-root",
    ),
    "13.6 licorne: nan": (partition("nodesortpolicy: {resourceweights: {a: .nan}}, queues: []"), "node-sort-weight"),
    "13.6 licorne: inf": (partition("nodesortpolicy: {resourceweights: {a: .inf}}, queues: []"), "node-sort-weight"),
    "13.8 look-ahead": (rule("name: user, filter: {users: ['(?=x)']}"), "filter-entry"),
    "13.8 repetition": (rule("name: user, filter: {users: ['a{1001}']}"), "filter-entry"),
    "13.9 line end": (root('queues: [{name: "a\\n"}]'), "queue-name"),
    "13 one blank": (queue("submitacl: '   '"), "acl-parts"),
    "13 star in blanks": (queue("submitacl: ' * '"), "acl-parts"),
    "13 two blanks": (queue("submitacl: 'a  b'"), "acl-parts"),
    "13 leading blank": (queue("submitacl: ' a b'"), "acl-parts"),
    "13 tabs divide, at validation": (queue('submitacl: "a\\tb\\tc"'), "acl-parts"),
    "placement 7: fixed without a value": (rule("name: fixed"), "rule-path-missing"),
    "placement 7: root is no leaf": (rule("name: fixed, value: root"), "rule-path-not-leaf"),
    "placement 7: a parent": (rule("name: fixed, value: b, create: true"), "rule-path-not-leaf"),
    "placement 7: below a leaf": (rule("name: fixed, value: a.x, create: true"), "rule-path-below-leaf"),
    "placement 7: Root.a": (rule("name: fixed, value: Root.a"), "rule-path-missing"),
    "placement 7: capitals are not found": (rule("name: fixed, value: c", "[{name: C}]"), "rule-path-missing"),
    "placement 7: two full paths": (
        rule("name: fixed, value: root.a, parent: {name: fixed, value: root.b}"),
        "rule-fixed-parent",
    ),
    "placement 7: children are not enough": (
        rule("name: user, parent: {name: fixed, value: p}", "[{name: p, queues: [{name: c}]}]"),
        "rule-path-leaf",
    ),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_valid(text: str) -> None:
    assert check(text).faults == ()
    load(text)


@pytest.mark.parametrize(("text", "broken"), INVALID.values(), ids=INVALID.keys())
def test_invalid(text: str, broken: str) -> None:
    assert [fault.rule for fault in check(text).faults] == broken.split()
    with pytest.raises(ConfigError) as refusal:
        load(text)
    assert refusal.value.problems == check(text).faults


def test_order_of_the_rules_is_the_original_s() -> None:
    """A fully qualified parent is looked for in all rules before any path is walked (13.10)."""
    text = partition(
        "placementrules: [{name: fixed, value: nope},"
        "{name: fixed, value: root.a, parent: {name: fixed, value: b}}], queues: [{name: a}]"
    )
    assert [fault.rule for fault in check(text).faults] == ["rule-fixed-parent", "rule-path-missing"]


def test_all_types_that_are_beyond_a_bound_are_named() -> None:
    """So that a file is not mended and refused once for each of them."""
    resources = "{guaranteed: {vcore: 2, memory: 10Gi, gpu: 1}, max: {vcore: 1500m, memory: 5Gi, gpu: 1}}"
    [fault] = check(queue(f"resources: {resources}")).faults
    assert fault.message == "queue 'q' is guaranteed more than its max: memory 10Gi > 5Gi, vcore 2 > 1500m"
