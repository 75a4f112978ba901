"""Random schedules of a cluster with a played API server: what users, kubelets and trouble do while licorne runs.

A model keeps books of its own (`kube.books`). Each decision must be right in what its process had read (`kube.watched`), and
each binding at the API server, where no node may get more than it has. At the end, when the trouble is over, everything that
fits must be bound (`kube.ends`), and a process that is started then must come to the same state as the one that went
through it all. So must one that is started at a quiet moment before, and writes nothing.

Which features of Kubernetes and of queues a world has is drawn with it (`kube.kinds`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from common.virtual import VirtualLoop, run
from kube import books, ends, kinds
from kube.apiserver import EPOCH_S, FakeClient, Server, Trouble, calm
from kube.books import Limits, View
from kube.kinds import Kind
from kube.provisioner import (
    CLASS,
    LOCAL,
    Provisioner,
    check_held_once,
    check_limit,
    check_volumes,
    claim,
    persistent_volume,
    uses,
)
from kube.watched import Decision, Watched
from licorne.host.log import Levels, no_log
from licorne.kube.api import ApiError
from licorne.kube.lease import LeaseLostError
from licorne.kube.objects import ConfigMap, CSINode, Namespace, Node, Pod, PodDisruptionBudget, PodGroup, StorageClass
from licorne.kube.objects.nodes import Taint
from licorne.kube.pauses import PAUSE_S
from licorne.kube.pods.resources import read_resources
from licorne.kube.pods.work import is_over
from licorne.kube.runner import Clients, Runner
from licorne.kube.settings import RunSettings
from licorne.kube.writer import TRIES_TO_REPORT
from licorne.state.recording import Recorder
from recording.recorded import assert_replays

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}, {name: fixed, value: root.a}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
          - name: b
"""
DATA = {"queues.yaml": QUEUES, "reservation.enabled": "false"}
AMOUNTS = {"cpu": 4000, "memory": 8 << 30, "pods": 20}
CALM_S = 400.0
BUSY_S = 120.0
QUIET_S, QUIET_MAX_S = 12.0, 60.0
"""A cluster is at rest when nothing has changed for so long; it is given up after a while."""
NEVER_S = float("inf")
HUNG_S = 750.0
"""How much longer the calm end takes for each victim that hangs: a pod may wait for one after the other, until the scheduler
gives it up ten minutes after its grace period."""


class OvercommittedError(AssertionError):
    """A binding gave a node more than it has."""


