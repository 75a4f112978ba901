"""Random schedules of a cluster with a played API server: what users, kubelets and trouble do while licorne runs.

A model keeps books of its own at the API server. At each binding it checks that no node gets more than it has. At the
end, when the trouble is over, everything that fits must be bound, and a process that is started then must come to the
same state as the one that went through it all.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kube.apiserver import FakeClient, Server, Trouble, calm
from kube.virtual import VirtualLoop, run
from licorne.core.amounts.vectors import Vec
from licorne.daemon.log import Levels, no_log
from licorne.kube.manager.records import GangStage, Stage
from licorne.kube.objects import ConfigMap, Namespace, Node, Pod
from licorne.kube.pods import is_over, read_resources
from licorne.kube.runner import Clients, Runner, RunSettings
from licorne.recording import Recorder
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
EPOCH_S = 1_767_225_600
AMOUNTS = {"cpu": 4000, "memory": 8 << 30, "pods": 20}
CALM_S = 400.0
BUSY_S = 120.0


class OvercommittedError(AssertionError):
    """A binding gave a node more than it has."""


class World:
    """Users and kubelets, beside one server."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.server = Server(random.Random(seed + 1))
        self.server.on_bind = self.check_binding
        self.bound: dict[str, str] = {}
        self.made = 0
        self.sizes: dict[str, dict[str, int]] = {}
        for name in ("default", "kube-system"):
            self.server.put("namespaces", msgspec.convert({"metadata": {"name": name}}, Namespace))
        self.server.put(
            "configmaps",
            msgspec.convert(
                {"metadata": {"name": "yunikorn-configs", "namespace": "default"}, "data": DATA},
                ConfigMap,
            ),
        )
        for number in range(3):
            self.add_node(f"n{number}")

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
        return all(used.get(name, 0) + amount <= capacity.get(name, 0) for name, amount in read_resources(pod).items())

    def check_binding(self, pod: Pod, node: str) -> None:
        """Check the rule of every binding."""
        if self.server.objects["nodes"].get(("", node)) is not None and not self.fits(pod, node):
            raise OvercommittedError(f"{pod.metadata.name} on {node}, which has {self.used(node)}")
        assert pod.metadata.uid not in self.bound, f"{pod.metadata.name} is bound twice"
        self.bound[pod.metadata.uid] = node

    def check_writing(self, runner: Runner, what: str) -> None:
        """Check what a process of licorne knows when it sends something.

        Pods and nodes have been read since the last pause. What it has bound counts on its node, however old the state
        is that the API server shows: no decision rests on a view older than an own write.
        """
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for plural in ("pods", "nodes"):
            read_at = self.server.read_at[plural]
            assert read_at >= loop.resumed_at, f"{what} after a pause until {loop.resumed_at}, {plural} of {read_at}"
        manager = runner.manager
        assert manager is not None
        nodes = runner.api.cluster.partition(manager.rm_id).nodes
        for pod in self.server.pods():
            node = self.bound.get(pod.metadata.uid)
            if node in nodes and node in manager.nodes and not is_over(pod):
                known = any(one.key == pod.metadata.uid for one in nodes[node].allocations)
                assert known, f"{what}, and {pod.metadata.name} was bound to {node} and does not count there"

    def now_s(self) -> float:
        """Return the time in seconds since 1970."""
        return asyncio.get_running_loop().time() + EPOCH_S

    # -- what happens

    def add_node(self, name: str) -> None:
        """Add a node."""
        amounts = {"cpu": f"{AMOUNTS['cpu']}m", "memory": str(AMOUNTS["memory"]), "pods": str(AMOUNTS["pods"])}
        labels = {"topology.kubernetes.io/zone": f"z{self.server.version % 2}"}
        node = {
            "metadata": {"name": name, "uid": f"node-{name}-{self.server.version}", "labels": labels},
            "status": {"allocatable": amounts},
        }
        self.server.put("nodes", msgspec.convert(node, Node))

    def add_pod(self, **more: Any) -> Pod:
        """Create a pod."""
        self.made += 1
        name = f"p{self.made}"
        dice = self.dice
        labels = {"applicationId": f"app{dice.randrange(6)}", "queue": dice.choice(("root.a", "root.b"))}
        requests = {"cpu": f"{dice.choice((250, 500, 1000, 3000))}m", "memory": f"{dice.choice((256, 512, 4096))}Mi"}
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
        return self.server.put("pods", msgspec.convert(body, Pod))

    def add_gang(self, members: int = 0) -> None:
        """Create the pods of a gang with placeholders; 0: of a drawn number."""
        members = members or self.dice.randrange(1, 4)
        groups = f'[{{"name":"g","minMember":{members},"minResource":{{"cpu":"500m","memory":"256Mi"}}}}]'
        parameters = "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Soft"
        application = {"applicationId": f"gang{self.made}", "queue": "root.b"}
        for _ in range(members):
            self.add_pod(
                metadata={
                    "labels": application,
                    "annotations": {
                        "yunikorn.apache.org/task-group-name": "g",
                        "yunikorn.apache.org/task-groups": groups,
                        "yunikorn.apache.org/schedulingPolicyParameters": parameters,
                    },
                },
                containers=[{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}],
            )

    def happen(self) -> None:
        """Let one thing happen."""
        dice, server = self.dice, self.server
        what = dice.random()
        pods = server.pods()
        if what < 0.40:
            self.add_pod()
        elif what < 0.45:
            self.add_gang()
        elif what < 0.60 and pods:
            self.end(dice.choice(pods))
        elif what < 0.70 and pods:
            pod = dice.choice(pods)
            if pod.spec.node_name and not is_over(pod):
                self.mark_deleted(pod)
            else:
                server.remove("pods", pod.metadata.namespace, pod.metadata.name)
        elif what < 0.73 and len(server.objects["nodes"]) < 6:
            self.add_node(f"n{self.made}")
        elif what < 0.75 and len(server.objects["nodes"]) > 2:
            self.lose_node(dice.choice(sorted(server.objects["nodes"]))[1])
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
        server = self.server
        uids = {pod.metadata.uid for pod in server.pods()}
        for pod in server.pods():
            meta = pod.metadata
            orphan = any(owner.uid not in uids for owner in meta.owner_references or ())
            lost = pod.spec.node_name and ("", pod.spec.node_name) not in server.objects["nodes"]
            if lost or ((meta.deletion_timestamp or orphan) and self.dice.random() < 0.5):
                server.remove("pods", meta.namespace, meta.name)
            elif pod.spec.node_name and pod.status.phase == "Pending" and self.dice.random() < 0.7:
                self.set_phase(pod, "Running")


