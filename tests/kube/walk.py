"""A random walk of pods through their stages: a manager with the scheduler in process, and no API server.

What an API server, its users and other schedulers may show comes in any order; now and then an exception is raised for a
pod, or an application is refused, which no user can bring about.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

import msgspec

from kube.places import Places
from kube.provisioner import CLASS, claim, persistent_volume, uses
from licorne.kube.manager import lifecycle as module
from licorne.kube.manager.commands import AskAgain, Bind, CreatePod, Evict, Fail, GiveUpClaims, WriteClaim
from licorne.kube.manager.gangs import Gangs
from licorne.kube.manager.lifecycle import PodLifecycle
from licorne.kube.manager.records import PodRecord
from licorne.kube.manager.stages import PodEvent, Stage
from licorne.kube.objects import Namespace, Node, StorageClass
from licorne.kube.objects.volumes import BIND_COMPLETED, SELECTED_NODE
from licorne.si.messages import AddApplication, Input, RejectedApplication

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}, {name: b}]
"""
SECOND_NS: Final = 10**9
Y: Final = "yunikorn.apache.org/"
GROUPS: Final = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "1"}}])
GANG: Final = {
    Y + "task-groups": GROUPS,
    Y + "task-group-name": "g",
    Y + "schedulingPolicyParameters": "gangSchedulingStyle=Hard placeholderTimeoutInSeconds=20",
}
NODES: Final = ("n0", "n1", "n2")
STEPS: Final = ((module, "read_pod"), (module, "asks_the_same"), (Gangs, "placed"), (PodLifecycle, "ask"))
"""Functions that concern one pod."""
CLAIMS: Final = ("c0", "c1", "c2", "c3")
TOO_MUCH: Final = "5E"
"""An amount of memory that the scheduler does not count."""


class PlantedError(RuntimeError):
    """The exception that a walk raises."""


@contextmanager
def watched_moves(moved: Callable[[Stage, PodEvent], None]) -> Iterator[None]:
    """Have each event of a pod told, with the stage in which it came."""
    move = PodRecord.move

    def told(self: PodRecord, event: PodEvent) -> None:
        before = self.stage
        move(self, event)
        moved(before, event)

    with patch.object(PodRecord, "move", told):
        yield