class World:
    """Users, kubelets, controllers and other schedulers, beside one server.

    `kind` says what the world has; with None it has what a test makes of it, and only the laws of all worlds are checked.
    """

    def __init__(self, seed: int, kind: Kind | None = None) -> None:
        self.rng = random.Random(seed)
        self.later_dice = random.Random(seed + 2)
        """For what worlds have by `kinds.LATER`."""
        self.kind = kind
        self.backed: tuple[str, ...] = ()
        """Extended resources that no node lists, and device classes back."""
        self.server = Server(random.Random(seed + 1))
        self.server.on_bind = self.check_binding
        self.server.on_delete = self.check_deletion
        self.server.on_create = self.check_creation
        self.bound: dict[str, str] = {}
        self.made = 0
        self.alive: list[Watched] = []
        """The processes that run and may write."""
        self.decisions: dict[str, Decision] = {}
        """The last decision for each pod, by its UID."""
        self.limits_in_force: list[tuple[float, Limits]] = []
        """Limits that a process has read, and when."""
        self.evictions: list[float] = []
        self.gangs: dict[str, int] = {}
        """The sizes of gangs without placeholders, by application."""
        self.begun: set[str] = set()
        """Those of them that have begun: their last members got a node."""
        self.unlimited: set[str] = set()
        """Nodes that were given volumes by a process which had not read how many they take."""
        self.uncounted: set[str] = set()
        """Placeholders that a process has deleted because their gang fails: so it has said, they count for no queue until they end."""
        self.budgets: dict[str, int] = {}
        """How many of the pods that a budget means must stay."""
        self._maps: dict[str, Limits | None] = {}  # by version
        self._opens_at: dict[str, float] = {}  # when the gates of gangs go
        self._controlled: dict[str, dict[str, Any]] = {}  # what the pods of Hard gangs are, by application
        self.hanging: dict[str, float] = {}
        """Until when no kubelet ends a victim, by its UID."""
        self.wanted_claims: list[str] = []
        """Those of the pod that is created next."""
        self.provisioner = Provisioner(self.server, random.Random(seed + 3))
        self.provisioner.key = kinds.HOST
        self.may_hang = True
        """Whether victims may hang from now on."""
        self.placeholders_max = NEVER_S
        """How many placeholders a ResourceQuota takes."""
        self._devices_at: dict[str, float] = {}  # when the device plugin of a node is back
        self._writers: list[Runner] = []  # processes that have written, in their order
        self.controllers_act = True
        """Whether controllers replace pods that have failed: without an end, where a gang has no room."""
        for name in ("default", "kube-system"):
            self.server.put("namespaces", msgspec.convert({"metadata": {"name": name}}, Namespace))
        for name, of in (("made", CLASS), ("local", LOCAL)) if kind is not None and kind.volumes else ():
            self.server.put("storageclasses", msgspec.convert({"metadata": {"name": name}, **of}, StorageClass))
        self.limits = Limits() if kind is None else kinds.draw_limits(kind, self.rng)
        self.put_map(DATA if kind is None else kinds.configuration(kind, self.limits), self.limits)
        for number in range(3):
            self.add_node(f"n{number}")

    @property
    def keeps_nodes(self) -> bool:
        """Whether nodes may be kept for pods that wait."""
        return self.kind is not None and self.kind.keeps_nodes

    @property
    def has_fixed_queues(self) -> bool:
        """Whether all pods of an application name the same queue."""
        return self.kind not in (None, Kind())

    @property
    def disturbed(self) -> bool:
        """Whether a place that was right when it was given may be too much later."""
        kind = self.kind
        return kind is not None and (kind.foreign or kind.maps or kind.places or kind.shrinks or kind.devices)

    # -- the books

    def used(self, node: str) -> dict[str, int]:
        """Return what the pods of a node take that have not ended."""
        total: dict[str, int] = {}
        for pod in self.server.pods():
            if pod.spec.node_name == node and not is_over(pod):
                for name, amount in read_resources(pod).items():
                    total[name] = total.get(name, 0) + amount
        return total

    def fits(self, pod: Pod, node: str) -> bool:
        """Return whether a pod has room on a node."""
        used = self.used(node)
        capacity = {"vcore": AMOUNTS["cpu"], "memory": AMOUNTS["memory"], "pods": AMOUNTS["pods"]}
        capacity[books.DEVICE] = kinds.DEVICES
        wanted = {name: amount for name, amount in read_resources(pod).items() if name not in self.backed}
        return all(used.get(name, 0) + amount <= capacity.get(name, 0) for name, amount in wanted.items())

    def check_binding(self, pod: Pod, node: str) -> None:
        """Check the rules of every binding, by what the process could know that decided it."""
        decision = self.decisions.get(pod.metadata.uid)
        if self.server.objects["nodes"].get(("", node)) is None:
            pass  # it has gone on the way
        elif (
            decision is not None and decision.node == node
        ):  # another one may be of a process that has lost the Lease since
            self._check_arrival(pod, decision)
        elif not self.fits(pod, node):
            raise OvercommittedError(f"{pod.metadata.name} on {node}, which has {self.used(node)}")
        if node in {name for _, name in self.server.objects["nodes"]}:
            check_volumes(self.provisioner, pod, node)
        assert pod.metadata.uid not in self.bound, f"{pod.metadata.name} is bound twice"
        self.bound[pod.metadata.uid] = node

    def _check_arrival(self, pod: Pod, decision: Decision) -> None:
        """Check that the place is still free that was chosen, and the quota."""
        if decision.exchanged and self.disturbed:
            return
        counted = [
            (other, other.spec.node_name)
            for other in self.server.pods()
            if not is_over(other) and (other.metadata.uid in self.bound or other.metadata.uid in decision.others)
        ]
        nodes = [node for node in self.nodes() if node.metadata.name != decision.node]
        view = View([*nodes, self._as_decided(decision, counted)], counted, Limits())
        free = {"node_selector": None, "affinity": None, "topology_spread_constraints": None}
        bare = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **free))
        why_not = view.why_not(bare, decision.node)
        if why_not:
            raise OvercommittedError(f"{pod.metadata.name} on {decision.node}: {why_not}")
        known = [limits for at, limits in self.limits_in_force if at >= decision.at]
        known.append(decision.limits)
        full = [
            queue
            for limits in known
            if (queue := View(self.nodes(), counted, limits, uncounted=self.uncounted).full_queue(pod))
        ]
        assert len(full) < len(known), f"{pod.metadata.name} is bound, and {full[0]} is full"

    def _as_decided(self, decision: Decision, counted: list[tuple[Pod, str]]) -> Node:
        """Return the node of a decision with the most that it had when this, or a later one for a pod that counts there, was made.

        What it admits was right when it was chosen.
        """
        room = decision.room
        for other, node in counted:
            later = self.decisions.get(other.metadata.uid)
            if later is not None and later.node == node == decision.node and later.at >= decision.at:
                room = {name: max(amount, later.room[name]) for name, amount in room.items()}
        given = {"cpu": f"{room['vcore']}m"} | {name: str(room[name]) for name in ("memory", "pods", books.DEVICE)}
        return msgspec.convert({"metadata": {"name": decision.node}, "status": {"allocatable": given}}, Node)

    def check_deletion(self, pod: Pod) -> None:
        """Check that only placeholders and victims are deleted, and victims are told so first, if they can be."""
        cannot_be_reported = self.server.tries_to_tell.get(pod.metadata.uid, 0) >= TRIES_TO_REPORT
        if self.kind is not None and not books.is_placeholder(pod) and not cannot_be_reported:
            told = {one.type: (one.status, one.reason) for one in pod.status.conditions or ()}
            name = pod.metadata.name
            assert told.get("DisruptionTarget") == ("True", "PreemptionByScheduler"), f"{name} is deleted untold"
            if self.kind.hangs and self.may_hang and self.later_dice.random() < 0.4:
                lasts_s = self.later_dice.choice((20.0, 200.0, NEVER_S))
                self.hanging.setdefault(pod.metadata.uid, self.now_s() + lasts_s)

    def check_creation(self) -> None:
        """Refuse one more placeholder than the ResourceQuota takes."""
        if sum(books.is_placeholder(pod) for pod in self.server.pods()) >= self.placeholders_max:
            raise ApiError(403, "Forbidden", "exceeded quota")

    def node(self, name: str) -> Node:
        """Return a node that is there."""
        found = self.server.objects["nodes"]["", name]
        assert isinstance(found, Node)
        return found

    def nodes(self) -> list[Node]:
        """Return all nodes."""
        return [self.node(name) for _, name in self.server.objects["nodes"]]

    def namespaces(self) -> list[Namespace]:
        """Return all namespaces."""
        return [one for one in self.server.objects["namespaces"].values() if isinstance(one, Namespace)]

    def view(self) -> View:
        """Return the cluster as the API server has it."""
        pods = [pod for pod in self.server.pods() if not is_over(pod)]
        limits = books.with_quotas(self.limits, self.namespaces())
        return View(self.nodes(), [(pod, pod.spec.node_name) for pod in pods], limits)

    def limits_of(self, found: ConfigMap) -> Limits | None:
        """Return the limits of a ConfigMap; None if it is to be refused."""
        return self._maps.get(found.metadata.resource_version, Limits())

    def check_writing(self, runner: Runner, client: FakeClient, what: str) -> None:
        """Check what a process of licorne knows when it sends something, and that no other one has written since it began to.

        Pods and nodes have been read since the last pause. What it has bound counts on its node, or will before the next
        decision, however old the state is that the API server shows: no decision rests on a view older than an own write.
        """
        if runner not in self._writers[-1:]:
            assert runner not in self._writers, f"{what} by a process after which another one has written"
            self._writers.append(runner)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        resumed_at = max((end for seconds, end in loop.pauses if seconds > PAUSE_S), default=0.0)
        for plural in ("pods", "nodes"):
            read_at = client.read_at[plural]
            assert read_at >= resumed_at, f"{what} after a pause until {resumed_at}, {plural} of {read_at}"
        manager = runner.manager
        assert not manager.lifecycle.asides, f"{what}, and an exception was raised for a pod"
        nodes = runner.api.cluster.partition(manager.outbox.rm_id).nodes
        for pod in self.server.pods():
            node = self.bound.get(pod.metadata.uid)
            if node in nodes and node in manager.records.nodes and not is_over(pod):
                known = any(one.key == pod.metadata.uid for one in nodes[node].allocations)
                known = known or pod.metadata.uid in nodes[node].foreign
                known = known or pod.metadata.uid in manager.outbox.asks
                assert known, f"{what}, and {pod.metadata.name} was bound to {node} and does not count there"

    def now_s(self) -> float:
        """Return the time in seconds since 1970."""
        return asyncio.get_running_loop().time() + EPOCH_S

    # -- what happens

    def put_map(self, data: dict[str, str], limits: Limits | None) -> None:
        """Change the ConfigMap; its limits are None if it is to be refused."""
        meta = {"name": "yunikorn-configs", "namespace": "default", "uid": "map"}
        stored = self.server.put("configmaps", msgspec.convert({"metadata": meta, "data": data}, ConfigMap))
        self._maps[stored.metadata.resource_version] = limits
        self.limits = limits or self.limits

    def change_map(self) -> None:
        """Change the limits of queues, or break the ConfigMap."""
        assert self.kind is not None
        limits = kinds.draw_limits(self.kind, self.rng)
        begun = bool(self.alive) and all(one.has_begun() for one in self.alive)
        if begun and self.rng.random() < 0.3:
            self.put_map(kinds.refused_configuration(self.kind, limits, self.rng), None)
        else:
            self.put_map(kinds.configuration(self.kind, limits), limits)

    def mend_map(self) -> None:
        """Put the last ConfigMap that can be used in place of one that cannot; else no process can begin."""
        found = self.server.objects["configmaps"]["default", "yunikorn-configs"]
        if self.kind is not None and self._maps[found.metadata.resource_version] is None:
            self.put_map(kinds.configuration(self.kind, self.limits), self.limits)

    def add_node(self, name: str) -> None:
        """Add a node."""
        amounts = {"cpu": f"{AMOUNTS['cpu']}m", "memory": str(AMOUNTS["memory"]), "pods": str(AMOUNTS["pods"])}
        labels = {kinds.ZONE: f"z{self.server.version % 2}"}
        if self.kind is not None and (self.kind.together or self.kind.volumes):
            labels[kinds.HOST] = name
        if self.kind is not None and self.kind.volumes:
            drivers = [{"name": "disk.example.com", "allocatable": {"count": kinds.LIMIT}}]
            self.server.put(
                "csinodes", msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINode)
            )
            local, known = f"local-{name}", self.server.objects.get("persistentvolumes", {})
            if ("", local) not in known:  # else the node has been there before, and its disk may be used
                self.server.put("persistentvolumes", persistent_volume(local, kinds.HOST, name, "local", csi=None))
        if self.kind is not None and self.kind.places:
            labels["disk"] = self.rng.choice(kinds.DISKS)
        if self.kind is not None and self.kind.devices:
            amounts[books.DEVICE] = str(kinds.DEVICES)
        node = {
            "metadata": {"name": name, "uid": f"node-{name}-{self.server.version}", "labels": labels},
            "status": {"allocatable": amounts},
        }
        self.server.put("nodes", msgspec.convert(node, Node))

    def add_pod(self, **more: Any) -> Pod:
        """Create a pod."""
        self.made += 1
        name = f"p{self.made}"
        rng = self.rng
        labels = {"applicationId": f"app{rng.randrange(6)}", "queue": rng.choice(("root.a", "root.b"))}
        if self.has_fixed_queues:  # limits are those of the queue that an application has
            queue = rng.choice(kinds.QUEUES)
            labels = {"applicationId": f"{queue}-{rng.randrange(2)}", "queue": queue}
        plain = self.kind is not None and not more
        foreign = more.get("schedulerName") is not None
        requests = {"cpu": f"{rng.choice((250, 500, 1000, 3000))}m", "memory": f"{rng.choice((256, 512, 4096))}Mi"}
        body = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "creationTimestamp": datetime.fromtimestamp(self.now_s(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "labels": labels,
                **more.pop("metadata", {}),
            },
            "spec": {
                "schedulerName": "yunikorn",
                "containers": [{"name": "c", "resources": {"requests": requests}}],
                **more,
            },
            "status": {"phase": "Pending"},
        }
        if plain and self.kind is not None:
            kinds.dress(self.kind, rng, body)
        if (plain or foreign) and self.kind is not None and self.kind.together:
            kinds.demand(self.later_dice, body)
        if self.wanted_claims:
            body["spec"]["volumes"] = uses(*self.wanted_claims)
        return self.server.put("pods", msgspec.convert(body, Pod))

    def add_drawn_pod(self) -> None:
        """Create a pod, in some worlds with claims: new ones, or ones that others have as well."""
        dice = self.later_dice
        if self.kind is None or not self.kind.volumes or dice.random() > 0.4:
            self.add_pod()
            return
        name = f"c{self.made}"
        storage_class = dice.choice(("made", "made", "local"))
        self.server.put("persistentvolumeclaims", claim(name, storage_class, dice.choice(kinds.MODES)))
        old = [one.metadata.name for one in self.provisioner.claims()]
        self.wanted_claims = [name, *({dice.choice(old)} - {name} if dice.random() < 0.3 else ())]
        self.add_pod()
        self.wanted_claims = []

    def provision(self) -> None:
        """Let the volume controller and the provisioner act, or have trouble, and check what they and licorne have made."""
        if self.kind is None or not self.kind.volumes:
            return
        made, dice = self.provisioner, self.later_dice
        troubled = self.may_hang and dice.random() < 0.1
        made.refuses = int(troubled and dice.random() < 0.5)
        made.off, made.only_makes = (troubled and dice.random() < 0.5 for _ in range(2))
        made.step()
        check_held_once(made)
        for name in {name for _, name in self.server.objects["nodes"]} - self.unlimited:
            check_limit(made, name, kinds.LIMIT)

    def add_gang(
        self,
        members: int = 0,
        annotations: dict[str, str] | None = None,
        timeout_s: int = kinds.GANG_S,
        *,
        hard: bool = False,
        gated: bool = False,
        undecided: bool = False,
    ) -> None:
        """Create the pods of a gang with placeholders; 0: of a drawn number. `undecided`: the first has a claim."""
        members = members or self.rng.randrange(1, 4)
        groups = f'[{{"name":"g","minMember":{members},"minResource":{{"cpu":"500m","memory":"256Mi"}}}}]'
        parameters = f"placeholderTimeoutInSeconds={timeout_s} gangSchedulingStyle={'Hard' if hard else 'Soft'}"
        gates = {"schedulingGates": [{"name": kinds.GATE}]} if gated else {}
        application = {"applicationId": f"root.b-gang{self.made}", "queue": "root.b"}
        annotations = {
            "yunikorn.apache.org/task-group-name": "g",
            "yunikorn.apache.org/task-groups": groups,
            "yunikorn.apache.org/schedulingPolicyParameters": parameters,
            **(annotations or {"yunikorn.apache.org/user.info": '{"user":"ann"}'}),
        }
        parts = {
            "metadata": {"labels": application, "annotations": annotations},
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}],
        }
        if hard:
            self._controlled[application["applicationId"]] = parts
        for number in range(members):
            volumes = {"volumes": [kinds.CLAIM]} if undecided and not number else {}
            self.add_pod(**parts, **gates, **volumes)
        if gated:
            self._opens_at[application["applicationId"]] = self.now_s() + self.rng.choice(kinds.GATED_S)

    def add_drawn_gang(self) -> None:
        """Create a gang with placeholders of a kind that this world has."""
        if self.kind is None or not self.kind.hard:
            self.add_gang()
            return
        hard, gated, undecided = (self.rng.random() < share for share in (0.8, 0.6, 0.2))
        self.add_gang(self.rng.randrange(1, 13), hard=hard, gated=gated, undecided=undecided)

    def control_gangs(self) -> None:
        """Remove the gates of gangs whose time has come, and replace members of Hard gangs that have failed."""
        now = self.now_s()
        for pod in self.server.pods():
            gang = books.application_of(pod)
            if pod.spec.scheduling_gates and now >= self._opens_at.get(gang, NEVER_S):
                self._remove_gates(pod)
            elif self.controllers_act and pod.status.phase == "Failed" and gang in self._controlled:
                self.server.remove("pods", pod.metadata.namespace, pod.metadata.name)
                self.add_pod(**self._controlled[gang])

    def add_atomic_gang(self, members: int = 0, cpu: int = 0) -> None:
        """Create the pods of a gang without placeholders; of a drawn size, perhaps one too few, if `members` is 0."""
        rng = self.rng
        lacking = not members
        members, cpu = members or rng.randrange(2, 5), cpu or rng.choice((500, 1000, 2000))
        by_queue = rng.random() < 0.5
        queue = kinds.ATOMIC_QUEUE if by_queue else "root.a"
        application = f"{queue}-whole{self.made}"
        requests = {"cpu": f"{cpu}m", "memory": "256Mi"}
        groups = [{"name": "g", "minMember": members, "minResource": requests}]
        annotations = {
            "yunikorn.apache.org/task-group-name": "g",
            "yunikorn.apache.org/task-groups": msgspec.json.encode(groups).decode(),
            **({} if by_queue else {"gang.scheduling": "atomic"}),
        }
        self.gangs[application] = members
        for _ in range(members - (lacking and rng.random() < 0.1)):
            self.add_pod(
                metadata={"labels": {"applicationId": application, "queue": queue}, "annotations": annotations},
                containers=[{"name": "c", "resources": {"requests": requests}}],
            )

    def change_groups(self) -> None:
        """Create a pod group or some of its pods, in either order, change how many it needs, or remove it."""
        rng, kind = self.later_dice, self.kind
        if kind is None or not kind.groups or rng.random() > 0.15:
            return
        name = f"g{rng.randrange(3)}"
        what = rng.random()
        if what < 0.2:
            self.server.remove("podgroups", "default", name)
        elif what < 0.5:
            gang = {"gang": {"minCount": rng.randrange(1, 5)}} if rng.random() < 0.8 else {"basic": {}}
            known = self.server.objects.get("podgroups", {}).get(("default", name))
            uid = f"{name}-{self.server.version}" if known is None else known.metadata.uid
            meta = {"name": name, "namespace": "default", "uid": uid, "generation": self.server.version}
            body = {"metadata": meta, "spec": {"schedulingPolicy": gang}}
            if known is not None:
                body["status"] = msgspec.to_builtins(known)["status"] if isinstance(known, PodGroup) else {}
            self.server.put("podgroups", msgspec.convert(body, PodGroup))
        else:
            for _ in range(rng.randrange(1, 4)):
                self.add_pod(
                    metadata={"labels": {"applicationId": f"root.d-{name}", "queue": "root.d"}},
                    schedulingGroup={"podGroupName": name},
                    containers=[{"name": "c", "resources": {"requests": {"cpu": "1500m", "memory": "256Mi"}}}],
                )

    def change_namespaces(self) -> None:
        """Give a namespace a quota, a first or another one; or create a pod there that names no application."""
        rng, kind = self.later_dice, self.kind
        if kind is None or not kind.namespaces or rng.random() > 0.3:
            return
        name = rng.choice(("t0", "t1"))
        if name not in {one.metadata.name for one in self.namespaces()} or rng.random() < 0.3:
            quota = {f"{books.Y}namespace.quota": f'{{"cpu": "{rng.randrange(1000, 6001, 500)}m"}}'}
            body = {"metadata": {"name": name, "annotations": quota}}
            self.server.put("namespaces", msgspec.convert(body, Namespace))
        else:
            requests = {"cpu": "1000m", "memory": "256Mi"}
            self.add_pod(
                metadata={"namespace": name, "labels": {}},
                containers=[{"name": "c", "resources": {"requests": requests}}],
                priority=rng.choice((0, 0, 5)) if kind.preemption else 0,
            )

    def change_resource_quota(self) -> None:
        """Change how many placeholders a ResourceQuota takes."""
        rng, kind = self.later_dice, self.kind
        if kind is not None and kind.refuses and rng.random() < 0.05:
            self.placeholders_max = rng.choice((0, 1, 3, NEVER_S))

    def add_foreign_pod(self) -> None:
        """Create a pod of another scheduler, or one of licorne's that somebody else has given a node."""
        rng = self.rng
        requests = {"cpu": f"{rng.choice((100, 500))}m", "memory": "128Mi"}
        container: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
        if self.kind is not None and self.kind.ports and rng.random() < 0.3:
            container["ports"] = [{"hostPort": rng.choice(kinds.PORTS), "protocol": "TCP"}]
        node = rng.choice(sorted(self.server.objects["nodes"]))[1] if rng.random() < 0.5 else ""
        scheduler = "yunikorn" if node and rng.random() < 0.3 else "default-scheduler"
        self.add_pod(schedulerName=scheduler, containers=[container], nodeName=node)

    def bind_elsewhere(self) -> None:
        """Let another scheduler bind a pod, now and then one that is licorne's."""
        waiting = [pod for pod in self.server.pods() if not (pod.spec.node_name or pod.spec.scheduling_gates)]
        strange = [pod for pod in waiting if not books.is_ours(pod)]
        either = strange if self.rng.random() < 0.8 else waiting
        either = [pod for pod in either if not (pod.metadata.deletion_timestamp or is_over(pod) or books.claims(pod))]
        if either:
            pod = self.rng.choice(either)
            node = self.rng.choice(sorted(self.server.objects["nodes"]))[1]
            self.server.put(
                "pods", msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
            )

    def change_node(self) -> None:
        """Cordon, taint or label a node, or undo it."""
        rng = self.rng
        node = self.node(rng.choice(sorted(self.server.objects["nodes"]))[1])
        spec, meta = node.spec, node.metadata
        what = rng.random()
        if what < 0.4:
            spec = msgspec.structs.replace(spec, unschedulable=not spec.unschedulable)
        elif what < 0.8:
            spec = msgspec.structs.replace(spec, taints=None if spec.taints else (Taint(**kinds.TAINT),))
        else:
            meta = msgspec.structs.replace(meta, labels={**(meta.labels or {}), "disk": rng.choice(kinds.DISKS)})
        self.server.put("nodes", msgspec.structs.replace(node, spec=spec, metadata=meta))

    def change_capacity(self) -> None:
        """Let what a node has fall, or rise again, whatever runs there; or restart its device plugin."""
        rng, kind = self.later_dice, self.kind
        if kind is not None and kind.shrinks and rng.random() < 0.06:
            share = rng.choice((0.2, 0.5, 1.0, 1.0))
            cpu, memory = int(AMOUNTS["cpu"] * share), int(AMOUNTS["memory"] * rng.choice((share, 1.0)))
            self._give(rng.choice(sorted(self.server.objects["nodes"]))[1], cpu=f"{cpu}m", memory=str(memory))
        if kind is not None and kind.devices and rng.random() < 0.04:
            name = rng.choice(sorted(self.server.objects["nodes"]))[1]
            self._devices_at[name] = self.now_s() + rng.choice((2.0, 10.0, 40.0))
            self._give(name, **{books.DEVICE: rng.choice(("0", ""))})

    def relabel(self) -> None:
        """Give a pod another role, or a node another zone or none."""
        rng, kind = self.later_dice, self.kind
        if kind is None or not kind.together or rng.random() > 0.1:
            return
        one: Pod | Node
        pods = [pod for pod in self.server.pods() if kinds.ROLE in (pod.metadata.labels or {})]
        if pods and rng.random() < 0.6:
            plural, one, changes = "pods", rng.choice(pods), {kinds.ROLE: rng.choice(kinds.ROLES)}
        else:
            plural, one = "nodes", self.node(rng.choice(sorted(self.server.objects["nodes"]))[1])
            changes = rng.choice(({kinds.ZONE: "z0"}, {kinds.ZONE: "z1"}, {}))
        kept = {name: value for name, value in (one.metadata.labels or {}).items() if changes or name != kinds.ZONE}
        meta = msgspec.structs.replace(one.metadata, labels=kept | changes)
        self.server.put(plural, msgspec.structs.replace(one, metadata=meta))

    def _give(self, name: str, **changes: str) -> None:
        """Change what a node has; "": the node does not say any more that it has such a thing."""
        node = self.node(name)
        amounts = {what: amount for what, amount in {**(node.status.allocatable or {}), **changes}.items() if amount}
        status = msgspec.structs.replace(node.status, allocatable=amounts)
        self.server.put("nodes", msgspec.structs.replace(node, status=status))

    def run_plugins(self) -> None:
        """Let the device plugins be back whose time has come."""
        for name, at in list(self._devices_at.items()):
            if self.now_s() >= at:
                del self._devices_at[name]
                if ("", name) in self.server.objects["nodes"]:
                    self._give(name, **{books.DEVICE: str(kinds.DEVICES)})

    def open_gate(self) -> None:
        """Remove the scheduling gates of a pod."""
        gated = [pod for pod in self.server.pods() if pod.spec.scheduling_gates]
        if gated:
            self._remove_gates(self.rng.choice(gated))

    def _remove_gates(self, pod: Pod) -> None:
        spec = msgspec.structs.replace(pod.spec, scheduling_gates=None)
        self.server.put("pods", msgspec.structs.replace(pod, spec=spec))

    def change_budget(self) -> None:
        """Create a disruption budget, change how many of its pods must stay, or remove it."""
        if "guard" in self.budgets and self.rng.random() < 0.2:
            del self.budgets["guard"]
            self.server.remove("poddisruptionbudgets", "default", "guard")
            return
        self.budgets["guard"] = self.rng.choice((0, 1, 3, 20))
        known = self.server.objects.get("poddisruptionbudgets", {}).get(("default", "guard"))
        meta = {"name": "guard", "namespace": "default", "uid": "guard"}
        generation = 1 if known is None else known.metadata.generation + 1
        spec = {"selector": {"matchLabels": kinds.GUARDED}}
        body = {"metadata": {**meta, "generation": generation}, "spec": spec}
        self.server.put("poddisruptionbudgets", msgspec.convert(body, PodDisruptionBudget))

    def control_budgets(self) -> None:
        """Let the controller of disruption budgets count, as it does a little after each change."""
        for name, least in self.budgets.items():
            found = self.server.objects["poddisruptionbudgets"]["default", name]
            assert isinstance(found, PodDisruptionBudget)
            healthy = [
                pod
                for pod in self.server.pods()
                if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp and books.means(found, pod)
            ]
            status = msgspec.structs.replace(
                found.status,
                disruptions_allowed=max(len(healthy) - least, 0),
                observed_generation=found.metadata.generation,
            )
            if status != found.status and self.rng.random() < 0.3:
                self.server.put("poddisruptionbudgets", msgspec.structs.replace(found, status=status))

    def happen_specially(self) -> None:
        """Let one thing happen that this kind of world has."""
        kind = self.kind
        if kind is None:
            return
        actions = (
            (kind.atomic, self.add_atomic_gang),
            (kind.foreign, self.add_foreign_pod),
            (kind.foreign, self.bind_elsewhere),
            (kind.gates, self.open_gate),
            (kind.places, self.change_node),
            (kind.maps, self.change_map),
            (kind.budgets, self.change_budget),
        )
        drawn = self.rng.choice(actions)
        if drawn[0]:
            drawn[1]()

    def happen(self) -> None:
        """Let one thing happen."""
        rng, server = self.rng, self.server
        what = rng.random()
        pods = server.pods()
        if what < 0.40:
            self.add_drawn_pod()
        elif what < 0.45:
            self.add_drawn_gang()
        elif what < 0.60 and pods:
            self.end(rng.choice(pods))
        elif what < 0.70 and pods:
            pod = rng.choice(pods)
            if pod.spec.node_name and not is_over(pod):
                self.mark_deleted(pod)
            else:
                server.remove("pods", pod.metadata.namespace, pod.metadata.name)
        elif what < 0.73 and len(server.objects["nodes"]) < 6:
            self.add_node(f"n{self.made}")
        elif what < 0.75 and len(server.objects["nodes"]) > 2:
            self.lose_node(rng.choice(sorted(server.objects["nodes"]))[1])
        elif what > 0.75:
            self.happen_specially()
        self.change_capacity()
        self.relabel()
        self.change_groups()
        self.change_namespaces()
        self.change_resource_quota()
        self.kubelets()

    def mark_deleted(self, pod: Pod) -> None:
        """Ask a pod to end."""
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self.server.put("pods", msgspec.structs.replace(pod, metadata=meta))

    def end(self, pod: Pod) -> None:
        """Let a pod that runs succeed."""
        if pod.spec.node_name and not is_over(pod):
            self.set_phase(pod, "Succeeded")

    def set_phase(self, pod: Pod, phase: str) -> None:
        """Give a pod another phase."""
        self.server.put("pods", msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase)))

    def lose_node(self, name: str) -> None:
        """Remove a node, and with it the pods that ran there."""
        self.server.remove("nodes", "", name)
        for pod in self.server.pods():
            if pod.spec.node_name == name:
                self.server.remove("pods", pod.metadata.namespace, pod.metadata.name)

    def kubelets(self) -> None:
        """Let the kubelets run what is bound, and end what is to end; and the garbage collector what has no owner."""
        server, now = self.server, self.now_s()
        uids = {pod.metadata.uid for pod in server.pods()}
        for pod in server.pods():
            meta = pod.metadata
            orphan = any(owner.uid not in uids for owner in meta.owner_references or ())
            lost = pod.spec.node_name and ("", pod.spec.node_name) not in server.objects["nodes"]
            hangs = now < self.hanging.get(meta.uid, 0.0)
            if lost or ((meta.deletion_timestamp or orphan) and not hangs and self.rng.random() < 0.5):
                server.remove("pods", meta.namespace, meta.name)
            elif pod.spec.node_name and pod.status.phase == "Pending" and self.rng.random() < 0.7:
                self.set_phase(pod, "Running")
        self.control_budgets()
        self.control_gangs()
        self.run_plugins()
        self.provision()