def random_trouble(dice: random.Random) -> Trouble:
    """Return how bad a schedule is."""
    bad = dice.choice((0.0, 0.02, 0.1, 0.3))
    return Trouble(
        refused=bad * dice.random(),
        denied=bad * dice.random(),
        lost=bad * dice.random(),
        unsent=bad * dice.random(),
        cut=bad * dice.random(),
        late_s=dice.choice((0.0, 0.01, 0.5)),
        forgets=bad * dice.random() / 4,
        stale=dice.choice((0.0, 0.1, 0.5)),
        no_streams=dice.random() < 0.3,
    )


def start(
    world: World,
    client: FakeClient | None = None,
    settings: RunSettings | None = None,
    levels: Levels | None = None,
    recorder: Recorder | None = None,
) -> tuple[Runner, asyncio.Task[None]]:
    """Start licorne."""
    client = client or FakeClient(world.server)
    loop = asyncio.get_running_loop()
    runner = Runner(
        Clients(client, client, client),
        settings or RunSettings(),
        recorder=recorder,
        log=no_log(),
        levels=levels,
        clock=lambda: int((loop.time() + EPOCH_S) * 1e9),
        wall=world.now_s,
        dice=random.Random(1),
    )
    client.on_write = functools.partial(world.check_writing, runner)
    return runner, asyncio.create_task(runner.run())


