"""Constraints against a second evaluation that works on the JSON itself, without canonical forms or parsed values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.bench import Bench, config
from licorne.core.nodes.constraints import NodeLabels, parse_constraints
from licorne.core.nodes.reading import ConstraintError
from licorne.si.messages import NodeAction

KEYS = st.sampled_from(["a", "b", "zone"])
VALUES = st.sampled_from(["", "x", "y", "-3", "0", "2", "10", "1e3"])
NUMBERS = st.integers(-4, 11).map(str)
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])


def _expressions() -> st.SearchStrategy[dict[str, Any]]:
    def one(operators: list[str], values: st.SearchStrategy[list[str]]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(operators), "values": values})

    return (
        one(["In", "NotIn"], st.lists(VALUES, min_size=1, max_size=3))
        | one(["Exists", "DoesNotExist"], st.just([]))
        | one(["Gt", "Lt"], st.lists(NUMBERS, min_size=1, max_size=1))
    )


TOLERATIONS = st.fixed_dictionaries(
    {"key": KEYS}, optional={"operator": st.sampled_from(["", "Equal"]), "value": VALUES, "effect": EFFECTS}
) | st.fixed_dictionaries({"operator": st.just("Exists")}, optional={"key": st.just("") | KEYS, "effect": EFFECTS})
CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(KEYS, VALUES, max_size=2),
        "nodeAffinity": st.lists(st.lists(_expressions(), max_size=3), max_size=3),
        "tolerations": st.lists(TOLERATIONS, max_size=3),
        "features": st.lists(st.sampled_from("FG"), max_size=2),
    },
)
LABELS = st.dictionaries(KEYS | st.sampled_from(["feature:F", "feature:G"]), VALUES, max_size=4)
TAINTS = st.lists(st.fixed_dictionaries({"key": KEYS, "effect": EFFECTS}, optional={"value": VALUES}), max_size=2)


def naive_expression(wanted: dict[str, Any], labels: dict[str, str]) -> bool:
    key, operator, values = wanted["key"], wanted["operator"], wanted["values"]
    there = key in labels
    if operator == "In":
        return there and labels[key] in values
    if operator == "NotIn":
        return not there or labels[key] not in values
    if operator == "Exists":
        return there
    if operator == "DoesNotExist":
        return not there
    if not there or not labels[key].lstrip("-").isdigit():
        return False
    difference = int(labels[key]) - int(values[0])
    return difference > 0 if operator == "Gt" else difference < 0


def naive_toleration(toleration: dict[str, str], taint: dict[str, str]) -> bool:
    same_effect = toleration.get("effect", "") in ("", taint["effect"])
    same_key = toleration.get("key", "") in ("", taint["key"])
    same_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
    return same_effect and same_key and same_value


def naive(wanted: dict[str, Any], labels: dict[str, str], taints: list[dict[str, str]]) -> bool:
    selected = all(labels.get(key) == value for key, value in wanted.get("nodeSelector", {}).items())
    terms = wanted.get("nodeAffinity")
    near = terms is None or any(term != [] and all(naive_expression(e, labels) for e in term) for term in terms)
    hard = [taint for taint in taints if taint["effect"] != "PreferNoSchedule"]
    borne = all(any(naive_toleration(t, taint) for t in wanted.get("tolerations", [])) for taint in hard)
    declared = all(f"feature:{name}" in labels for name in wanted.get("features", []))
    return selected and near and borne and declared


def attributes(labels: dict[str, str], taints: list[dict[str, str]]) -> dict[str, str]:
    return {f"label/{key}": value for key, value in labels.items()} | {"taints": json.dumps(taints)}


def node(labels: dict[str, str], taints: list[dict[str, str]]) -> NodeLabels:
    return NodeLabels.from_attributes(attributes(labels, taints))


@given(wanted=CONSTRAINTS, labels=LABELS, taints=TAINTS)
def test_both_evaluations_agree(wanted: dict[str, Any], labels: dict[str, str], taints: list[dict[str, str]]) -> None:
    constraints = parse_constraints(json.dumps(wanted))
    matches = constraints.matches(node(labels, taints))
    assert matches is naive(wanted, labels, taints)
    assert matches is (constraints.mismatch(node(labels, taints)) == "")


@given(asked=st.lists(CONSTRAINTS, max_size=4), changes=st.lists(st.tuples(LABELS, TAINTS), min_size=1, max_size=4))
def test_a_node_with_other_labels_meets_what_these_meet(asked: list[Any], changes: list[Any]) -> None:
    """Few needs are evaluated when labels change; `validate` evaluates all."""
    bench = Bench(config("a"))
    bench.app("x")
    bench.node("n", vcore=1)
    for number, wanted in enumerate(asked):
        bench.ask("x", f"k{number}", tags={"licorne/node-constraints": json.dumps(wanted)}, vcore=2)
    for labels, taints in changes:
        bench.node("n", NodeAction.UPDATE, attributes=attributes(labels, taints))
        bench.api.validate()


@given(nodes=st.lists(st.tuples(LABELS, TAINTS), max_size=4), asked=st.lists(CONSTRAINTS, max_size=4))
def test_a_new_need_is_known_for_all_nodes(nodes: list[Any], asked: list[Any]) -> None:
    """Only label sets that have what is demanded are looked at; `validate` evaluates all."""
    bench = Bench(config("a"))
    bench.app("x")
    for number, (labels, taints) in enumerate(nodes):
        bench.node(f"n{number}", vcore=1, attributes=attributes(labels, taints))
    for number, wanted in enumerate(asked):
        bench.ask("x", f"k{number}", tags={"licorne/node-constraints": json.dumps(wanted)}, vcore=2)
        bench.api.validate()


@given(wanted=CONSTRAINTS, data=st.data())
def test_order_and_repetition_mean_nothing(wanted: dict[str, Any], data: st.DataObject) -> None:
    shuffled = dict(data.draw(st.permutations(list(wanted.items()))))
    for name in ("nodeAffinity", "tolerations", "features"):
        if name in shuffled:
            items = shuffled[name]
            shuffled[name] = data.draw(st.permutations(items + items[:1]))
    assert parse_constraints(json.dumps(shuffled)) == parse_constraints(json.dumps(wanted, indent=1))


@given(text=st.text(max_size=40) | st.recursive(st.none() | st.text(max_size=3), st.lists).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_constraints(text)
    except ConstraintError as error:
        str(error).encode("utf-8")