class Walk(Places):
    """Pods on their random ways. `log` has what the manager complains of."""

    queues = QUEUES

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.log: list[str] = []
        self.manager.outbox.warn = lambda text, _: self.log.append(text)
        self.made = 0
        self.sent: dict[str, str] = {}
        """The nodes of bindings that are under way, by pod."""
        self.again: list[str] = []
        """Pods that are to be asked for again."""
        self.refused = ""
        """The application that is refused."""
        self._submit = self.api.submit
        self.api.submit = self._refuse  # type: ignore[method-assign, assignment]
        self.manager.namespace_seen(msgspec.convert({"metadata": {"name": "n"}}, Namespace))
        self.late: list[GiveUpClaims] = []
        """Pods whose claims may take too long."""
        self.manager.named_seen(msgspec.convert({"metadata": {"name": "made"}, **CLASS}, StorageClass))
        for name in CLAIMS:
            self._put_claim(name)
        for name in NODES[:2]:
            self.node(name, allocatable={"cpu": "4"})

    def _refuse(self, rm_id: str, inputs: Sequence[Input]) -> None:
        if any(isinstance(one, AddApplication) and one.application_id == self.refused for one in inputs):
            self.manager.decisions.take([RejectedApplication(self.refused, "the test wants it")])
        else:
            self._submit(rm_id, inputs)

    def walk(self, steps: int) -> None:
        """Take so many steps."""
        acts = [self._create, self._change, self._change, self._bind, self._do_not_bind, self._ask_again, self._end]
        acts += [
            self._volume,
            self._volume,
            self._give_up_claims,
            self._node,
            self._outage,
            self._refuse_another,
            self._schedule,
            self._schedule,
            self._command,
            self._command,
        ]
        for _ in range(steps):
            with ExitStack() as planted:
                if self.rng.random() < 0.2:
                    owner, function = self.rng.choice(STEPS)
                    planted.enter_context(patch.object(owner, function, self._sometimes(getattr(owner, function))))
                self.rng.choice(acts)()
        self.api.validate()

    def _sometimes(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method, which often raises an exception."""

        def replaced(*arguments: Any) -> Any:
            if self.rng.random() < 0.5:
                raise PlantedError
            return method(*arguments)

        return replaced

    def _some(self) -> str:
        return self.rng.choice(sorted(self.pods))

    def _create(self) -> None:
        rng, self.made = self.rng, self.made + 1
        gang = rng.random() < 0.3
        app = f"gang{rng.randrange(2)}" if gang else f"app{rng.randrange(5)}"
        labels = {"applicationId": app, "queue": rng.choice(("root.a", "root.a", "root.b", "root.none"))}
        if app == "gang1":
            labels["gang.scheduling"] = "atomic"
        more = {"volumes": uses(rng.choice(CLAIMS))} if rng.random() < 0.3 else {}
        gates = [{"name": "g"}] * (rng.random() < 0.1)
        self._put(f"p{self.made}", labels, GANG if gang else {}, schedulingGates=gates, **more)
        if rng.random() < 0.05:
            self.pods[f"p{self.made}"]["spec"]["nodeName"] = rng.choice(NODES)
        self.show(f"p{self.made}")

    def _put(self, name: str, labels: dict[str, str], annotations: dict[str, str], **spec: Any) -> None:
        cpu = self.rng.choice("123")
        self.pods[name] = {
            "metadata": {"name": name, "namespace": "n", "uid": name, "labels": labels, "annotations": annotations},
            "spec": {
                "schedulerName": "yunikorn",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
                **spec,
            },
        }

    def _change(self) -> None:
        """Change a pod: its amounts, its labels, its gates, or that it is being deleted."""
        if not self.pods:
            return
        name, rng = self._some(), self.rng
        meta, spec = self.pods[name]["metadata"], self.pods[name]["spec"]
        if (what := rng.random()) < 0.5:
            memory = {"memory": rng.choice(("1Gi", TOO_MUCH))} if rng.random() < 0.5 else {}
            spec["containers"][0]["resources"]["requests"] = {"cpu": rng.choice("123"), **memory}
        elif what < 0.6:
            spec["schedulingGates"] = []
        elif what < 0.9:
            meta["labels"]["more"] = str(rng.random())
        else:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.show(name)

    def _bind(self) -> None:
        """Show a binding that was sent, or one of another scheduler."""
        names = [name for name, body in self.pods.items() if not body["spec"].get("nodeName")]
        sent = [name for name in names if name in self.sent]
        if not names:
            return
        if not sent and self.rng.random() < 0.8:
            return
        name = self.rng.choice(sent or names)
        others = self.rng.random() < 0.1
        self.pods[name]["spec"]["nodeName"] = self.rng.choice(NODES) if others else self.sent.get(name, NODES[0])
        self.show(name)
        if self.sent.pop(name, None):
            self.manager.lifecycle.bound(name)

    def _do_not_bind(self) -> None:
        names = [name for name in self.sent if name in self.pods]
        if not names:
            return
        name = self.rng.choice(names)
        del self.sent[name]
        if self.rng.random() < 0.5:
            self.manager.lifecycle.not_bound(name, "the test wants it")
        else:
            self.manager.lifecycle.outdated(name)

    def _ask_again(self) -> None:
        if self.again:
            self.manager.lifecycle.ask_again(self.again.pop(self.rng.randrange(len(self.again))))

    def _put_claim(self, name: str, volume: str = "", **annotations: str) -> None:
        made = claim(name, "made", namespace="n", annotations=annotations)
        made.spec.volume_name = volume
        self.manager.named_seen(made)

    def _volume(self) -> None:
        """Have a claim bound, or new and without a volume; or its volume is refused."""
        name = self.rng.choice(CLAIMS)
        known = self.manager.lifecycle.volumes.storage.claims["n", name]
        if known.is_bound:
            if self.rng.random() < 0.3:
                self._put_claim(name)
        elif self.rng.random() < 0.2:
            self._put_claim(name)
        elif known.annotation(SELECTED_NODE) is not None:
            volume = persistent_volume(name, "", "", "made")
            volume.spec.node_affinity = None
            self.manager.named_seen(volume)
            self._put_claim(name, name, **{BIND_COMPLETED: "yes"})

    def _give_up_claims(self) -> None:
        if self.late and self.rng.random() < 0.3:
            one = self.late.pop(self.rng.randrange(len(self.late)))
            self.manager.lifecycle.give_up_claims(one.uid, one.number)

    def _end(self) -> None:
        if self.rng.random() < len(self.pods) / 8:
            self.no_pod(self._some())

    def no_pod(self, name: str) -> None:
        self.sent.pop(name, None)
        super().no_pod(name)

    def _node(self) -> None:
        name = self.rng.choice(NODES)
        if name not in self.nodes:
            self.node(name, allocatable={"cpu": "4"})
        elif self.rng.random() < 0.5:
            self.manager.node_gone(msgspec.convert(self.nodes.pop(name), Node))

    def _outage(self) -> None:
        """Take a node away for so long that applications complete; perhaps one of its pods is refused when it comes back."""
        name = self.rng.choice(sorted(self.nodes) or NODES)
        if name in self.nodes:
            self.manager.node_gone(msgspec.convert(self.nodes.pop(name), Node))
        for _ in range(3):
            self.now_ns += 31 * SECOND_NS
            self.api.schedule()
        lost = [
            record.application.id for record in self.manager.records.pods.values() if record.stage is Stage.NODE_UNKNOWN
        ]
        if lost and self.rng.random() < 0.5:
            self.refused = self.rng.choice(lost)
        self.node(name, allocatable={"cpu": "4"})

    def _refuse_another(self) -> None:
        self.refused = self.rng.choice(("", "gang0", "gang1", *(f"app{number}" for number in range(5))))

    def _schedule(self) -> None:
        self.now_ns += self.rng.choice((SECOND_NS // 10, SECOND_NS, 31 * SECOND_NS))
        self.api.schedule()

    def _command(self) -> None:
        for command in self.manager.flush():
            if isinstance(command, Bind):
                assert command.uid not in self.sent, f"{command.uid} is bound again while its binding is under way"
                self.sent[command.uid] = command.node
            elif isinstance(command, AskAgain):
                self.again.append(command.uid)
            elif isinstance(command, GiveUpClaims):
                self.late.append(command)
            elif isinstance(command, WriteClaim):
                self._put_claim(command.path.rpartition("/")[2], **command.body["metadata"]["annotations"])
            elif isinstance(command, CreatePod):
                body = command.body["metadata"]
                if body["name"] not in self.pods and self.rng.random() < 0.8:
                    self._put(body["name"], body["labels"], body["annotations"])
                    self.pods[body["name"]]["metadata"]["ownerReferences"] = body["ownerReferences"]
                    self.show(body["name"])
            elif isinstance(command, Evict | Fail) and command.name in self.pods and self.rng.random() < 0.5:
                self.no_pod(command.name)
