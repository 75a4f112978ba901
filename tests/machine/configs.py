"""The queue configurations of the machine: drawn as a handful of choices, written as YAML, read as plain dicts.

The parts of a configuration that a test must know (maxima, limits) are kept beside the text in the test's own form, so that the
checks need nothing from the product's reader. Amounts of vcore are in thousandths everywhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Amounts = dict[str, int]
Choices = dict[str, Any]


@dataclass(frozen=True)
class Limit:
    """One configured limit: whom it names, and what it allows; 0 applications means any number."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    most: Amounts = field(default_factory=dict)
    apps: int = 0


LIMITS: list[tuple[Limit, ...]] = [
    (),
    (Limit(users=("alice",), most={"vcore": 5}),),
    (Limit(users=("*",), most={"vcore": 6}, apps=1),),
    (Limit(groups=("dev",), most={"vcore": 5, "memory": 6}), Limit(groups=("*",), most={"vcore": 9})),
    (Limit(users=("alice",), apps=1), Limit(users=("bob",), most={"memory": 5})),
    (Limit(groups=("ops",), most={"vcore": 7}, apps=1), Limit(users=("*",), apps=2)),
    (Limit(users=("alice", "*"), most={"vcore": 8}),),
]

MAXIMA: list[Amounts | None] = [
    None,
    None,
    {"vcore": 4},
    {"vcore": 12, "memory": 9},
    {"vcore": 30},
    {"memory": 12, "gpu": 1},
]
WIDE: list[Amounts | None] = [None, None, {"vcore": 40}, {"vcore": 14, "memory": 20}]
QUOTA_DELAY_S = 17
"""After so long a lowered quota is enforced, where that is switched on."""
GUARANTEED: list[Amounts | None] = [None, {"vcore": 2}, {"vcore": 4, "memory": 4}]
POLICIES = ["fifo", "fair", "stateaware"]
BACKOFFS = ["", "", "1", "2"]
PRIORITIES: list[dict[str, str]] = [
    {},
    {"priority.offset": "2"},
    {"priority.policy": "fence", "priority.offset": "1"},
    {"application.sort.priority": "disabled"},
]


