"""The queue configurations of the comparison: small ones, and those that the reference's scenarios are drawn from."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any, get_args

from licorne.config import load
from licorne.config.model import NodePolicy
from reference.trees import Trees

SHARED_BY = 25
"""So many scenarios share their configurations: to read one costs more than to run a scenario."""

Tree = dict[str, Any]


@cache
def drawn(number: int) -> list[str]:
    """The texts with this number; the first one is the one to begin with."""
    rng = random.Random(f"configurations {number}")
    if rng.random() < 0.35:
        return Trees.drawn(f"parking {number}", load)
    contested = rng.random() < 0.4
    first = [_queue(rng, name, contested=contested) for name in "abc"[: rng.randint(1, 3)]]
    texts = [json.dumps({"partitions": [_partition(rng, first)]})]
    while len(texts) < 4:
        queues = [_queue(rng, queue["name"], contested=contested) if rng.random() < 0.5 else queue for queue in first]
        if rng.random() < 0.3:  # one becomes a parent, or a parent a leaf: who is in it is not served
            queues[-1] = {"name": queues[-1]["name"], "parent": True, "queues": [_queue(rng, "x")]}
        texts.append(json.dumps({"partitions": [_partition(rng, queues)]}))
    return texts


def _partition(rng: random.Random, queues: list[Tree]) -> Tree:
    root: Tree = {"name": "root", "submitacl": "*", "queues": queues}
    return {
        "name": "default",
        "placementrules": [{"name": "provided", "create": True}],
        "nodesortpolicy": {"type": rng.choice(get_args(NodePolicy))},
        "queues": [root],
    }


def _queue(rng: random.Random, name: str, *, contested: bool = False) -> Tree:
    """One queue; a `contested` one mostly has a guarantee, for which it soon preempts."""
    queue: Tree = {
        "name": name,
        "properties": {"application.sort.policy": rng.choice(["fifo", "fair", "fifo", "fair", "stateaware"])},
    }
    resources: Tree = {}
    if rng.random() < 0.35:
        resources["max"] = {"vcore": f"{rng.randint(6, 20)}m"}
    if rng.random() < (0.8 if contested else 0.25):
        resources["guaranteed"] = {"vcore": f"{rng.randint(1, 5)}m"}
    if contested:
        queue["properties"]["preemption.delay"] = "1s"
    if resources:
        queue["resources"] = resources
    if rng.random() < 0.3:  # not above the smallest max of a queue
        users = rng.choice([["alice"], ["bob"], ["*"]])
        queue["limits"] = [{"limit": "one", "users": users, "maxresources": {"vcore": f"{rng.randint(4, 6)}m"}}]
        if rng.random() < 0.4:
            queue["limits"][0]["maxapplications"] = 1
    if rng.random() < 0.3:
        queue["maxapplications"] = rng.randint(1, 3)
    if rng.random() < 0.1:
        queue["properties"] |= {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "3s"}
    return queue
