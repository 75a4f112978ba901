"""Steps that lower the quota of a queue on purpose, below its usage, and let its delay pass."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from licorne.si.messages import Allocation
from reference.model import SECOND_NS, Partition
from reference.quotatrees import DELAYS
from reference.quotatrees import below as below_of
from reference.sums import Sums
from reference.trees import Trees

if TYPE_CHECKING:
    from reference.clusters import Manager, Scenario, Step


def squeezes(seed: int) -> float:
    """How likely a scenario lowers quotas on purpose."""
    return random.Random(f"squeezes {seed}").choice([0, 0, 0, 5, 9])


def squeeze(scenario: Scenario, manager: Manager, partition: Partition) -> Step:
    """Lower the quota of a queue below what it uses, and let its delay pass; or have it used by small allocations."""
    rng = scenario.rng
    if rng.random() < 0.4:
        apps = rng.sample(list(partition.apps), min(4, len(partition.apps)))
        return ("submit", manager.rm_id, [_small(scenario, partition, app) for app in apps for _ in range(3)])
    accepted = Trees(rng, scenario.load).accepted
    for text, pause_ns in _squeezed(rng, scenario.texts[manager.rm_id], partition, accepted):
        scenario.planned += [("reload", manager.rm_id, text), ("advance", pause_ns)]
        scenario.texts[manager.rm_id] = text
    return ("schedule", None)


def _small(scenario: Scenario, partition: Partition, app: str) -> Allocation:
    rng = scenario.rng
    scenario.count += 1
    return Allocation(
        key=f"small{scenario.count}",
        application_id=app,
        partition=partition.name,
        resource={"vcore": 1},
        priority=rng.choice([0, 0, 3]),
        originator=rng.random() < 0.1,
        allow_preempt_self=rng.random() < 0.7,
    )


def _squeezed(
    rng: random.Random, text: str, partition: Partition, accepted: Callable[[dict[str, Any]], bool]
) -> list[tuple[str, int]]:
    """Configurations, and how long (ns) each is to last: the second has less for a queue than it uses.

    Often one follows that has a shorter delay. None, if no queue uses enough, or what was drawn is not accepted.
    """
    sums = Sums(partition)
    loaded = [q for q in partition.root.walk() if q.managed and q.parent and sums.allocated[q].get("vcore", 0) > 2]
    if not loaded:
        return []
    several = [q for q in loaded if sum(bool(sums.allocated[child]) for child in q.children.values()) > 1]
    chosen = rng.choice(several if several and rng.random() < 0.7 else loaded)
    used, tree, delay = sums.allocated[chosen], json.loads(text), rng.choice(DELAYS)
    mine = next((p for p in tree["partitions"] if p["name"] == partition.name), None)
    queue = mine["queues"][0] if mine else None
    for name in chosen.path.split(".")[1:]:
        queue = next((q for q in queue.get("queues", ()) if q["name"] == name), None) if queue else None
    if mine is None or queue is None:
        return []
    mine["preemption"] = {"quotapreemptionenabled": True}
    for below in below_of(queue):
        resources = below.setdefault("resources", {})
        resources.pop("max", None)
        path = next((q for q in partition.root.walk() if q.name == below["name"]), None)
        if rng.random() < 0.4:
            has = sums.allocated[path] if path else {}
            resources["guaranteed"] = {"vcore": f"{rng.randint(0, has.get('vcore', 0) // 2)}m"}
            if rng.random() < 0.4:
                resources["guaranteed"]["memory"] = str(rng.randint(0, has.get("memory", 0)))
    listed = [name for name in ("vcore", "memory") if used.get(name) and (name == "vcore" or rng.random() < 0.4)]
    found = []
    seconds = int(delay.removesuffix("s"))
    steps = [(1.0, delay, 0), (rng.uniform(0.1, 0.7), delay, seconds * SECOND_NS + rng.choice([-1, 0, 1]))]
    if rng.random() < 0.4:
        steps[1] = (steps[1][0], delay, seconds * SECOND_NS // 2)
        steps.append((steps[1][0], DELAYS[0], 2 * SECOND_NS))
    for part, lasts, pause_ns in steps:
        maximum = {name: f"{int(used[name] * part)}{'m' if name == 'vcore' else ''}" for name in listed}
        queue["resources"] = {**queue.get("resources", {}), "max": maximum}
        queue["resources"].pop("guaranteed", None)
        queue.setdefault("properties", {})["quota.preemption.delay"] = lasts
        if not accepted(tree):
            return []
        found.append((json.dumps(tree), pause_ns))
    return found
