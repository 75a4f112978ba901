"""Warnings of configurations that are legal, but surely not meant, or that mean something else in the original."""

from __future__ import annotations

import pytest

from config.test_lint_cluster import ROWS
from licorne.config import DEFAULT_CONFIGURATION, Report, check
from licorne.config.rules import WARNING_RULES


def queue(fields: str) -> str:
    return f"partitions: [{{queues: [{{name: root, queues: [{{name: q, {fields}}}]}}]}}]"


def rule(fields: str) -> str:
    return f"partitions: [{{placementrules: [{{{fields}}}], queues: [{{name: root, queues: [{{name: a}}]}}]}}]"


def with_filter(fields: str) -> str:
    return rule(f"name: user, filter: {{{fields}}}")


def fenced(fence: str, child: str, more: str = "", rules: str = "") -> str:
    """Queue root.f with these properties, below it the queue q with these, and what stands beside that one."""
    queues = f"{{name: f, properties: {{{fence}}}, queues: [{{name: q, properties: {{{child}}}}}{more}]}}"
    return f"partitions: [{{placementrules: [{rules}], queues: [{{name: root, queues: [{queues}, {{name: g}}]}}]}}]"


def rules(text: str, submit: str = "submitacl: '*', ") -> str:
    queues = f"[{{name: root, {submit}queues: [{{name: a}}, {{name: p, parent: true}}]}}]"
    return f"partitions: [{{placementrules: [{text}], queues: {queues}}}]"


EFFECTS = [
    # a priority offset below a priority fence, and what makes it count after all
    (fenced("priority.policy: fence", "priority.offset: 5"), "offset-fenced"),
    (fenced("priority.policy: Fence", "priority.offset: -5"), "offset-fenced"),
    (fenced("priority.policy: fence", "priority.offset: 5", ", {name: r}"), ""),
    (fenced("priority.policy: default", "priority.offset: 5"), ""),
    (fenced("preemption.policy: fence", "priority.offset: 5"), ""),  # it still decides which queue is served first
    (fenced("priority.policy: fence", "priority.offset: 0"), ""),
    (fenced("priority.policy: fence, priority.offset: 5", "priority.policy: fence"), ""),
    (fenced("priority.policy: fence", "priority.offset: 5", "", "{name: user, create: true}"), ""),
    (fenced("", "priority.policy: fence", ", {name: r, queues: [{name: s, properties: {priority.offset: 5}}]}"), ""),
    # a rule after one that takes all, and what lets applications come to it after all
    (rules("{name: fixed, value: a}, {name: user}"), "rule-unreached"),
    (rules("{name: Fixed, value: ROOT.A}, {name: user}, {name: provided}"), "rule-unreached"),
    (rules("{name: user}, {name: fixed, value: a}"), ""),
    (rules("{name: fixed, value: a}, {name: user}", ""), ""),  # whoever may not submit to root.a comes to the next rule
    (rules("{name: fixed, value: a, filter: {users: [ann]}}, {name: user}"), ""),
    (rules("{name: fixed, value: b, create: true}, {name: user}"), ""),  # a dynamic queue may be draining
    (rules("{name: fixed, value: a}, {name: nobody}"), "rule-unknown"),
]

