"""Node constraints as tables: what each means, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from licorne.core.nodes.constraints import (
    NO_CONSTRAINTS,
    NodeConstraints,
    NodeLabels,
    parse_constraints,
    passes,
)
from licorne.core.nodes.reading import MAX_TEXT_LENGTH, ConstraintError


def constraints(**fields: Any) -> NodeConstraints:
    return parse_constraints(json.dumps(fields))


def labels(**values: str) -> NodeLabels:
    return NodeLabels.from_attributes({f"label/{key}": value for key, value in values.items()})


def tainted(*taints: str) -> NodeLabels:
    """A node with taints written as kubectl writes them: key=value:effect or key:effect."""
    fields = []
    for taint in taints:
        name, _, effect = taint.rpartition(":")
        key, _, value = name.partition("=")
        fields.append({"key": key, "value": value, "effect": effect})
    return NodeLabels.from_attributes({"taints": json.dumps(fields)})


@pytest.mark.parametrize(
    ("operator", "values", "value", "holds"),
    [
        ("In", ["a", "b"], "a", True),
        ("In", ["a", "b"], "c", False),
        ("In", ["a"], None, False),
        ("In", [""], "", True),
        ("In", [""], None, False),
        ("NotIn", ["a", "b"], "a", False),
        ("NotIn", ["a", "b"], "c", True),
        ("NotIn", ["a"], None, True),  # a missing label is in no list
        ("Exists", [], "", True),
        ("Exists", [], None, False),
        ("DoesNotExist", [], "x", False),
        ("DoesNotExist", [], None, True),
        ("Gt", ["5"], "6", True),
        ("Gt", ["5"], "5", False),
        ("Gt", ["5"], "10", True),  # as numbers, not as texts
        ("Gt", ["-5"], "-4", True),
        ("Gt", ["+5"], "+6", True),
        ("Gt", ["5"], None, False),
        ("Gt", ["5"], "many", False),
        ("Gt", ["5"], "", False),
        ("Gt", ["5"], "6.5", False),
        ("Gt", ["5"], "0x10", False),
        ("Gt", ["5"], "\u0667", False),  # a digit, but not an ASCII one
        ("Gt", ["5"], "9223372036854775807", True),
        ("Gt", ["5"], "9223372036854775808", False),
        ("Gt", ["5"], "000000000000000000000006", True),
        ("Lt", ["5"], "4", True),
        ("Lt", ["5"], "5", False),
        ("Lt", ["5"], None, False),
        ("Lt", ["5"], "many", False),
    ],
)
def test_operators(operator: str, values: list[str], value: str | None, holds: bool) -> None:
    wanted = constraints(nodeAffinity=[[{"key": "k", "operator": operator, "values": values}]])
    node = labels(other="x") if value is None else labels(k=value)
    assert wanted.matches(node) is holds
    assert wanted.mismatch(node) == ("" if holds else "nodeAffinity")


A = {"key": "a", "operator": "Exists"}
B = {"key": "b", "operator": "Exists"}


@pytest.mark.parametrize(
    ("fields", "node", "mismatch"),
    [
        ({}, labels(), ""),
        ({"nodeSelector": {"a": "1"}}, labels(a="1", b="2"), ""),
        ({"nodeSelector": {"a": "1", "b": "1"}}, labels(a="1", b="2"), "nodeSelector"),
        ({"nodeSelector": {"a": ""}}, labels(), "nodeSelector"),  # missing is not empty
        ({"nodeSelector": None, "nodeAffinity": None, "tolerations": None}, labels(), ""),
        ({"nodeAffinity": [[A, B]]}, labels(a="1"), "nodeAffinity"),  # all expressions of a term
        ({"nodeAffinity": [[A], [B]]}, labels(b="1"), ""),  # one term of the list
        ({"nodeAffinity": []}, labels(a="1"), "nodeAffinity"),  # no term can hold
        ({"nodeAffinity": [[]]}, labels(a="1"), "nodeAffinity"),  # a term without expressions holds nowhere
        ({"nodeAffinity": [[], [A]]}, labels(a="1"), ""),
        ({"nodeSelector": {"b": "1"}, "nodeAffinity": [[A]]}, labels(a="1"), "nodeSelector"),
        ({"nodeSelector": {"a": "1"}, "nodeAffinity": [[B]]}, labels(a="1"), "nodeAffinity"),
        ({"features": ["F", "G"]}, labels(**{"feature:F": ""}), "feature G"),
        ({"features": ["F"]}, labels(**{"feature:F": ""}), ""),
        ({"features": ["F"], "nodeAffinity": [[B]]}, labels(a="1"), "nodeAffinity"),
        ({"volumes": [{"reason": "no volume", "terms": [[A], [B]]}]}, labels(b="1"), ""),
        ({"volumes": [{"reason": "no volume", "terms": []}]}, labels(b="1"), "no volume"),
        (
            {"volumes": [{"reason": "volume zone", "terms": [[A]]}, {"reason": "no volume", "terms": [[A]]}]},
            labels(b="1"),
            "volume zone",
        ),
        ({"volumes": [{"reason": "no volume"}], "nodeAffinity": [[B]]}, labels(a="1"), "nodeAffinity"),
    ],
)
def test_selectors_and_affinity(fields: dict[str, Any], node: NodeLabels, mismatch: str) -> None:
    assert constraints(**fields).mismatch(node) == mismatch
    assert not passes(mismatch)


@pytest.mark.parametrize(
    ("tolerations", "node", "mismatch"),
    [
        ([], tainted("gpu=a:NoSchedule"), "taint gpu=a:NoSchedule"),
        ([], tainted("gpu:NoExecute"), "taint gpu:NoExecute"),
        ([], tainted("gpu=a:PreferNoSchedule"), ""),
        ([{"key": "gpu", "operator": "Equal", "value": "a"}], tainted("gpu=a:NoSchedule"), ""),
        ([{"key": "gpu", "value": "a"}], tainted("gpu=a:NoSchedule"), ""),  # no operator means Equal
        ([{"key": "gpu", "operator": "", "value": "a"}], tainted("gpu=a:NoSchedule"), ""),
        ([{"key": "gpu", "value": "b"}], tainted("gpu=a:NoSchedule"), "taint gpu=a:NoSchedule"),
        ([{"key": "gpu"}], tainted("gpu:NoSchedule"), ""),  # equal to the empty value
        ([{"key": "gpu"}], tainted("gpu=a:NoSchedule"), "taint gpu=a:NoSchedule"),
        ([{"key": "gpu", "operator": "Exists"}], tainted("gpu=a:NoSchedule", "gpu=a:NoExecute"), ""),
        ([{"key": "cpu", "operator": "Exists"}], tainted("gpu=a:NoSchedule"), "taint gpu=a:NoSchedule"),
        ([{"operator": "Exists"}], tainted("gpu=a:NoSchedule", "x:NoExecute"), ""),  # no key: every taint
        ([{"operator": "Exists", "effect": "NoExecute"}], tainted("x:NoSchedule"), "taint x:NoSchedule"),
        ([{"key": "x", "value": "", "effect": "NoSchedule"}], tainted("x:NoSchedule"), ""),
        (
            [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}],
            tainted("x:NoSchedule", "x:NoExecute"),
            "taint x:NoExecute",
        ),
        (
            [{"key": "x", "operator": "Exists", "effect": "PreferNoSchedule"}],
            tainted("x:NoSchedule"),
            "taint x:NoSchedule",
        ),
    ],
)
def test_taints_and_tolerations(tolerations: list[dict[str, str]], node: NodeLabels, mismatch: str) -> None:
    wanted = constraints(tolerations=tolerations)
    assert wanted.mismatch(node) == mismatch
    assert wanted.matches(node) is not mismatch.startswith("taint")


def test_the_reason_is_that_of_kube_scheduler() -> None:
    """It asks about taints first, and whether the node is cordoned before all others."""
    wanted = constraints(nodeSelector={"b": "1"})
    cordon = "node.kubernetes.io/unschedulable:NoSchedule"
    assert wanted.mismatch(tainted("a=1:NoSchedule", cordon)) == f"taint {cordon}"
    assert wanted.mismatch(tainted("a=1:NoSchedule")) == "taint a=1:NoSchedule"
    assert wanted.mismatch(labels()) == "nodeSelector"


def test_an_ask_without_constraints_keeps_off_tainted_nodes() -> None:
    assert parse_constraints("{}") == NO_CONSTRAINTS
    assert NO_CONSTRAINTS.matches(labels(a="1"))
    assert NO_CONSTRAINTS.matches(tainted("x:PreferNoSchedule"))
    assert NO_CONSTRAINTS.mismatch(tainted("x=1:NoExecute")) == "taint x=1:NoExecute"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"nodeSelector": {"a": "1", "b": "2"}}', '{ "nodeSelector":{"b":"2",\n"a":"1"} }'),
        ('{"nodeSelector": {}, "tolerations": []}', "{}"),
        ('{"nodeAffinity": null}', "{}"),
        (
            '{"nodeAffinity": [[{"key": "k", "operator": "In", "values": ["x", "y", "x"]}]]}',
            '{"nodeAffinity": [[{"values": ["y", "x"], "operator": "In", "key": "\\u006b"}]]}',
        ),
        (
            '{"nodeAffinity": [[{"key": "k", "operator": "Gt", "values": ["+07"]}]]}',
            '{"nodeAffinity": [[{"key": "k", "operator": "Gt", "values": ["7"]}]]}',
        ),
        (
            '{"tolerations": [{"key": "k"}]}',
            '{"tolerations": [{"key": "k", "operator": "Equal", "value": "", "effect": ""}]}',
        ),
    ],
)
def test_texts_of_one_meaning_are_one_value(one: str, other: str) -> None:
    assert parse_constraints(one) == parse_constraints(other)
    assert hash(parse_constraints(one)) == hash(parse_constraints(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{}", '{"nodeAffinity": []}'),
        ('{"nodeSelector": {"a": "1"}}', '{"nodeSelector": {"a": "2"}}'),
        ('{"tolerations": [{"operator": "Exists"}]}', '{"tolerations": [{"key": "a", "operator": "Exists"}]}'),
    ],
)
def test_texts_of_different_meanings_are_different_values(one: str, other: str) -> None:
    assert parse_constraints(one) != parse_constraints(other)


def expression(**fields: Any) -> str:
    return json.dumps({"nodeAffinity": [[A], [B, fields]]})


EXPRESSION = "licorne/node-constraints.nodeAffinity[1][1]"
TOLERATION = "licorne/node-constraints.tolerations[0]"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", "licorne/node-constraints"),
        ("{", "licorne/node-constraints"),
        ("null", "licorne/node-constraints"),
        ("[]", "licorne/node-constraints"),
        ("[" * 10_000, "licorne/node-constraints"),
        ("1" * 5_000, "licorne/node-constraints"),
        (json.dumps({"nodeSelector": {"a": "x" * MAX_TEXT_LENGTH}}), "licorne/node-constraints"),
        ('{"nodeSelectors": {}}', "licorne/node-constraints"),
        ('{"nodeSelector": {"a": "1", "a": "2"}}', "licorne/node-constraints"),
        ('{"nodeSelector": []}', "licorne/node-constraints.nodeSelector"),
        ('{"nodeSelector": {"a": 1}}', 'licorne/node-constraints.nodeSelector["a"]'),
        ('{"nodeSelector": {"a": null}}', 'licorne/node-constraints.nodeSelector["a"]'),
        ('{"nodeSelector": {"": "1"}}', 'licorne/node-constraints.nodeSelector[""]'),
        ('{"nodeSelector": {"a": "\\ud800"}}', 'licorne/node-constraints.nodeSelector["a"]'),
        ('{"nodeAffinity": {}}', "licorne/node-constraints.nodeAffinity"),
        ('{"features": [1]}', "licorne/node-constraints.features[0]"),
        ('{"volumes": [{"reason": "else"}]}', "licorne/node-constraints.volumes[0].reason"),
        ('{"nodeAffinity": [{}]}', "licorne/node-constraints.nodeAffinity[0]"),
        (expression(key="k", operator="Within", values=["a"]), f"{EXPRESSION}.operator"),
        (expression(key="k", operator="in", values=["a"]), f"{EXPRESSION}.operator"),
        (expression(key="k"), f"{EXPRESSION}.operator"),
        (expression(operator="Exists"), f"{EXPRESSION}.key"),
        (expression(key=5, operator="Exists"), f"{EXPRESSION}.key"),
        (expression(key="k", operator="Exists", value="x"), EXPRESSION),
        (expression(key="k", operator="Exists", values=["x"]), f"{EXPRESSION}.values"),
        (expression(key="k", operator="DoesNotExist", values=["x"]), f"{EXPRESSION}.values"),
        (expression(key="k", operator="In"), f"{EXPRESSION}.values"),
        (expression(key="k", operator="NotIn", values=[]), f"{EXPRESSION}.values"),
        (expression(key="k", operator="In", values=["a", 1]), f"{EXPRESSION}.values[1]"),
        (expression(key="k", operator="In", values="a"), f"{EXPRESSION}.values"),
        (expression(key="k", operator="Gt", values=["1", "2"]), f"{EXPRESSION}.values"),
        (expression(key="k", operator="Lt", values=["1.5"]), f"{EXPRESSION}.values"),
        (expression(key="k", operator="Lt", values=["9223372036854775808"]), f"{EXPRESSION}.values"),
        ('{"tolerations": [{"key": "a", "operator": "In"}]}', f"{TOLERATION}.operator"),
        ('{"tolerations": [{"key": "a", "effect": "Never"}]}', f"{TOLERATION}.effect"),
        ('{"tolerations": [{"key": "a", "tolerationSeconds": 5}]}', TOLERATION),
        ('{"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}', f"{TOLERATION}.value"),
        ('{"tolerations": [{"value": "b"}]}', f"{TOLERATION}.key"),
        ('{"tolerations": [null]}', TOLERATION),
    ],
)
def test_malformed_constraints_are_refused_and_the_field_is_named(text: str, path: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        parse_constraints(text)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).encode("utf-8")) < 500  # can be sent, however wild the input


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{}", "attributes.taints"),
        ("nonsense", "attributes.taints"),
        ('["gpu:NoSchedule"]', "attributes.taints[0]"),
        ('[{"key": "a", "effect": "NoSchedule"}, {"effect": "NoSchedule"}]', "attributes.taints[1].key"),
        ('[{"key": "a"}]', "attributes.taints[0].effect"),
        ('[{"key": "a", "effect": "noschedule"}]', "attributes.taints[0].effect"),
        ('[{"key": "a", "value": 1, "effect": "NoSchedule"}]', "attributes.taints[0].value"),
        ('[{"key": "a", "effect": "NoSchedule", "since": "now"}]', "attributes.taints[0]"),
    ],
)
def test_malformed_taints_are_refused_and_the_field_is_named(text: str, path: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        NodeLabels.from_attributes({"taints": text})
    assert caught.value.path == path


@pytest.mark.parametrize("attributes", [{}, {"taints": ""}, {"taints": "null"}, {"taints": "[]"}, {"si/nonsense": "x"}])
def test_attributes_without_labels_or_taints(attributes: dict[str, str]) -> None:
    assert NodeLabels.from_attributes(attributes) == NodeLabels()


def test_labels_are_read_from_both_kinds_of_attributes() -> None:
    node = NodeLabels.from_attributes(
        {"label/gpu/model": "T4", "si/zone": "z1", "si/arch": "arm64", "label/si/arch": "amd64", "si/secret": "1"}
    )
    assert node.pairs == (("gpu/model", "T4"), ("si/arch", "amd64"), ("si/zone", "z1"))
    assert constraints(nodeSelector={"si/zone": "z1", "gpu/model": "T4"}).matches(node)
    assert not constraints(nodeSelector={"si/secret": "1"}).matches(node)


def test_labels_are_values() -> None:
    taints = ['{"key": "a", "effect": "NoSchedule"}', '{"key": "b", "effect": "NoExecute"}']
    one = NodeLabels.from_attributes({"label/x": "1", "label/y": "2", "taints": f"[{taints[0]}, {taints[1]}]"})
    other = NodeLabels.from_attributes({"taints": f"[{taints[1]},{taints[0]}]", "label/y": "2", "label/x": "1"})
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.timeout(300)  # hundreds of times what it takes; each key compared with each would take longer
def test_a_key_that_is_given_twice_among_many_is_found_at_once() -> None:
    keys = "".join(f'"{number:x}":1,' for number in range(7_000))
    for _ in range(500):
        with pytest.raises(ConstraintError, match="a key is given twice"):
            parse_constraints(f'{{{keys}"0":1}}')
