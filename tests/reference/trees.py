"""Queue configurations drawn from a seed, each with another that may follow it.

Every part of a configuration that concerns the scheduler occurs somewhere: maxima, guarantees, limits of users and
groups with wildcards, maximum applications, sort policies, priorities, fences, offsets, back-off, templates.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, get_args

from licorne.config import ConfigError, Configuration
from licorne.config.model import NodePolicy
from reference import preempting
from reference.quotatrees import enforce_quotas

CONFIGURATIONS = 4
"""So many are drawn from a seed."""
USERS = {"alice": ("dev",), "bob": ("dev", "ops"), "carol": ("ops",), "dave": ()}

Tree = dict[str, Any]


class Trees:
    """Draws queue configurations that are accepted, each made of the one before.

    Reading a configuration costs more than anything else here, so scenarios of neighbouring seeds share theirs.
    """

    def __init__(self, rng: random.Random, load: Callable[[str], Configuration]) -> None:
        self.rng = rng
        self.more = random.Random(str(rng.getstate()[1][:4]))  # beside the other, which it leaves as it is
        self.load = load

    @classmethod
    @cache
    def drawn(cls, seed: str, load: Callable[[str], Configuration]) -> list[str]:
        """Some configurations of a seed."""
        trees = cls(random.Random(seed), load)
        drawn = [trees.first(trees.rng.choice([1, 1, 1, 2, 3]))]
        while len(drawn) < CONFIGURATIONS:
            drawn.append(trees.tightened(drawn[0]) if len(drawn) == 1 else trees.changed(drawn[-1]))
        if len(drawn[-1]["partitions"]) > 1 and trees.rng.random() < 0.6:
            drawn[-1]["partitions"].pop()
        enforce_quotas(random.Random(f"quotas {seed}"), drawn, trees.accepted)
        return list(map(json.dumps, drawn))

    def first(self, partitions: int) -> Tree:
        """A configuration of this many partitions."""
        while True:
            tree = {"partitions": [self._partition(name) for name in ("default", "gpu", "spare")[:partitions]]}
            if self.accepted(tree):
                return tree

    def changed(self, old: Tree) -> Tree:
        """Another configuration, made of the one before."""
        while True:
            tree = copy.deepcopy(old)
            for _ in range(self.rng.randint(1, 3)):
                self._change(tree)
            if self.accepted(tree):
                return tree

    def tightened(self, old: Tree) -> Tree:
        """The same queues with less for each."""
        tree = copy.deepcopy(old)
        for partition in tree["partitions"]:
            root = partition["queues"][0]
            if self.rng.random() < 0.5:
                root["maxapplications"] = 2
            for queue in root["queues"]:
                if queue["name"] != "dyn" and self.rng.random() < 0.5:
                    queue["maxapplications"] = 1
                elif queue["name"] != "dyn":
                    queue["resources"] = {"max": {"vcore": f"{self.rng.randint(1, 4)}m"}}
                    for below in (queue, *queue.get("queues", ())):
                        below.pop("limits", None)
                        below["resources"] = {"max": {"vcore": "1m"}} if below is not queue else queue["resources"]
            self._align(root, 0)
        return tree if self.accepted(tree) else self.changed(old)

    def accepted(self, tree: Tree) -> bool:
        try:
            self.load(json.dumps(tree))
        except ConfigError:
            return False
        return True

    def _partition(self, name: str) -> Tree:
        rng = self.rng
        root: Tree = {"name": "root", "submitacl": "*", "queues": []}
        for child in "abcd"[: rng.randint(2, 4)]:
            queue = self._queue(child)
            if rng.random() < 0.45:
                if rng.random() < 0.6:
                    queue["maxapplications"] = rng.randint(1, 3)
                queue["queues"] = [self._queue(f"{child}{n}") for n in range(1, rng.randint(2, 4))]
                if rng.random() < 0.3:
                    queue["queues"][0]["queues"] = [self._queue(f"{child}1{n}") for n in "xy"]
            root["queues"].append(queue)
        root["queues"].append(self._dynamic())
        if rng.random() < 0.3:
            root["limits"] = self._limits()
        self._align(root, 0)
        policy: Tree = {"type": rng.choice(get_args(NodePolicy))}
        if rng.random() < 0.3:
            policy["resourceweights"] = {"vcore": rng.choice([1.0, 4.0]), "memory": rng.choice([0.0, 1.0]), "gpu": 2.0}
        return {
            "name": name,
            "placementrules": [{"name": "provided", "create": True}],
            "nodesortpolicy": policy,
            "queues": [root],
        }

    def _dynamic(self) -> Tree:
        template: Tree = {"properties": {"application.sort.policy": self.rng.choice(["fifo", "fair"])}}
        if self.rng.random() < 0.5:
            template["resources"] = {"max": self._amounts(4, 12)}
        if self.rng.random() < 0.3:
            template["maxapplications"] = 1
        return {"name": "dyn", "parent": True, "childtemplate": template}

    def _queue(self, name: str) -> Tree:
        rng = self.rng
        queue: Tree = {"name": name, "properties": self._properties()}
        resources = {}
        if rng.random() < 0.35:
            resources["max"] = self._amounts(5, 30)
        if rng.random() < 0.35:
            resources["guaranteed"] = self._amounts(1, 5)
        if resources:
            queue["resources"] = resources
        if rng.random() < 0.25:
            queue["maxapplications"] = rng.randint(1, 3)
        if rng.random() < 0.25:
            queue["limits"] = self._limits()
        return queue

    def _amounts(self, low: int, high: int) -> Tree:
        rng = self.rng
        amounts: Tree = {"vcore": f"{rng.randint(low, high)}m"}
        if rng.random() < 0.5:
            amounts["memory"] = str(rng.randint(low, high))
        if rng.random() < 0.2:
            amounts["gpu"] = str(rng.randint(0, 2))
        return amounts

    def _properties(self) -> dict[str, str]:
        rng = self.rng
        found = {}
        if rng.random() < 0.7:
            found["application.sort.policy"] = rng.choice(["fifo", "fair", "fair", "stateaware"])
        if rng.random() < 0.25:
            found["application.sort.priority"] = "disabled"
        if rng.random() < 0.35:
            found["priority.offset"] = str(rng.randint(-4, 4))
        if rng.random() < 0.25:
            found["priority.policy"] = "fence"
        if rng.random() < 0.25:
            found["application.unschedasks.backoff"] = str(rng.randint(1, 2))
            found["application.unschedasks.backoff.delay"] = rng.choice(["3s", "20s", "30s"])
        found |= preempting.properties(self.more)
        return found

    def _limits(self) -> list[Tree]:
        rng = self.rng
        limits: list[Tree] = []
        if rng.random() < 0.5:
            limits.append({"limit": "user", "users": [rng.choice(list(USERS))]} | self._limit())
        if rng.random() < 0.5:
            limits.append({"limit": "everybody", "users": ["*"]} | self._limit())
        if rng.random() < 0.6:
            limits.append({"limit": "group", "groups": [rng.choice(["dev", "ops"])]} | self._limit())
            if rng.random() < 0.6:
                limits.append({"limit": "other groups", "groups": ["*"]} | self._limit())
        return limits

    def _limit(self) -> Tree:
        chance = self.rng.random()
        limit: Tree = {}
        if chance < 0.8:
            limit["maxresources"] = self._amounts(4, 16)
        if chance > 0.55:
            limit["maxapplications"] = self.rng.randint(1, 2)
        return limit

    def _align(self, queue: Tree, most: int) -> None:
        """Make maxima of applications what the check of configurations wants: not above the parent's, nor missing."""
        own = queue.pop("maxapplications", 0)
        own = min(own or most, most) if most else own
        if own:
            queue["maxapplications"] = own
            for limit in queue.get("limits", ()):
                if limit.get("maxapplications", 0) > own:
                    limit["maxapplications"] = own
        for child in queue.get("queues", ()):
            self._align(child, own)

    def _change(self, tree: Tree) -> None:
        rng = self.rng
        partition = rng.choice(tree["partitions"])
        root = partition["queues"][0]
        parent = root
        while rng.random() < 0.5 and (parents := [q for q in parent["queues"] if q.get("queues")]):
            parent = rng.choice(parents)
        queue = rng.choice(parent["queues"])
        new = self._queue(queue["name"])
        chance = rng.random()
        if chance < 0.3:
            for name in ("resources", "maxapplications", "properties"):
                queue.pop(name, None)
                queue |= {name: new[name]} if name in new else {}
        elif chance < 0.45:
            rng.choice([queue, root, *root["queues"]])["maxapplications"] = rng.randint(1, 2)
        elif chance < 0.65:
            owner = rng.choice([queue, root])
            owner["limits"] = self._limits()
        elif chance < 0.74 and len(parent["queues"]) > 1:
            parent["queues"].remove(queue)
        elif chance < 0.82:
            missing = [name for name in ("a", "b", "c", "d", "e") if name not in [q["name"] for q in root["queues"]]]
            root["queues"].insert(0, self._queue(missing[0]) if missing else root["queues"].pop())
        elif chance < 0.91:
            queue["queues"] = [] if queue.get("queues") else [self._queue(f"{queue['name']}9")]
        elif chance < 0.95:
            partition["nodesortpolicy"] = {"type": rng.choice(get_args(NodePolicy))}
        elif len(tree["partitions"]) > 1 and rng.random() < 0.5:
            tree["partitions"].remove(partition)
        elif len(tree["partitions"]) == 1 and rng.random() < 0.5:
            tree["partitions"].append(self._partition("spare"))
        self._align(root, 0)
