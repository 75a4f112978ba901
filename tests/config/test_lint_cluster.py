"""Warnings of configurations beside a cluster: one row for each, and rows that look alike and are in order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from licorne.config import Pod, RunningPartition, examine

CLUSTER = RunningPartition(
    capacity={"vcore": 10_000, "memory": 64 << 30},
    pods=(
        Pod("pod a/small", "root.a", "ann", {"vcore": 1_000}),
        Pod("pod a/large", "root.a", "ben", {"vcore": 4_000, "memory": 8 << 30}),
    ),
    applications={"root.a": 2, "root.old": 1, "root.@recovery@": 1},
)
RULES = "{name: provided}"


def configuration(queues: str, rules: str = RULES) -> str:
    return f"partitions: [{{placementrules: [{rules}], queues: [{{name: root, queues: [{queues}]}}]}}]"


def a(fields: str = "", more: str = "{name: old}") -> str:
    """Queue root.a with these fields, and beside it the other queue that has an application."""
    return f"{{name: a, {fields}}}, {more}"


ROWS = [
    (configuration(a()), ""),
    # guarantees
    (configuration(a("resources: {guaranteed: {vcore: 10}}")), ""),
    (configuration(a("resources: {guaranteed: {vcore: 11}}")), "cluster-guarantees root.a: resources.guaranteed.vcore"),
    (configuration(a("resources: {guaranteed: {tpu: 1}}")), "cluster-guarantees root.a: resources.guaranteed.tpu"),
    (
        configuration(a("resources: {guaranteed: {vcore: 6}}", "{name: old, resources: {guaranteed: {vcore: 5}}}")),
        "cluster-guarantees root: queues",
    ),
    (
        configuration(a("resources: {guaranteed: {vcore: 6}}", "{name: old, resources: {guaranteed: {memory: 5Gi}}}")),
        "",
    ),
    # maximums and limits
    (configuration(a("resources: {max: {vcore: 9}}")), ""),
    (configuration(a("resources: {max: {vcore: 10}}")), "cluster-unbound root.a: resources.max"),
    (configuration(a("resources: {max: {vcore: 10, memory: 9Gi}}")), ""),
    (configuration(a("resources: {max: {vcore: 10, other: 9}}")), ""),
    (configuration(a("resources: {max: {vcore: 3500m}}")), "pod-above-max root.a: resources.max.vcore"),
    (
        configuration("{name: A, resources: {max: {vcore: 3}}}, {name: old}"),
        "pod-above-max root.A: resources.max.vcore",
    ),
    (configuration(a("limits: [{users: [ann], maxresources: {vcore: 2}}]")), ""),
    (
        configuration(a("limits: [{users: [ann, ben], maxresources: {vcore: 2}}]")),
        "pod-above-limit root.a: limits[0].maxresources.vcore",
    ),
    (
        configuration(a("limits: [{users: ['*'], maxresources: {vcore: 2}}]")),
        "pod-above-limit root.a: limits[0].maxresources.vcore",
    ),
    (
        configuration(
            a("limits: [{users: [ben], maxresources: {vcore: 5}}, {users: ['*'], maxresources: {vcore: 2}}]")
        ),
        "",
    ),
    (
        configuration(a("limits: [{users: ['*'], maxresources: {vcore: 10}}]")),
        "cluster-unbound root.a: limits[0].maxresources",
    ),
    (
        configuration(a("resources: {max: {vcore: 5}}, limits: [{groups: [x], maxresources: {vcore: 5}}]")),
        "cluster-unbound root.a: limits[0].maxresources",
    ),
    (configuration(a("resources: {max: {vcore: 5}}, limits: [{groups: [x], maxresources: {vcore: 4}}]")), ""),
    # queues
    (configuration("{name: a}"), "queue-missing root: queues"),
    (configuration("{name: a}", "{name: user, create: true}"), ""),
    (configuration("{name: a}, {name: old, queues: [{name: b}]}"), "queue-idle root.old.b: name"),
    (configuration("{name: a}, {name: old}, {name: lost, queues: [{name: b}]}"), "queue-idle root.lost: name"),
    (configuration("{name: a}, {name: old}, {name: lost}", "{name: fixed, value: lost}, {name: provided}"), ""),
    (configuration(a(more="{name: old}, {name: lost}"), "{name: fixed, value: a}"), "queue-unreached root.lost: name"),
    (configuration(a(more="{name: old}, {name: lost}"), "{name: fixed, value: root.lost}"), ""),
    (
        configuration(a(more="{name: old}, {name: lost}"), "{name: fixed, value: a}, {name: user}"),
        "queue-idle root.lost: name",
    ),
    (
        configuration(
            a(more="{name: old}, {name: p, queues: [{name: in}, {name: out}]}"),
            "{name: fixed, value: in, parent: {name: fixed, value: p}}",
        ),
        "queue-unreached root.p.out: name",
    ),
]


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_warnings_beside_a_cluster(text: str, expected: str) -> None:
    report, configuration = examine(text, running={"default": CLUSTER})
    assert configuration is not None, report.faults
    assert [f"{each.rule} {each.place}" for each in report.warnings] == [expected] * bool(expected)


def test_a_cluster_without_applications_says_nothing_about_queues() -> None:
    empty = RunningPartition({"vcore": 10_000}, (), {})
    assert examine(configuration("{name: a}"), running={"default": empty})[0].warnings == ()


def test_the_message_says_of_how_many_applications_none_is_there() -> None:
    [warning] = examine(configuration(a(more="{name: old}, {name: lost}")), running={"default": CLUSTER})[0].warnings
    assert warning.message.startswith("no application of the input is in this queue or below it, of 4 in all")


def test_rules_that_place_no_application_are_told_where_it_is_known() -> None:
    known = replace(CLUSTER, placed=lambda _: {2: 3, 3: 1})
    text = configuration(a(), "{name: user}, {name: provided}")
    [warning] = examine(text, running={"default": known})[0].warnings
    assert (warning.rule, warning.line) == ("rule-idle", 1)
    assert warning.message.startswith("no application of the input is placed by this rule, of 4 that are placed")
    nothing = replace(CLUSTER, placed=lambda _: {})
    assert examine(text, running={"default": nothing})[0].warnings == ()


def test_a_partition_that_the_cluster_lacks_is_left_alone() -> None:
    report, _ = examine(configuration("{name: a}"), running={"gpu": CLUSTER})
    assert report.warnings == ()


def test_a_faulty_configuration_is_not_looked_at() -> None:
    report, configuration_ = examine(
        configuration("{name: a, resources: {max: {vcore: x}}}"), running={"default": CLUSTER}
    )
    assert (len(report.faults), report.warnings, configuration_) == (1, (), None)


def test_messages_name_value_and_remedy() -> None:
    text = configuration(a("resources: {max: {vcore: 3500m}}"))
    [warning] = examine(text, running={"default": CLUSTER})[0].warnings
    assert warning.message == (
        "pod a/large takes 4 vcore, more than the max of 3500m, so it cannot be placed here; raise the max, or make the "
        "pod smaller"
    )
