"""Terms about pods as tables: which pods each means, what texts mean, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from licorne.core.nodes.reading import ConstraintError
from licorne.core.nodes.terms import NO_TERMS, TERMS_MAX, PodLabels, parse_pod, parse_terms

WEB = {"matchLabels": {"app": "web"}}


def pod(namespace: str = "home", of_namespace: dict[str, str] | None = None, **labels: str) -> PodLabels:
    return parse_pod(json.dumps({"namespace": namespace, "labels": labels, "namespaceLabels": of_namespace}))


def requirement(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("term", "of", "waits", "runs"),
    [
        ({"labelSelector": WEB}, pod(app="web"), True, True),
        ({"labelSelector": WEB}, pod(app="db"), False, False),
        ({"labelSelector": WEB}, pod("other", {}, app="web"), False, False),  # the namespace of its own pod
        ({"labelSelector": WEB, "namespaces": ["other"]}, pod("other", {}, app="web"), True, True),
        ({"labelSelector": WEB, "namespaces": ["other"]}, pod(app="web"), False, False),
        ({"labelSelector": WEB, "namespaceSelector": {}}, pod("other", {}, app="web"), True, True),
        ({"labelSelector": WEB, "namespaceSelector": {}}, pod("other", None, app="web"), True, True),
        ({"labelSelector": WEB, "namespaceSelector": requirement("DoesNotExist")}, pod("other", None, app="web"), False, True),
        ({"labelSelector": WEB, "namespaceSelector": WEB}, pod("other", {"app": "web"}, app="web"), True, True),
        ({"labelSelector": WEB, "namespaceSelector": WEB}, pod("other", {"app": "db"}, app="web"), False, False),
        ({"labelSelector": WEB, "namespaces": ["home"], "namespaceSelector": WEB}, pod(app="web"), True, True),
        ({}, pod(app="web"), False, False),  # no selector selects nothing
        ({"labelSelector": {}}, pod(), True, True),  # an empty one everything
        ({"labelSelector": requirement("NotIn", "db")}, pod(), True, True),
        ({"labelSelector": requirement("Exists")}, pod(), False, False),
    ],
)  # fmt: skip
def test_which_pods_a_term_means(term: dict[str, Any], of: PodLabels, waits: bool, runs: bool) -> None:
    text = json.dumps({"affinity": [{"topologyKey": "zone", **term}]})
    made = parse_terms(text, "home").affinity[0]
    assert (made.selects(of), made.selects(of, runs=True)) == (waits, runs)


@pytest.mark.parametrize(
    ("constraint", "of", "counts", "is_self"),
    [
        ({"labelSelector": WEB}, pod(app="web"), True, True),
        ({"labelSelector": WEB}, pod(app="db"), False, False),
        ({"labelSelector": WEB}, pod("other", app="web"), False, True),
        ({"labelSelector": WEB}, PodLabels("home", (("app", "web"),), terminating=True), False, True),
        ({"labelSelector": {}}, pod(app="web"), False, True),
        ({}, pod(app="web"), False, False),
    ],
)
def test_which_pods_a_spread_constraint_counts(
    constraint: dict[str, Any], of: PodLabels, counts: bool, is_self: bool
) -> None:
    made = parse_terms(json.dumps({"spread": [{"topologyKey": "zone", **constraint}]}), "home").spread[0]
    assert (made.counts(of), made.is_self(of)) == (counts, is_self)


def test_equal_terms_are_one_value() -> None:
    terms = [
        {"topologyKey": "zone", "labelSelector": WEB},
        {"topologyKey": "host", "labelSelector": requirement("In", "b", "a")},
    ]
    again = [{"topologyKey": "host", "labelSelector": requirement("In", "a", "b", "a")}, *terms]
    assert parse_terms(json.dumps({"antiAffinity": terms}), "home") == parse_terms(
        json.dumps({"antiAffinity": again}), "home"
    )
    assert parse_terms("{}", "home") == NO_TERMS


ZONE = {"topologyKey": "zone", "labelSelector": WEB}


def test_a_pod_may_have_so_many_terms_and_any_number_of_images() -> None:
    made = parse_terms(json.dumps({"affinity": [ZONE] * TERMS_MAX, "preferred": {"images": ["a"] * 99}}), "home")
    assert len(made.affinity) == 1 and len(made.preferred.images) == 99


def test_preferences_are_one_value_too() -> None:
    terms = [{"weight": 3, "term": ZONE}, {"weight": 4, "term": ZONE}]
    made = parse_terms(json.dumps({"preferred": {"affinity": terms, "antiAffinity": terms[:1]}}), "home")
    assert [weight for weight, _ in made.preferred.terms] == [4]
    assert made == parse_terms(json.dumps({"preferred": {"affinity": [{"weight": 4, "term": ZONE}]}}), "home")
    assert made.demand_nothing


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"affinity": [{}]}, "affinity[0].topologyKey"),
        ({"affinity": {}}, "affinity"),
        ({"near": []}, ""),
        (
            {"affinity": [{"topologyKey": "zone", "labelSelector": requirement("Gt", "1")}]},
            "matchExpressions[0].operator",
        ),
        ({"affinity": [{"topologyKey": "zone", "matchLabelKeys": ["a"]}]}, "affinity[0]"),
        ({"spread": [{"topologyKey": "zone", "maxSkew": 0}]}, "spread[0].maxSkew"),
        ({"spread": [{"topologyKey": "zone", "minDomains": True}]}, "spread[0].minDomains"),
        ({"spread": [{"topologyKey": "zone", "nodeTaintsPolicy": "honor"}]}, "spread[0].nodeTaintsPolicy"),
        ({"preferred": {"zones": []}}, "preferred"),
        ({"preferred": {"nodes": [{"weight": 101, "term": []}]}}, "preferred.nodes[0].weight"),
        ({"preferred": {"affinity": [{"weight": 1, "term": {}}]}}, "preferred.affinity[0].term.topologyKey"),
        ({"preferred": {"nodes": [{"term": []}]}}, "preferred.nodes[0].weight"),
        ({"affinity": [ZONE] * 40, "preferred": {"affinity": [{"weight": 1, "term": ZONE}] * 25}}, "licorne/pod-terms"),
    ],
)
def test_refused_terms_name_the_field(terms: dict[str, Any], field: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        parse_terms(json.dumps(terms), "home")
    assert caught.value.path.startswith("licorne/pod-terms") and caught.value.path.endswith(field)


@pytest.mark.parametrize(
    "text",
    ["{}", '{"namespace": ""}', '{"namespace": "a", "labels": {"x": 1}}', "[", '{"namespace": "a", "terminating": 1}'],
)
def test_refused_pods(text: str) -> None:
    with pytest.raises(ConstraintError, match="licorne/pod"):
        parse_pod(text)