LINTS = [
    *EFFECTS,
    ("", "config-empty"),
    ("partitions: []", "config-empty"),
    ("partitions: []\n---\n", "config-empty document-ignored"),
    (
        "partitions: [{queues: []}]\nextra: {a: b}\ndeadlockdetectionenabled: false\ndeadlocktimeoutseconds: 60",
        "key-shown key-shown key-shown",
    ),
    ("partitions: [{queues: [null]}]", "null-dropped"),
    (queue("maxapplications: 010"), "number-spelling"),
    (queue("maxapplications: 1.9"), "number-spelling"),
    ("partitions: [{name: '[rm]x', queues: []}]", "partition-name-qualified"),
    ("partitions: [{usergroupresolver: {type: OS}, queues: []}]", "resolver-unknown"),
    ("partitions: [{nodesortpolicy: {resourceweights: {vcore: 0}}, queues: []}]", "weights-zero"),
    (queue("queues: [{name: '@Recovery@'}]"), "queue-recovery"),
    (queue("resources: {max: {vcore: 0, memory: 0G}}"), "resources-zero"),
    (queue("parent: true, childtemplate: {maxapplications: 1, resources: {max: {a: 0}}}"), "resources-zero"),
    (
        queue("resources: {guaranteed: {vcore: 1}}, queues: [{name: c, resources: {guaranteed: {memory: 1}}}]"),
        "guaranteed-sum-lost",
    ),
    (queue("childtemplate: {maxapplications: 1}"), "template-on-leaf"),
    (queue("parent: true, childtemplate: {}"), "template-empty"),
    ("partitions: [{queues: [{name: root, maxapplications: 5}]}]", "root-max-applications"),
    (queue("submitacl: 'alice,9bob'"), "acl-name-dropped"),
    (queue('submitacl: "alice\\tbob"'), "acl-name-dropped"),
    (queue("adminacl: '* ops'"), "acl-open-admin acl-groups-ignored"),
    (queue("adminacl: '*'"), "acl-open-admin"),
    ("partitions: [{nodesortpolicy: {resourceweights: {cpu: 2, memory: 1}}, queues: [{name: q}]}]", "resource-name"),
    (queue("submitacl: 'ann, dev'"), "acl-blank"),
    (queue("submitacl: 'ann ,dev'"), "acl-blank"),
    ("partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a, submitacl: ann}]}]}]", "acl-open-above"),
    (queue("submitacl: '*', queues: [{name: b, queues: [{name: c, submitacl: ' dev'}]}]"), "acl-open-above"),
    (queue("resources: {guaranteed: {cpu: 10, mem: 10Gi}}"), "resource-name resource-name"),
    (queue("limits: [{users: [u], maxresources: {VCore: 1, gpu: 2}}]"), "resource-name resource-name"),
    (queue("parent: true, childtemplate: {resources: {max: {Memory: 1G}}}"), "resource-name"),
    (queue("resources: {max: {memory: 500}}"), "memory-unit"),
    ("partitions: [{queues: [{name: Q, limits: [{users: [u], maxapplications: 1}]}]}]", "limit-capitals"),
    (
        "partitions: [{queues: [{name: Q, queues: [{name: c, limits: [{users: [u], maxapplications: 1}]}]}]}]",
        "limit-capitals",
    ),
    (queue("properties: {priority.ofset: 1}"), "property-unknown"),
    (queue("properties: {priority.offset: five}"), "property-value"),
    (queue("properties: {preemption.policy: off}"), "property-value"),
    (queue("properties: {application.sort.policy: FIFO}"), "property-value"),
    (queue("properties: {application.sort.policy: stateaware}"), "sort-policy-stateaware"),
    (queue("properties: {quota.preemption.delay: 1m}"), "quota-preemption-off"),
    (with_filter("type: DENY, users: [u]"), "filter-type-case"),
    (with_filter("type: deny"), "filter-deny-everybody"),
    (with_filter("users: ['^u', '(']"), "filter-nothing-legal filter-entry-dropped filter-entry-dropped"),
    (with_filter("users: [u, 9bad]"), "filter-entry-dropped"),
    (with_filter("groups: [dev*]"), "filter-unanchored"),
    (rule("name: userr"), "rule-unknown"),
    (rule("name: user, parent: {name: nobody}"), "rule-unknown"),
    (rule("name: Recovery"), "rule-recovery"),
    (rule("name: tag"), "rule-value-missing"),
    (rule("name: fixed, create: true, value: a b"), "rule-value-name"),
    (rule("name: fixed, value: root.a, parent: {name: user}"), "rule-full-path-parent"),
    (rule("name: fixed, create: true, value: rootx"), "rule-value-outside-root"),
]

SILENT = [
    DEFAULT_CONFIGURATION,
    queue("resources: {max: {vcore: 0, memory: 1G}}, submitacl: ' dev', maxapplications: 5"),
    queue(
        "resources: {max: {memory: 1048576, nvidia.com/gpu: 1, hugepages-2Mi: 500, pods: 10}}, submitacl: 'ann,bob dev,ops'"
    ),
    "partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b, submitacl: '*'}]}]}]",
    queue("properties: {application.sort.policy: fair, preemption.delay: 1m30s, priority.policy: Fence}"),
    "partitions: [{queues: [{name: Q, limits: []}]}]",
    "partitions: [{preemption: {quotapreemptionenabled: true}, queues: [{name: a, properties: {quota.preemption.delay: 1m}}]}]",
    with_filter("type: deny, users: ['^dev']"),
    with_filter("users: ['dev$'], groups: ['.*dev.*']"),
    with_filter("users: [u, v], groups: [g]"),
    rule("name: TAG, value: namespace, create: true"),
    rule("name: fixed, value: root.a"),
]


@pytest.mark.parametrize(("text", "rules"), LINTS)
def test_warnings(text: str, rules: str) -> None:
    report = check(text)
    assert report.faults == ()
    assert [warning.rule for warning in report.warnings] == rules.split()
    assert all(warning.line >= 1 and warning.column >= 1 for warning in report.warnings)


@pytest.mark.parametrize("text", SILENT)
def test_no_warnings(text: str) -> None:
    assert check(text) == Report()


OF_SETTINGS = {"configmap-key", "setting-unknown", "setting-value"}
BESIDE_A_WORKLOAD = {"rule-idle", "usage-above-max"}  # tests/answers/test_rulesused.py, test_moment.py
"""Warnings of what stands beside a queue configuration, with examples in `cli/test_config_check.py`."""


def test_every_warning_is_shown_by_an_example() -> None:
    shown = {identifier for _, identifiers in LINTS for identifier in identifiers.split()}
    beside_a_cluster = {expected.partition(" ")[0] for _, expected in ROWS if expected}
    assert shown | OF_SETTINGS | BESIDE_A_WORKLOAD | beside_a_cluster == WARNING_RULES


def test_warnings_come_in_the_order_of_the_text() -> None:
    text = "partitions:\n- usergroupresolver: {type: x}\n  queues:\n  - null\n  - {name: a, properties: {b: c}}\n"
    assert [(warning.line, warning.rule) for warning in check(text).warnings] == [
        (2, "resolver-unknown"), (4, "null-dropped"), (5, "property-unknown"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (queue("submitacl: 'ann, dev'"), "write 'ann,dev'"),
        (queue("properties: {preemption_delay: 3s}"), "did you mean 'preemption.delay'?"),
        (queue("resources: {max: {memory: 500}}"), "500Mi"),
        (queue("resources: {max: {cpu: 500}}"), "is called 'vcore'"),
    ],
)
def test_warnings_say_what_to_write(text: str, said: str) -> None:
    assert said in str(check(text).warnings[0])
