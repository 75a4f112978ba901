"""Configurations that have quotas enforced when they are lowered, and what is to be met of that."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from reference.model import SECOND_NS, Partition
from reference.sums import Sums

QUOTAS: Final = (
    "quota: start time",
    "quota: start time by forced usage",
    "quota: start time moved",
    "quota: enforced",
    "quota: nothing to take",
    "quota: victims in several leaves",
)
DELAYS: Final = ("7s", "23s", "71s")
"""Nothing else lasts so long, so that no two things happen at one moment."""


def enforce_quotas(rng: random.Random, trees: list[dict[str, Any]], accepted: Callable[[dict[str, Any]], bool]) -> None:
    """Switch it on in half of the partitions, with delays in some queues; where a queue has a max, rather another one.

    Done after all else is drawn, so that the rest stays what it was.
    """
    chosen = {name: rng.random() < 0.6 for name in ("default", "gpu", "spare")}
    for number, tree in enumerate(trees):
        most = 30 if number == 0 else rng.choice([4, 8])
        for partition in tree["partitions"]:
            if not chosen[partition["name"]]:
                continue
            partition["preemption"] = {"quotapreemptionenabled": rng.random() < 0.9}
            for queue in _below(partition["queues"][0]):
                if rng.random() < 0.7:
                    queue.setdefault("properties", {})["quota.preemption.delay"] = rng.choice(DELAYS)
                if rng.random() < 0.5:
                    _another_max(rng, tree, queue, most, accepted)


def squeezes(seed: int) -> float:
    """How likely a scenario lowers quotas on purpose."""
    return random.Random(f"squeezes {seed}").choice([0, 0, 0, 5, 9])


def squeezed(
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
    for below in _below(queue):
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


def _another_max(
    rng: random.Random,
    tree: dict[str, Any],
    queue: dict[str, Any],
    most: int,
    accepted: Callable[[dict[str, Any]], bool],
) -> None:
    kept = queue.get("resources")
    new = {"vcore": f"{rng.randint(most // 3, most)}m"}
    if rng.random() < 0.3:
        new["memory"] = str(rng.randint(most // 3, most))
    queue["resources"] = {**(kept or {}), "max": new}
    if not accepted(tree):
        queue.pop("resources")
        if kept is not None:
            queue["resources"] = kept


def _below(queue: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for child in queue.get("queues", ()):
        yield child
        yield from _below(child)