def _of(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _index(values: list[Any]) -> st.SearchStrategy[int]:
    return st.integers(0, len(values) - 1)


choices: st.SearchStrategy[Choices] = st.fixed_dictionaries(
    {
        "missing": _of(["", "", "", "a", "b", "b1", "c", "gpu", "gpu"]),
        "flip": _of([False] * 4 + [True]),
        "binpacking": st.booleans(),
        "a": st.tuples(_index(MAXIMA), _of(POLICIES), _of([0, 0, 1, 2]), _of(BACKOFFS), _index(LIMITS)),
        "b": st.tuples(_index(WIDE), _of([0, 0, 3, 1]), _index(PRIORITIES), _of([0, 0, 0, 1, 2, 5])),
        "b1": st.tuples(_index(MAXIMA), _of(POLICIES), _of([0, 1]), _index(PRIORITIES), _of([0, 1, 2, 2])),
        "b2": st.tuples(_index(MAXIMA), _of(POLICIES), _of(BACKOFFS)),
        "c": st.tuples(_index(PRIORITIES), _of([0, 1, 2, 2])),
        "template": st.tuples(_index(MAXIMA), _of([0, 0, 1]), _of(POLICIES)),
        "root": _of([0, 0, 0, 4, 6]),
        "rules": _of([0, 0, 1]),
        "lowered": st.tuples(st.just(""), st.just({}), st.booleans()),
    }
)
"""What a configuration is made of; small, because every choice is one more that a failure is shrunk by."""

PLAIN: Choices = {
    "missing": "",
    "flip": False,
    "binpacking": False,
    "a": (0, "fifo", 0, "", 0),
    "b": (0, 0, 0, 0),
    "b1": (0, "fifo", 0, 0, 0),
    "b2": (0, "fifo", ""),
    "c": (0, 0),
    "template": (0, 0, "fifo"),
    "root": 0,
    "rules": 0,
    "lowered": ("", {}, False),  # a queue, its max, and whether quotas are enforced
}

Queue = dict[str, Any]


def _queue(
    name: str,
    *children: Queue,
    most: Amounts | None = None,
    guaranteed: Amounts | None = None,
    apps: int = 0,
    limits: tuple[Limit, ...] = (),
    parent: bool = False,
    template: Queue | None = None,
    properties: dict[str, str] | None = None,
) -> Queue:
    return {
        "name": name,
        "children": [child for child in children if child],
        "max": most,
        "guaranteed": guaranteed,
        "apps": apps,
        "limits": limits,
        "parent": parent,
        "template": template,
        "properties": {key: value for key, value in (properties or {}).items() if value},
    }


def _properties(policy: str = "", backoff: str = "", priorities: int = 0) -> dict[str, str]:
    said = dict(PRIORITIES[priorities])
    if policy:
        said["application.sort.policy"] = policy
    if backoff:
        said["application.unschedasks.backoff"] = backoff
        said["application.unschedasks.backoff.delay"] = "20s"
    return said


def tree(chosen: Choices) -> Queue:
    """The queues of a partition."""
    missing = chosen["missing"]
    a_max, a_policy, a_apps, a_backoff, a_limits = chosen["a"]
    b_max, b_apps, b_priority, b_limits = chosen["b"]
    b1_max, b1_policy, b1_apps, b1_priority, b1_guaranteed = chosen["b1"]
    b2_max, b2_policy, b2_backoff = chosen["b2"]
    t_max, t_apps, t_policy = chosen["template"]
    lowered, lowered_max, enforced = chosen["lowered"]
    wide = lowered_max if lowered == "b" else WIDE[b_max]
    a = _queue(
        "a", most=lowered_max if lowered == "a" else MAXIMA[a_max], apps=a_apps, limits=LIMITS[a_limits], parent=chosen["flip"],
        properties=_properties(a_policy, a_backoff),
    )  # fmt: skip
    b1 = _queue(
        "b1", most=_within(MAXIMA[b1_max], wide), apps=min(b1_apps, b_apps or 9), guaranteed=_within(GUARANTEED[b1_guaranteed], wide),
        properties=_properties(b1_policy, "", b1_priority),
    )  # fmt: skip
    b2 = _queue(
        "b2", most=_within(MAXIMA[b2_max], wide), apps=min(1, b_apps), properties=_properties(b2_policy, b2_backoff)
    )
    b = _queue(
        "b", b1 if missing != "b1" else {}, b2, most=wide, apps=b_apps, limits=LIMITS[b_limits],
        properties=_properties("", "", b_priority),
    )  # fmt: skip
    for queue in (a, b, b1) if enforced else ():
        queue["properties"]["quota.preemption.delay"] = f"{QUOTA_DELAY_S}s"
    if b1["apps"] == 0 and b_apps:
        b1["apps"] = b_apps
    c_priority, c_guaranteed = chosen["c"]
    c = _queue("c", guaranteed=GUARANTEED[c_guaranteed], properties=_properties("fair", "", c_priority))
    template = {"max": MAXIMA[t_max], "apps": t_apps, "properties": _properties(t_policy)}
    dyn = _queue("dyn", parent=True, template=template)
    present = [queue for queue in (a, b, c, dyn) if queue["name"] != missing]
    return _queue("root", *present, limits=LIMITS[chosen["root"]], parent=True)


def _within(amounts: Amounts | None, wide: Amounts | None) -> Amounts | None:
    """Amounts that a parent with this max accepts."""
    if amounts is None or wide is None:
        return amounts
    return {name: min(amount, wide.get(name, amount)) for name, amount in amounts.items()}


def text(chosen: Choices) -> str:
    """The configuration as queues.yaml (JSON is YAML)."""
    partitions = [_partition("default", chosen)]
    if chosen["missing"] != "gpu":
        partitions.append(_partition("gpu", {**PLAIN, "binpacking": not chosen["binpacking"]}))
    return json.dumps({"partitions": partitions}, indent=1)


def partitions(chosen: Choices) -> dict[str, dict[str, Queue]]:
    """The queues by path, for each partition."""
    found = {"default": by_path(tree(chosen))}
    if chosen["missing"] != "gpu":
        found["gpu"] = by_path(tree(PLAIN))
    return found


def by_path(queue: Queue, above: str = "") -> dict[str, Queue]:
    """A queue and all below, by path."""
    path = f"{above}.{queue['name']}" if above else queue["name"]
    found = {path: queue}
    for child in queue["children"]:
        found |= by_path(child, path)
    return found


def _partition(name: str, chosen: Choices) -> dict[str, Any]:
    user_below_dyn = {"name": "user", "create": True, "parent": {"name": "fixed", "value": "root.dyn", "create": True}}
    space = {"name": "tag", "value": "namespace", "create": True, "parent": {"name": "fixed", "value": "root.dyn"}}
    rules: list[dict[str, Any]] = [{"name": "provided", "create": False}, space, user_below_dyn]
    if chosen["rules"]:
        del rules[1]
    policy = "binpacking" if chosen["binpacking"] else "fair"
    return {
        "name": name,
        "preemption": {"quotapreemptionenabled": chosen["lowered"][2]},
        "placementrules": rules,
        "nodesortpolicy": {"type": policy},
        "queues": [_written(tree(chosen), root=True)],
    }


def _written(queue: Queue, *, root: bool = False) -> dict[str, Any]:
    written: dict[str, Any] = {"name": queue["name"]}
    if root:
        written["submitacl"] = "*"
    if queue["parent"]:
        written["parent"] = True
    if queue["apps"]:
        written["maxapplications"] = queue["apps"]
    resources = {}
    if queue["max"]:
        resources["max"] = _quantities(queue["max"])
    if queue["guaranteed"]:
        resources["guaranteed"] = _quantities(queue["guaranteed"])
    if resources:
        written["resources"] = resources
    if queue["properties"]:
        written["properties"] = queue["properties"]
    if queue["limits"]:
        written["limits"] = [_limit(limit) for limit in queue["limits"]]
    template = queue["template"]
    if template:
        written["childtemplate"] = {
            **({"maxapplications": template["apps"]} if template["apps"] else {}),
            **({"resources": {"max": _quantities(template["max"])}} if template["max"] else {}),
            "properties": template["properties"],
        }
    if queue["children"]:
        written["queues"] = [_written(child) for child in queue["children"]]
    return written


def _limit(limit: Limit) -> dict[str, Any]:
    written: dict[str, Any] = {"limit": "one"}
    if limit.users:
        written["users"] = list(limit.users)
    if limit.groups:
        written["groups"] = list(limit.groups)
    if limit.most:
        written["maxresources"] = _quantities(limit.most)
    if limit.apps:
        written["maxapplications"] = limit.apps
    return written


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amount}m" if name == "vcore" else str(amount) for name, amount in amounts.items()}
