"""What an ask says of itself as a pod, and the terms by which pods demand each other near, far or spread. Pure.

An ask carries both as JSON texts, in tags of their own because pods that differ in a label mostly have the same terms:

* `licorne/pod`: `namespace`, `labels`, `namespaceLabels` (those of its namespace; absent or null: there is no such namespace),
  and `terminating` (the pod is being deleted). An ask with this tag is counted by the terms of others. A message about a
  known ask or allocation, foreign ones too, that has the tag replaces what was said: so a pod is relabelled, and so are
  all pods of a namespace whose labels change.
* `licorne/pod-terms`: `affinity` and `antiAffinity`, lists of terms as in `requiredDuringSchedulingIgnoredDuringExecution`,
  and `spread`, constraints as in `topologySpreadConstraints` with `whenUnsatisfiable: DoNotSchedule`. Further `holds` and
  `unless`, lists of marks, `attached`, names of volumes by driver (docs/understand/volumes.md), and `claims`, names of claims
  of devices, with a text that says what they demand (docs/understand/devices.md). The names of fields
  are those of Kubernetes, less `matchLabelKeys` and `mismatchLabelKeys`: who makes the text has merged these into the
  selectors, as its API server does. `preferred` is what only orders nodes (`licorne.core.nodes.preferences`): `nodes`,
  `affinity` and `antiAffinity`, lists of `{weight, term}`, where a term of `nodes` is a list of conditions on labels;
  `spread`, constraints with `ScheduleAnyway`; `spreadIsDefault`, true if these are not the pod's own; `images`, the image of
  each container. A pod has at most `TERMS_MAX` terms and constraints.

Both are parsed once, strictly, into immutable, hashable values in a canonical form, so that equal demands are equal values.
What they mean on nodes is the subject of `licorne.core.nodes.topology`; here is what can be said of two pods alone.

Where Kubernetes is easily misread:

* A selector that is absent or null selects no pod, an empty one every pod. A spread constraint with an empty selector
  counts no pod, and yet the pod itself is one more.
* Without `namespaces` and `namespaceSelector` a term is about the namespace of its own pod; with either, about those that
  either names. An empty namespace selector names all namespaces.
* A namespace that does not exist is named by the selector of a pod that waits only if this is empty. For that of a pod that
  runs it is a namespace without labels.
* A pod that is being deleted counts for affinity and anti-affinity, and not for spreading.

Source: docs/spec/scheduler-interface.md, section 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from licorne.si.constants import TAG_POD, TAG_POD_TERMS

from .constraints import Expression, read_expression
from .reading import fail, fields_of, list_of, one_of, read_json, sorted_set, text_of

SKEW_MAX: Final = (1 << 31) - 1
"""The largest `maxSkew` and `minDomains`."""
WEIGHT_MAX: Final = 100
"""The largest weight of a preference."""
TERMS_MAX: Final = 64
"""Most terms and constraints of a pod. Each may be about another label of nodes, and then costs a look at every node."""
TERMS_REMEMBERED: Final = 256
"""How many texts of terms are remembered: pods of a StatefulSet or a Job differ in a label, and hardly ever in their terms."""

Labels = tuple[tuple[str, str], ...]
Selector = tuple[Expression, ...] | None
"""Conditions on labels that must all hold; None selects nothing."""


class PodTerm(NamedTuple):
    """A set of pods, and the label of nodes that tells topology domains apart.

    `namespaces` are sorted, and not empty unless `namespace_selector` is there.
    """

    topology_key: str
    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector = None

    def selects(self, pod: PodLabels, *, runs: bool = False) -> bool:
        """Return whether the term means the pod. `runs`: the owner of the term runs already."""
        if not pod.namespace:  # it is no pod
            return False
        if pod.namespace not in self.namespaces:
            if self.namespace_selector is None:
                return False
            if pod.namespace_labels is None and self.namespace_selector and not runs:
                return False
            if not _holds(self.namespace_selector, dict(pod.namespace_labels or ())):
                return False
        return selects(self.selector, pod)


class SpreadConstraint(NamedTuple):
    """How evenly pods of a namespace are spread over domains. `honor_affinity`, `honor_taints`: the policies of nodes."""

    topology_key: str
    selector: Selector
    namespace: str
    max_skew: int = 1
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    def counts(self, pod: PodLabels) -> bool:
        """Return whether a pod that runs counts."""
        if pod.terminating or not self.selector or pod.namespace != self.namespace:
            return False
        return selects(self.selector, pod)

    def is_self(self, pod: PodLabels) -> bool:
        """Return whether the pod with the constraint would be one more of those that it counts."""
        return selects(self.selector, pod)


class Mark(NamedTuple):
    """A name that pods of one topology domain hold, such as that of a claim; the domain of the empty key is the cluster."""

    topology_key: str
    name: str


class DeviceClaims(NamedTuple):
    """Claims of devices by their names. Claims with the same `demand` get devices on the same nodes."""

    demand: str
    names: tuple[str, ...]


class Attached(NamedTuple):
    """The names of the volumes of one driver that a pod has attached to its node, which takes only so many of the driver."""

    driver: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodLabels:
    """What a pod is for the terms of others. `namespace_labels`: None where there is no such namespace."""

    namespace: str
    labels: Labels = ()
    namespace_labels: Labels | None = None
    terminating: bool = False


class Preferred(NamedTuple):
    """What a pod would rather have, in canonical form.

    `nodes`: conditions on labels, each with its weight. `terms`: pods to be near, each with a weight, which is below zero for
    those to be apart from. `spread_is_default`: nodes need not have the labels of `spread`. `images` are sorted, each as often as
    a container has it.
    """

    nodes: tuple[tuple[int, tuple[Expression, ...]], ...] = ()
    terms: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    spread_is_default: bool = False
    images: tuple[str, ...] = ()


NO_PREFERENCE: Final = Preferred()
NO_POD: Final = PodLabels("")
"""Stands for what is no pod and holds marks or has volumes attached all the same; no term means it."""


@dataclass(frozen=True, slots=True)
class PodTerms:
    """What a pod demands of other pods. Only constraints of `spread` keep their order: the first that fails is named.

    The pod holds the marks of `holds`, and cannot be where another holds one of `unless`.
    """

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    preferred: Preferred = NO_PREFERENCE
    holds: tuple[Mark, ...] = ()
    unless: tuple[Mark, ...] = ()
    attached: tuple[Attached, ...] = ()
    claims: DeviceClaims | None = None

    @property
    def demand_nothing(self) -> bool:
        """Whether no term shuts the pod out of a node, whatever it would rather have."""
        terms = self.affinity or self.anti_affinity or self.spread
        return not (terms or self.unless or self.attached or self.claims)


NO_TERMS: Final = PodTerms()


def selects(selector: Selector, pod: PodLabels) -> bool:
    """Return whether a selector means a pod by its labels."""
    return selector is not None and _holds(selector, dict(pod.labels))


def _holds(selector: tuple[Expression, ...], labels: Mapping[str, str]) -> bool:
    return all(expression.is_true(labels) for expression in selector)


# -- reading ---------------------------------------------------------------------------------------------------


def parse_pod(text: str) -> PodLabels:
    """Parse the text of the tag `licorne/pod`.

    Raises:
        ConstraintError: malformed JSON, an unknown key, no namespace, a label that is no text.
    """
    path = TAG_POD
    fields = fields_of(read_json(text, path), path, ("namespace", "labels", "namespaceLabels", "terminating"))
    of_namespace = fields.get("namespaceLabels")
    return PodLabels(
        text_of(fields.get("namespace", ""), f"{path}.namespace", required=True),
        _labels(fields.get("labels", {}), f"{path}.labels"),
        None if of_namespace is None else _labels(of_namespace, f"{path}.namespaceLabels"),
        _flag(fields.get("terminating", False), f"{path}.terminating"),
    )


@lru_cache(TERMS_REMEMBERED)
def parse_terms(text: str, namespace: str) -> PodTerms:
    """Parse the text of the tag `licorne/pod-terms`, of a pod of this namespace.

    Raises:
        ConstraintError: malformed JSON, an unknown key or operator, a term without a topology key, a number out of range.
    """
    path = TAG_POD_TERMS
    known = ("affinity", "antiAffinity", "spread", "preferred", "holds", "unless", "attached", "claims")
    fields = fields_of(read_json(text, path), path, known)
    inside = f"{path}.preferred"
    known_inside = ("nodes", "affinity", "antiAffinity", "spread", "spreadIsDefault", "images")
    wishes = fields_of(fields.get("preferred", {}), inside, known_inside)
    number = sum(
        len(each) for one in (fields, wishes) for key, each in one.items() if key != "images" and isinstance(each, list)
    )
    if number > TERMS_MAX:
        fail(path, number, f"are more than {TERMS_MAX} terms and constraints")
    return PodTerms(
        sorted_terms([_term(*one, namespace) for one in _items(fields, path, "affinity")]),
        sorted_terms([_term(*one, namespace) for one in _items(fields, path, "antiAffinity")]),
        tuple(_constraint(*one, namespace) for one in _items(fields, path, "spread")),
        _preferred(wishes, inside, namespace) if wishes else NO_PREFERENCE,
        sorted_set([_mark(*one) for one in _items(fields, path, "holds")]),
        sorted_set([_mark(*one) for one in _items(fields, path, "unless")]),
        _attached(fields.get("attached", {}), f"{path}.attached"),
        _claims(fields["claims"], f"{path}.claims") if "claims" in fields else None,
    )


def _preferred(fields: Mapping[str, object], path: str, namespace: str) -> Preferred:
    nodes: dict[tuple[Expression, ...], int] = {}
    for one, where in _items(fields, path, "nodes"):
        weight, term = _weighted(one, where)
        conditions = sorted_set(list_of(term, f"{where}.term", read_expression))
        nodes[conditions] = nodes.get(conditions, 0) + weight
    terms: dict[PodTerm, int] = {}
    for kind, sign in (("affinity", 1), ("antiAffinity", -1)):
        for one, where in _items(fields, path, kind):
            weight, term = _weighted(one, where)
            read = _term(term, f"{where}.term", namespace)
            terms[read] = terms.get(read, 0) + sign * weight
    return Preferred(
        tuple(sorted((weight, conditions) for conditions, weight in nodes.items())),
        tuple((terms[term], term) for term in sorted_terms([*terms])),
        tuple(_constraint(*one, namespace) for one in _items(fields, path, "spread")),
        _flag(fields.get("spreadIsDefault", False), f"{path}.spreadIsDefault"),
        tuple(sorted(list_of(fields.get("images", []), f"{path}.images", text_of))),
    )


def _weighted(value: object, path: str) -> tuple[int, object]:
    fields = fields_of(value, path, ("weight", "term"))
    return _number(fields.get("weight"), f"{path}.weight", WEIGHT_MAX), fields.get("term", {})


def sorted_terms(terms: list[PodTerm]) -> tuple[PodTerm, ...]:
    """Return terms in a fixed order, each once."""
    return tuple(sorted(dict.fromkeys(terms), key=repr))


def _items(fields: Mapping[str, object], path: str, name: str) -> list[tuple[object, str]]:
    return list_of(fields.get(name, []), f"{path}.{name}", lambda value, where: (value, where))


def _term(value: object, path: str, namespace: str) -> PodTerm:
    fields = fields_of(value, path, ("topologyKey", "labelSelector", "namespaces", "namespaceSelector"))
    namespaces = sorted_set(list_of(fields.get("namespaces", []), f"{path}.namespaces", text_of))
    of_namespaces = _selector(fields.get("namespaceSelector"), f"{path}.namespaceSelector")
    if not namespaces and of_namespaces is None:
        namespaces = (namespace,)
    selector = _selector(fields.get("labelSelector"), f"{path}.labelSelector")
    return PodTerm(_topology_key(fields, path), selector, namespaces, of_namespaces)


def _constraint(value: object, path: str, namespace: str) -> SpreadConstraint:
    known = ("topologyKey", "labelSelector", "maxSkew", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")
    fields = fields_of(value, path, known)

    def honored(name: str, default: str) -> bool:
        return one_of(fields.get(name, default), f"{path}.{name}", ("Honor", "Ignore")) == "Honor"

    return SpreadConstraint(
        _topology_key(fields, path),
        _selector(fields.get("labelSelector"), f"{path}.labelSelector"),
        namespace,
        _number(fields.get("maxSkew", 1), f"{path}.maxSkew"),
        _number(fields.get("minDomains", 1), f"{path}.minDomains"),
        honored("nodeAffinityPolicy", "Honor"),
        honored("nodeTaintsPolicy", "Ignore"),
    )


def _mark(value: object, path: str) -> Mark:
    fields = fields_of(value, path, ("topologyKey", "name"))
    key = text_of(fields.get("topologyKey", ""), f"{path}.topologyKey")
    return Mark(key, text_of(fields.get("name", ""), f"{path}.name", required=True))


def _attached(value: object, path: str) -> tuple[Attached, ...]:
    if not isinstance(value, dict):
        fail(path, value, "must be an object of driver to names")
    return tuple(
        Attached(driver, sorted_set(list_of(names, f"{path}[{driver}]", text_of)))
        for driver, names in sorted(value.items())
    )


def _claims(value: object, path: str) -> DeviceClaims:
    fields = fields_of(value, path, ("demand", "names"))
    names = list_of(fields.get("names", []), f"{path}.names", text_of)
    return DeviceClaims(text_of(fields.get("demand", ""), f"{path}.demand", required=True), tuple(names))


def _topology_key(fields: Mapping[str, object], path: str) -> str:
    return text_of(fields.get("topologyKey", ""), f"{path}.topologyKey", required=True)


def _selector(value: object, path: str) -> Selector:
    if value is None:
        return None
    fields = fields_of(value, path, ("matchLabels", "matchExpressions"))
    pairs = _labels(fields.get("matchLabels", {}), f"{path}.matchLabels")
    conditions = [Expression(key, "In", (wanted,)) for key, wanted in pairs]
    for one, where in _items(fields, path, "matchExpressions"):
        expression = read_expression(one, where)
        if expression.operator in ("Gt", "Lt"):
            fail(f"{where}.operator", expression.operator, "must be one of In, NotIn, Exists, DoesNotExist")
        conditions.append(expression)
    return sorted_set(conditions)


def _labels(value: object, path: str) -> Labels:
    if not isinstance(value, dict):
        fail(path, value, "must be an object of label to value")
    return tuple(
        sorted((text_of(key, path, required=True), text_of(label, f"{path}[{key}]")) for key, label in value.items())
    )


def _number(value: object, path: str, most: int = SKEW_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        fail(path, value, f"must be an integer from 1 to {most}")
    return value


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        fail(path, value, "must be true or false")
    return value
