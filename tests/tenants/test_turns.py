"""A tenant whose asks can never run changes neither what the others get, nor when.

The same steps are run twice, with that tenant and without. The hostile tenant's queue is a top-level one; its asks
have amounts that no node has, unknown types, and nodes and labels that do not exist.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from core.bench import SECOND_NS, Bench, config
from licorne.core.constants import SUM_MAX
from licorne.si import messages
from licorne.si.messages import Allocation, NodeAction, Release
from seeds import first_seed

SCENARIOS = 25
"""So many in each run, by default the same."""
MANY = 3_000
TYPES = ["vcore", "memory", "gpu"]
FIRST_SEED = first_seed("LICORNE_TENANTS_SEED")


def others(rng: random.Random, step: int) -> list[Any]:
    """A step of the others: (method, arguments), to be done in both worlds."""
    app = rng.choice(["b0", "b1", "c0", "c1"])
    resource = {name: rng.randint(1, 4) for name in TYPES if rng.random() < 0.6} or {"vcore": 1}
    what = rng.choices(["ask", "release", "node", "pass", "gone"], [8, 3, 1, 2, 0.4])[0]
    match what:
        case "ask":
            return ["ask", app, f"{app}-{step}", resource, rng.randint(0, 2)]
        case "release":
            return ["release", app, rng.random()]
        case "node":
            capacity = {name: rng.randint(2, 12) for name in TYPES if rng.random() < 0.7}
            return ["node", f"m{rng.randrange(4)}", capacity or {"vcore": 4}]
        case "gone":
            return ["gone", f"m{rng.randrange(4)}"]
    return ["pass", rng.choice([0, 1, 3, 30])]


def hostile(rng: random.Random, step: int) -> Allocation | Release:
    """A step of the tenant that asks for what can never run."""
    app = f"h{rng.randrange(3)}"
    kind = rng.randrange(5)
    key = f"{app}-{kind}-{rng.randrange(6)}"  # a change of an ask changes its amounts, and not its tags
    if rng.random() < 0.3:
        return Release(application_id=app, key=key)
    resource: dict[str, int] = {"vcore": 1}
    tags: dict[str, str] = {}
    match kind:
        case 0:
            resource = {rng.choice(TYPES): SUM_MAX - rng.randrange(2)}
        case 1:
            resource = dict.fromkeys(rng.sample(TYPES, 2), 1 << rng.randint(40, 61))
        case 2:
            resource = {"vcore": 1} | {f"invented {rng.randrange(400)}": rng.randint(1, 1 << 50) for _ in range(20)}
        case 3:
            tags = {"yunikorn.apache.org/requiredNode": f"absent {step}"}
        case _:
            tags = {"licorne/node-constraints": json.dumps({"nodeSelector": {f"label {step}": "x"}})}
    return Allocation(key=key, application_id=app, resource=resource, tags=tags or None, priority=rng.randint(-5, 5))


def play(seed: int, *, beside: bool) -> list[str]:
    """The messages to the others, each line with its moment."""
    rng, bad = random.Random(seed), random.Random(seed + 1)
    sort = rng.choice(["fifo", "fair"])
    policy = f"properties: {{application.sort.policy: {sort}}}"
    quota = "resources: {max: {vcore: 20m, memory: 30}}"
    b = Bench(config(f"b {policy}, {quota}", f"c {policy}", rng.choice(["h", "h resources: {max: {vcore: 5m}}"])))
    for name in ("b0", "b1", "c0", "c1", "h0", "h1", "h2"):
        b.app(name, f"root.{name[0]}", f"user {name}")
    heard: list[str] = []
    for step in range(40):
        start = len(b.outputs)
        if beside:
            b.api.submit("rm", [hostile(bad, step) for _ in range(5)])
        _do(b, others(rng, step))
        b.api.schedule()
        now = int(b.seconds * SECOND_NS)
        heard += [f"{now} {line}" for line in map(_line, b.outputs[start:]) if line]
    b.api.validate()
    return heard


def _do(b: Bench, step: list[Any]) -> None:
    match step:
        case ["ask", app, key, resource, priority]:
            b.api.submit("rm", [Allocation(key=key, application_id=app, resource=resource, priority=priority)])
        case ["release", app, part]:
            keys = sorted(b.application(app).allocations) if app in b.partition.applications else []
            if keys:
                b.api.submit("rm", [Release(application_id=app, key=keys[int(part * len(keys))])])
        case ["node", node, capacity]:
            action = NodeAction.UPDATE if node in b.partition.nodes else NodeAction.CREATE
            b.node(node, action, capacity=capacity)
        case ["gone", node]:
            b.node(node, NodeAction.DECOMISSION)
        case ["pass", seconds]:
            b.seconds += seconds


def _line(output: Any) -> str:
    match output:
        case messages.NewAllocation():
            return f"{output.key} on {output.node_id}"
        case messages.RejectedAllocation() | messages.RejectedNode():
            return f"{type(output).__name__} {output}" if getattr(output, "application_id", "")[:1] != "h" else ""
        case messages.Released():
            return f"{output.key} ended"
    return ""


def differences(first: int, count: int) -> list[str]:
    """The seeds in which the others got other messages."""
    return [
        f"seed {seed}" for seed in range(first, first + count) if play(seed, beside=True) != play(seed, beside=False)
    ]


def test_other_tenants_get_the_same_at_the_same_time() -> None:
    assert any("on m" in line for line in play(FIRST_SEED, beside=True)), "nothing is placed at all"
    assert not differences(FIRST_SEED, SCENARIOS)


@pytest.mark.nightly
def test_other_tenants_get_the_same_for_thousands_more_seeds(new_seed: int) -> None:
    assert not differences(new_seed, MANY)