def random_trouble(rng: random.Random) -> Trouble:
    """Return how bad a schedule is."""
    bad = rng.choice((0.0, 0.02, 0.1, 0.3))
    return Trouble(
        refused=bad * rng.random(),
        denied=bad * rng.random(),
        lost=bad * rng.random(),
        unsent=bad * rng.random(),
        cut=bad * rng.random(),
        late_s=rng.choice((0.0, 0.01, 0.5)),
        forgets=bad * rng.random() / 4,
        stale=rng.choice((0.0, 0.1, 0.5)),
        no_streams=rng.random() < 0.3,
    )


def start(
    world: World,
    client: FakeClient | None = None,
    settings: RunSettings | None = None,
    levels: Levels | None = None,
    recorder: Recorder | None = None,
    *,
    beside: bool = False,
    ending: asyncio.Event | None = None,
) -> tuple[Runner, asyncio.Task[None]]:
    """Start licorne, when another one has been killed and its lease deleted, or `beside` that one.

    `ending`: given, it ends in order when this is set.
    """
    client = client or FakeClient(world.server)
    if not (beside or (settings is not None and settings.dry_run)):
        world.server.lease = None
    loop = asyncio.get_running_loop()
    runner = Runner(
        Clients(client, client, client),
        settings or RunSettings(),
        recorder=recorder,
        log=no_log(),
        levels=levels,
        clock=lambda: int((loop.time() + EPOCH_S) * 1e9),
        wall=world.now_s,
        rng=random.Random(1),
    )
    watched = Watched(world, runner) if world.kind is not None and not runner.settings.dry_run else None
    client.on_write = functools.partial(world.check_writing, runner, client)
    task = asyncio.create_task(runner.run() if ending is None else runner.run_until(ending))
    task.add_done_callback(_take_error)
    if watched is not None:
        world.alive.append(watched)
        task.add_done_callback(lambda _: world.alive.remove(watched))
    return runner, task


