"""A made-up history of a cluster, and the digest of the scheduler's messages in it. Run as a program by the tests.

It has everything that a hash seed could disturb: several queues, users, groups and limits, reservations, required nodes,
predicates, reloads, lost nodes, moving time; in the first interface UUIDs too.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from random import Random
from typing import get_args

import msgspec

from licorne import ResourceManagerCallback, SchedulerAPI, core
from licorne.config.model import NodePolicy
from licorne.core.input_log import InputLog
from licorne.si import first, v19
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NewAllocation,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    RemoveApplication,
)

STEPS = 1200
SECOND_NS = 1_000_000_000
USERS = ("alice", "bob", "carol")
GROUPS = ("dev", "ops")


def configuration(policy: str, quota: int) -> str:
    """One of a few configurations that follow each other."""
    return f"""
partitions:
  - name: default
    nodesortpolicy: {{type: {policy}}}
    queues:
      - name: root
        submitacl: '*'
        limits:
          - {{limit: all, users: ['*'], maxapplications: 4, maxresources: {{vcore: 40m}}}}
          - {{limit: group, groups: [ops, dev], maxresources: {{vcore: 60m}}}}
        queues:
          - {{name: a, properties: {{application.sort.policy: fair}}, resources: {{max: {{vcore: {quota}m}}}}}}
          - {{name: b, properties: {{application.sort.policy: stateaware}}, resources: {{guaranteed: {{vcore: 20m}}}}}}
          - {{name: c, properties: {{application.unschedasks.backoff: '2', application.unschedasks.backoff.delay: 5s}}}}
"""


class Judge(ResourceManagerCallback):
    """Has its own opinion about nodes."""

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        digest = hashlib.sha256(f"{args.allocation_key}{args.node_id}".encode()).digest()
        return "no" if digest[0] < 40 else None


class History:
    """Plays it, from a seed."""

    def __init__(self, first_interface: bool, input_log: InputLog | None = None) -> None:
        self.random = Random(1 if first_interface else 2)
        self.sha = hashlib.sha256()
        self.said = self.allocations = 0
        self.now = 0
        self.api = SchedulerAPI(
            policy_groups={"g": (configuration("fair", 50), {"reservation.delay": "100s"})},
            on_output=lambda _, outputs: self.take(outputs),
        )
        self.api.input_log = input_log
        request: first.RegisterResourceManagerRequest | v19.RegisterResourceManagerRequest
        if first_interface:
            request = first.RegisterResourceManagerRequest(rm_id="rm", policy_group="g")
        else:
            request = v19.RegisterResourceManagerRequest(rm_id="rm", policy_group="g")
        self.first_interface = first_interface
        self.api.register_resource_manager(request, Judge())

    def take(self, outputs: Sequence[Output]) -> None:
        """Add messages to the digest, with their order and types."""
        for output in outputs:
            self.said += 1
            self.allocations += type(output) is NewAllocation
            self.sha.update(type(output).__name__.encode() + msgspec.json.encode(output))

    def step(self) -> None:
        """Something happens."""
        random = self.random
        self.now += random.choice((0, 0, 0, 1, 1, 5)) * SECOND_NS
        if random.random() < 0.01:
            text = configuration(random.choice(get_args(NodePolicy)), random.randint(20, 60))
            self.api.policy_groups["g"] = (text, {"reservation.delay": "100s"})
            self.api.reload_configuration("rm", now_ns=self.now)
        self.api.submit("rm", self.inputs(), now_ns=self.now)
        self.api.schedule(now_ns=self.now)

    def inputs(self) -> list[Input]:
        """One or a few messages."""
        random, app = self.random, f"x{self.random.randint(0, 9)}"
        what = random.random()
        if what < 0.08:
            action = random.choice((*[NodeAction.CREATE] * 6, NodeAction.UPDATE, NodeAction.DECOMISSION))
            capacity = {"vcore": random.randint(5, 20), "memory": random.randint(5, 20)}
            name, labels = f"n{random.randint(0, 7)}", {"label/zone": random.choice("xy")}
            return [
                NodeUpdate(node_id=name, action=action, capacity=capacity, attributes=labels | {"label/host": name})
            ]
        if what < 0.26:
            user, queue = random.choice(USERS), random.choice("abc")
            groups = tuple(random.sample(GROUPS, random.randint(0, 2)))
            return [AddApplication(application_id=app, queue=f"root.{queue}", user=user, groups=groups)]
        if what < 0.27:
            return [RemoveApplication(application_id=app)]
        if what < 0.60:
            found = self.api.cluster.partition("rm").applications.get(app)
            names = list(found.allocations) if found is not None else []
            name = random.choice(names) if names and random.random() < 0.95 else ""
            if self.first_interface:
                return [Release(application_id=app, uuid=name, what="allocation")]
            return [Release(application_id=app, key=name or "k1")]
        return [self.ask(app) for _ in range(random.randint(1, 3))]

    def ask(self, app: str) -> Allocation:
        random = self.random
        tags = {"yunikorn.apache.org/requiredNode": f"n{random.randint(0, 7)}"} if random.random() < 0.1 else {}
        if random.random() < 0.4:
            names, kind = random.choices("abc", k=2), random.choice(("affinity", "antiAffinity", "spread", ""))
            term = {"topologyKey": random.choice(("zone", "host")), "labelSelector": {"matchLabels": {"app": names[0]}}}
            tags["licorne/pod"] = json.dumps({"namespace": "home", "labels": {"app": names[1]}})
            tags["licorne/pod-terms"] = json.dumps({kind: [term]} if kind else {})
        return Allocation(
            key=f"k{random.randint(0, 300)}",
            application_id=app,
            resource={"vcore": random.randint(1, 4), "memory": random.randint(0, 4)},
            priority=random.choice((0, 0, 0, 1, 5)),
            tags=tags or None,
            max_allocations=random.randint(1, 3) if self.first_interface else 1,
        )


def main() -> None:
    """Print which form of the core ran, the numbers of messages and of allocations among them, and the digests."""
    said = allocations = 0
    digests = []
    for first_interface in (False, True):
        history = History(first_interface)
        for _ in range(STEPS):
            history.step()
        history.api.validate()
        said += history.said
        allocations += history.allocations
        digests.append(history.sha.hexdigest())
    sys.stdout.write(f"{'compiled' if core.compiled else 'interpreted'} {said} {allocations} {' '.join(digests)}\n")


if __name__ == "__main__":
    main()