async def stop(task: asyncio.Task[None]) -> None:
    """Kill licorne."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def state(runner: Runner) -> dict[str, Any]:
    """Return what licorne knows: the stage and node of each pod, and what the scheduler counts on each node and for each application.

    The queue of an application is that of the first of its pods that was seen: where they name several, as here, it may be another
    one after a restart.
    Pods of gangs that wait are left out: whether a gang has given up reserving room is remembered by the process alone.
    """
    manager = runner.manager
    assert manager is not None
    partition = runner.api.cluster.partition(manager.rm_id)

    def used(amounts: Vec) -> dict[str, int]:
        return {name: amount for name, amount in amounts.named(partition.types).items() if amount}

    applications = {app.id: amounts for app in partition.applications.values() if (amounts := used(app.allocated))}
    return {
        "pods": {
            record.pod.metadata.name: (record.stage, record.node)
            for record in manager.pods.values()
            if record.node or record.application.gang is None
        },
        "nodes": {node.id: used(node.allocated) for node in partition.nodes.values()},
        "applications": applications,
        "unconfirmed": [name for name, r in manager.pods.items() if r.stage is Stage.ASSUMED],
    }


async def scenario(seed: int) -> dict[str, Any]:
    """Play one schedule, and check all its laws; what was recorded of it is decided again. Returns figures."""
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(Path(folder)) as recorder:
            figures, runner = await _scenario(seed, recorder)
        assert_replays(Path(folder), runner.api)
    return figures


async def _scenario(seed: int, recorder: Recorder) -> tuple[dict[str, Any], Runner]:
    world = World(seed)
    dice = world.dice
    world.server.trouble = random_trouble(dice)
    runner, task = start(world, recorder=recorder)
    kills = dice.choice((0.0, 0.0, 0.02, 0.1))
    pauses = dice.choice((0.0, 0.02, 0.1))
    killed = 0
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    while loop.time() < BUSY_S:
        world.happen()
        await asyncio.sleep(dice.expovariate(2.0))
        if task.done():
            task.result()
            raise AssertionError("licorne ended by itself")
        if dice.random() < kills:
            await stop(task)
            killed += 1
            await asyncio.sleep(dice.choice((0.0, 5.0)))
            runner, task = start(world, recorder=recorder)
        elif dice.random() < pauses:
            loop.pass_over(dice.choice((2.0, 7.0, 60.0)))
    world.server.trouble = calm()
    for _ in range(int(CALM_S)):
        world.kubelets()
        await asyncio.sleep(1.0)
    check_end(world, runner)
    after = state(runner)
    await stop(task)
    fresh, task = start(world, recorder=recorder)
    await asyncio.sleep(5.0)
    again = state(fresh)
    assert again == after, f"a fresh process sees another state: {_difference(again, after)}"
    await stop(task)
    figures = {"pods": world.made, "killed": killed, "bound": len(world.bound), "writes": world.server.writes}
    return figures, fresh


def check_end(world: World, runner: Runner) -> None:
    """Check that everything is done that can be done."""
    assert runner.manager is not None
    assert state(runner)["unconfirmed"] == []
    known = {record.pod.metadata.name for record in runner.manager.pods.values()}
    there = {pod.metadata.name for pod in world.server.pods() if not is_over(pod)}
    assert known == there, f"known {known - there}, forgotten {there - known}"
    for node in (name for _, name in world.server.objects["nodes"]):
        counted = state(runner)["nodes"].get(node, {})
        assert counted == world.used(node), f"{node}: counted {counted}, used {world.used(node)}"
    for pod in world.server.pods():
        if pod.spec.node_name or is_over(pod) or pod.metadata.deletion_timestamp:
            continue
        record = runner.manager.pods[pod.metadata.uid]
        if record.application.gang_stage is GangStage.RESERVING:
            continue  # some of its placeholders find no room
        for _, node in world.server.objects["nodes"]:
            assert not world.fits(pod, node), f"{pod.metadata.name} fits on {node}, {_why(runner, pod)}"
        conditions = {one.type: one for one in pod.status.conditions or ()}
        told = conditions.get("PodScheduled")
        assert told is not None, f"{pod.metadata.name} is told nothing, {_why(runner, pod)}"
        gang = [one.work.ask for one in record.application.pods.values() if not one.node]
        behind = any(ask.placeholder for ask in gang) and not record.work.ask.placeholder
        # A member whose placeholder waits for room waits for that one, and only the placeholder needs more of the cluster.
        expected = "SchedulingSkipped" if behind else "Unschedulable"
        assert (told.status, told.reason) == ("False", expected), f"{pod.metadata.name}: {told}"


def _why(runner: Runner, pod: Pod) -> str:
    """Return what is known of a pod that waits."""
    assert runner.manager is not None
    record = runner.manager.pods[pod.metadata.uid]
    application = record.application
    partition = runner.api.cluster.partition(runner.manager.rm_id)
    reasons = [why for key, _, why in partition.waiting() if key == pod.metadata.uid]
    return f"{record.stage} {application.id} is {application.state}, gang {application.gang_stage}: {reasons}"


def _difference(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        part: {
            key: (one[part].get(key), other[part].get(key))
            for key in {*one[part], *other[part]}
            if one[part].get(key) != other[part].get(key)
        }
        for part in ("pods", "nodes", "applications")
    }


def play(seed: int) -> dict[str, Any]:
    """Play one schedule in virtual time."""
    return run(scenario(seed))