class Process(NamedTuple):
    """A process of licorne. When `ending` is set it ends in order."""

    client: FakeClient
    runner: Runner
    task: asyncio.Task[None]
    ending: asyncio.Event


class Processes:
    """The process that schedules, and in some worlds now and then a second one, which is started beside it."""

    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world = world
        self._recorder = recorder
        self.running: list[Process] = []
        self.killed = self.followed = 0
        self._two = world.kind is not None and world.kind.beside
        self.start()

    def start(self) -> None:
        """Start a process; only one without another beside it is recorded."""
        self._world.mend_map()
        beside = bool(self.running)
        client, ending = FakeClient(self._world.server), asyncio.Event()
        recorder = None if beside else self._recorder
        started = start(self._world, client, recorder=recorder, beside=beside, ending=ending if self._two else None)
        self.running.append(Process(client, *started, ending))

    async def kill(self) -> None:
        """Kill the process that has run for the longest time."""
        self.look()  # one may have lost the Lease in this moment
        await stop(self.running.pop(0).task)
        self.killed += 1

    def happen(self) -> None:
        """Start a second process; or let one of two end, be cut off from the Lease, or see it again."""
        rng = self._world.later_dice
        if not self._two or rng.random() > 0.05:
            return
        one = rng.choice(self.running)
        if len(self.running) == 1:
            self.start()
        elif rng.random() < 0.4:
            one.ending.set()
        else:
            one.client.lease_cut = not one.client.lease_cut

    def look(self) -> None:
        """Fail if a process has ended that had no cause to; another one goes on in its place."""
        for one in [one for one in self.running if one.task.done()]:
            error = one.task.exception()
            if error is not None and not (self._two and isinstance(error, LeaseLostError)):
                raise error
            assert one.ending.is_set() or error is not None, "licorne ended by itself"
            self.running.remove(one)
            self.followed += 1
        if not self.running:
            self.start()

    def leading(self) -> Runner:
        """Return the one that has the Lease."""
        holders = [one.runner for one in self.running if one.runner.lease is not None and one.runner.lease.held()]
        assert len(holders) == 1, f"{len(holders)} processes have the Lease"
        return holders[0]


def _take_error(task: asyncio.Task[None]) -> None:
    """Take the error with which licorne ended: `check_runs` and `stop` raise it, unless the schedule fails of another before."""
    if not task.cancelled():
        task.exception()


def check_runs(task: asyncio.Task[None]) -> None:
    """Fail if licorne has ended, with the law that one of its steps has broken if that is why."""
    if task.done():
        task.result()
        raise AssertionError("licorne ended by itself")


async def stop(task: asyncio.Task[None]) -> None:
    """Kill licorne."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def scenario(seed: int, kind: Kind | None = None) -> dict[str, Any]:
    """Play one schedule, and check all its laws; what was recorded of it is decided again. Returns figures.

    `kind`: what the world has; None: what the seed draws.
    """
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(Path(folder)) as recorder:
            figures, runner = await _scenario(seed, kind, recorder)
        assert_replays(Path(folder), runner.api)
    return figures


async def _scenario(seed: int, kind: Kind | None, recorder: Recorder) -> tuple[dict[str, Any], Runner]:
    world = World(seed, kinds.draw(seed) if kind is None else kind)
    rng = world.rng
    world.server.trouble = random_trouble(rng)
    processes = Processes(world, recorder)
    kills = rng.choice((0.0, 0.0, 0.02, 0.1))
    pauses = rng.choice((0.0, 0.02, 0.1))
    quiet_at = rng.uniform(0.2, 0.8) * BUSY_S
    compared = 0
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    busy_until = BUSY_S
    while loop.time() < busy_until:
        world.happen()
        await asyncio.sleep(rng.expovariate(2.0))
        processes.look()
        processes.happen()
        if loop.time() > quiet_at:
            began, quiet_at = loop.time(), NEVER_S
            compared += await compare_now(world, processes.running[0].runner)
            busy_until += loop.time() - began
        if rng.random() < kills:
            await processes.kill()
            await asyncio.sleep(rng.choice((0.0, 5.0)))
            processes.look()
        elif rng.random() < pauses:
            loop.pass_over(rng.choice((2.0, 7.0, 60.0)))
    for one in processes.running:
        one.client.lease_cut = False
    controlled_until = loop.time() + CALM_S - ends.SETTLED_S
    ends_at = loop.time() + calm_down(world)
    while loop.time() < ends_at:
        world.controllers_act = loop.time() < controlled_until
        world.kubelets()
        await asyncio.sleep(2.0)
        processes.look()
    runner = processes.leading()
    ends.check_end(world, runner)
    after = ends.state(runner)
    for one in processes.running:
        ends.check_counted(one.runner, one.client.sent)
        await stop(one.task)
    fresh, task = start(world, recorder=recorder)
    await asyncio.sleep(5.0)
    ends.check_same(world, ends.state(fresh), after)
    await stop(task)
    figures = {
        "pods": world.made,
        "killed": processes.killed,
        "followed": processes.followed,
        "compared": compared,
        "bound": len(world.bound),
        "evicted": len(world.evictions),
        "writes": world.server.writes,
    }
    return figures, fresh


def calm_down(world: World) -> float:
    """End all trouble of a world; return how many seconds it takes then until everything is at rest."""
    world.server.trouble = calm()
    world.mend_map()
    world.may_hang, world.placeholders_max = False, NEVER_S
    return CALM_S + hung_s(world) + ends.turns_s(world)


def hung_s(world: World) -> float:
    """Return how much longer the calm end takes for the victims that hang."""
    return HUNG_S * sum(pod.metadata.uid in world.hanging for pod in world.server.pods())


async def compare_now(world: World, runner: Runner) -> bool:
    """Let the cluster come to rest, and compare with a process that is started then. Returns whether it came to rest.

    That process decides for itself and writes nothing; at rest there is nothing left that it could decide.
    """
    server = world.server
    trouble, server.trouble = server.trouble, calm()
    world.controllers_act = False
    world.mend_map()
    loop = asyncio.get_running_loop()
    version, since = server.version, loop.time()
    gives_up_at = since + QUIET_MAX_S
    while loop.time() < gives_up_at and loop.time() < since + QUIET_S:
        world.kubelets()
        await asyncio.sleep(1.0)
        if server.version != version or not ends.is_at_rest(world, runner):
            version, since = server.version, loop.time()
    at_rest = loop.time() >= since + QUIET_S
    if at_rest:
        fresh, task = start(world, ReadingClient(server), RunSettings(dry_run=True))
        await asyncio.sleep(3.0)
        ends.check_same(world, ends.state(fresh), ends.state(runner))
        await stop(task)
    server.trouble = trouble
    world.controllers_act = True
    return at_rest


class ReadingClient(FakeClient):
    """The client of a process that must not write."""

    def _count(self, what: str) -> None:
        raise AssertionError(f"a process that writes nothing sent {what}")


def play(seed: int, kind: Kind | None = None) -> dict[str, Any]:
    """Play one schedule in virtual time, in a world of this kind, or of the one that the seed draws."""
    return run(scenario(seed, kind))
