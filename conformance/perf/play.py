"""Plays one workload of Kubernetes' scheduler_perf against the scheduler that is at work in a cluster, and measures it.

The operations are those of `test/integration/scheduler_perf` in the module k8s.io/kubernetes, one method each. What
`collectMetrics` or `startCollectingMetrics` marks is measured: pods bound per second from there to the last binding, as a watch
sees it, and the time from the creation of a pod to its binding. Waiting for room counts, which a rate between the first binding
and the last would leave out: then gangs that are all bound at the end would seem fast. scheduler_perf itself measures within
kube-scheduler, so its figures are higher.

Not played: `allocResourceClaims` of more than no claims, since it calls kube-scheduler's own allocator.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from cluster import CREATORS, Cluster, FailedError, Item, Pod, from_template

AMOUNTS = {"pods": "110", "cpu": "4", "memory": "32Gi"}
STATUS = {
    "capacity": AMOUNTS,
    "allocatable": AMOUNTS,
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
}
REQUESTS = {"cpu": "100m", "memory": "500Mi"}
CONTAINER = {
    "name": "pause",
    "image": "pause",
    "ports": [{"containerPort": 80}],
    "resources": {"limits": REQUESTS, "requests": REQUESTS},
}
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LOOK_S = 0.05
"""Between two looks whether what an operation waits for is so."""
Operation = dict[str, Any]


class Workload:
    """A workload of a case: its operations, parameters and feature gates."""

    def __init__(self, config: Path, case: str, name: str, changes: Iterable[str]) -> None:
        cases = {each["name"]: each for each in yaml.safe_load(config.read_text(encoding="utf-8"))}
        found = {each["name"]: each for each in cases.get(case, {}).get("workloads", ())}.get(name)
        if found is None:
            raise FailedError(f"{config} has no workload {name} of a case {case}")
        self.folder = config.parent
        self.pod_template: str = cases[case].get("defaultPodTemplatePath", "")
        self.operations: list[Operation] = cases[case]["workloadTemplate"]
        self.gates: dict[str, bool] = {**cases[case].get("featureGates", {}), **found.get("featureGates", {})}
        changed = (text.partition("=") for text in changes)
        self.params: dict[str, Any] = {**found.get("params", {}), **{k: yaml.safe_load(v) for k, _, v in changed}}

    def get(self, op: Operation, key: str, default: Any = 0) -> Any:  # noqa: ANN401
        """Return a member of an operation, or the parameter that it names."""
        named = op.get(f"{key}Param")
        return self.params[named[1:]] if named else op.get(key, default)

    def seconds(self, op: Operation) -> float:
        """Return how long an operation takes."""
        found = re.findall(r"([\d.]+)(ms|s|m|h)", str(self.get(op, "duration", "0s")))
        return sum(float(number) * UNITS_S[unit] for number, unit in found)

    def item(self, op: Operation, path: str, number: int, count: int = 0) -> Item:
        """Return the object of a template; a parameter may stand as `$name`, or as `$name|default`."""
        values: dict[str, object] = {}
        for key, value in op.get("templateParams", {}).items():
            if not isinstance(value, str) or not value.startswith("$"):
                values[key] = value
                continue
            name, bar, default = value[1:].partition("|")
            if name not in self.params and not bar:
                raise FailedError(f"the workload lacks the parameter {name}")
            values[key] = self.params.get(name, yaml.safe_load(default))
        return from_template(self.folder / path, {**values, "Index": number, "Count": count})


class Measure:
    """What is measured between `start` and `stop`; `result` is None before that. `spent` tells processor seconds."""

    def __init__(self, pods: dict[str, Pod], spent: Callable[[], dict[str, float]]) -> None:
        self._pods, self._spent = pods, spent
        self.result: dict[str, Any] | None = None

    def start(self, spaces: set[str], labels: dict[str, str]) -> None:
        """Begin to measure the pods of some namespaces with these labels that have no node yet."""
        self._spaces, self._labels = spaces, labels
        self._before = {uid for uid, pod in self._pods.items() if pod.bound}
        self._began, self._spent_before = time.monotonic(), self._spent()

    def stop(self) -> None:
        """Keep what was measured; of several times, that with the most pods."""
        spent = {name: round(value - self._spent_before[name], 2) for name, value in self._spent().items()}
        pods = [
            pod
            for uid, pod in self._pods.items()
            if pod.bound
            and uid not in self._before
            and pod.space in self._spaces
            and self._labels.items() <= pod.labels.items()
        ]
        waits = sorted(pod.bound - pod.created for pod in pods if pod.created)
        span = max((pod.bound for pod in pods), default=0.0) - self._began
        if self.result is None or len(pods) > self.result["pods"]:
            self.result = {
                "pods": len(pods),
                "pods_per_s": round(len(pods) / span, 1) if pods else 0.0,
                "wait_p99_s": round(waits[(len(waits) - 1) * 99 // 100], 2) if waits else 0.0,
                "seconds": round(time.monotonic() - self._began, 2),
                "processor_s": spent,
            }


class Play:
    """One workload on a cluster. Methods with an opcode's name play it; `index` is the operation's number."""

    def __init__(self, cluster: Cluster, workload: Workload, measure: Measure, timeout_s: float) -> None:
        self._cluster, self._workload, self._measure, self._timeout_s = cluster, workload, measure, timeout_s
        self._wanted: dict[str, int] = {}  # pods of each namespace whose placement nothing has waited for
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Play all operations, one after the other."""
        version = (await self._cluster.call("GET", "/api/v1/pods?limit=1"))["metadata"]["resourceVersion"]
        self._tasks.add(asyncio.create_task(self._cluster.watch(version)))
        index = 0
        try:
            for op in self._workload.operations:
                play = getattr(self, op["opcode"], None)
                if play is None:
                    raise FailedError(f"the operation {op['opcode']} is not known")
                work = asyncio.create_task(play(op, index))
                while not work.done():
                    done, _ = await asyncio.wait({work, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                    self._tasks -= done
                index += self._workload.get(op, "count") if op["opcode"] == "createPodSets" else 1
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _all(self, work: Callable[[int], Awaitable[object]], count: int) -> None:
        numbers = iter(range(count))

        async def some() -> None:
            for number in numbers:
                await work(number)

        await asyncio.gather(*(some() for _ in range(CREATORS)))

    def _count(self, space: str, labels: dict[str, str], *, tried: bool = False) -> int:
        """Return how many pods of a namespace are there and placed, or at least tried."""
        pods = (pod for pod in self._cluster.pods.values() if pod.space == space and not pod.gone)
        return sum(bool(pod.bound or (tried and pod.tried)) for pod in pods if labels.items() <= pod.labels.items())

    async def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                while not ready():
                    self._cluster.changed.clear()
                    await self._cluster.changed.wait()
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            left = [pod for pod in self._cluster.pods.values() if not pod.bound and not pod.gone]
            why = next((pod.why for pod in left if pod.why), "")
            raise FailedError(f"{what}: not within {self._timeout_s:.0f} s; {len(left)} wait. {why}") from None

    async def createNodes(self, op: Operation, index: int) -> None:
        count, labelled = self._workload.get(op, "count"), op.get("labelNodePrepareStrategy")
        how, unique = op.get("nodeAllocatableStrategy") or {}, op.get("uniqueNodeLabelStrategy")

        async def one(number: int) -> None:
            item: Item = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"generateName": f"node-{index}-"},
                "status": STATUS,
            }
            if op.get("nodeTemplatePath"):
                item = self._workload.item(op, op["nodeTemplatePath"], number, count)
            meta, status = item["metadata"], {**item.get("status", {})}
            # In an order of their own, as names that the API server makes.
            name = meta.setdefault("name", f"{meta.pop('generateName', 'node-')}{uuid.uuid4().hex[:8]}")
            labels = meta.setdefault("labels", {})
            labels["kubernetes.io/hostname"] = name
            if labelled:
                labels[labelled["labelKey"]] = labelled["labelValues"][number % len(labelled["labelValues"])]
            if unique:
                labels[unique["labelKey"]] = str(uuid.uuid4())
            free = status.get("allocatable", status.get("capacity", {}))
            item["status"] = {**status, "allocatable": {**free, **how.get("nodeAllocatable", {})}}
            await self._cluster.create(item)
            if drivers := how.get("csiNodeAllocatable"):
                note = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(how.get("migratedPlugins", ()))}
                spec = {"drivers": [{"name": d, "nodeID": name, "allocatable": a} for d, a in drivers.items()]}
                item = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": spec}
                await self._cluster.create({**item, "metadata": {"name": name, "annotations": note}})

        await self._all(one, count)

    async def createNamespaces(self, op: Operation, index: int) -> None:
        path = op.get("namespaceTemplatePath")
        for number in range(self._workload.get(op, "count")):
            item = self._workload.item(op, path, number) if path else None
            await self._cluster.namespace(f"{op['prefix']}-{number}", item)

    async def createPods(self, op: Operation, index: int) -> None:
        space = op.get("namespace") or f"namespace-{index}"
        await self._cluster.namespace(space)
        count = self._workload.get(op, "count") * self._workload.get(op, "countMultiplier", 1)
        if op.get("collectMetrics"):
            self._measure.start({space}, {})
        await self._all(lambda number: self._pod(op, space, number, count), count)
        if op.get("skipWaitToCompletion"):
            self._wanted[space] = self._wanted.get(space, 0) + count
        elif self._workload.get(op, "steadyState"):
            await self._steady(op, space, count)
        else:
            await self._wait(f"{count} pods of {space}", lambda: self._count(space, {}) >= count)
        if op.get("collectMetrics"):
            self._measure.stop()

    async def _pod(self, op: Operation, space: str, number: int, count: int) -> None:
        path = op.get("podTemplatePath") or self._workload.pod_template
        item: Item = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "pod-"},
            "spec": {"containers": [CONTAINER]},
        }
        if path:
            item = self._workload.item(op, path, number, count)
            batch = self._workload.get(op, "signatureBatchSize") or 1
            item["metadata"].setdefault("labels", {})["signature"] = f"signature-label-{number // batch}"
        if op.get("persistentVolumeClaimTemplatePath"):
            await self._volume(op, space, number)
            item["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{number}"}}]
        await self._cluster.create(item, space)

    async def _steady(self, op: Operation, space: str, count: int) -> None:
        """Delete each pod when it is placed, and create another one, for a while."""
        until, left = time.monotonic() + self._workload.seconds(op), set[str]()
        while time.monotonic() < until:
            pods = [
                (uid, pod)
                for uid, pod in self._cluster.pods.items()
                if pod.space == space and pod.bound and not pod.gone
            ]
            for uid, pod in pods:
                if uid not in left:
                    left.add(uid)
                    where = f"/api/v1/namespaces/{space}/pods/{pod.name}?gracePeriodSeconds=0"
                    await self._cluster.call("DELETE", where, ok=404)
                    await self._pod(op, space, count + len(left), count)
            await asyncio.sleep(LOOK_S)

    async def _volume(self, op: Operation, space: str, number: int) -> None:
        """Create a claim and a volume that are bound to each other."""
        item, cluster = self._workload.item, self._cluster
        claim, volume = (item(op, op[f"persistentVolume{part}TemplatePath"], number) for part in ("Claim", ""))
        name = f"{space}-vol-{number}"
        claim.setdefault("metadata", {})["name"] = f"pvc-{number}"
        claim["spec"]["volumeName"] = volume.setdefault("metadata", {})["name"] = name
        volume["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": space,
            "name": f"pvc-{number}",
        }
        for source, key in (("csi", "volumeHandle"), ("awsElasticBlockStore", "volumeID")):
            if source in volume["spec"]:
                volume["spec"][source][key] = name
        for each in (claim, volume):
            made = await cluster.create(each, space)
            made["status"]["phase"] = "Bound"
            del made["metadata"]["resourceVersion"]
            await cluster.call("PUT", f"{await cluster.path(each, space)}/{made['metadata']['name']}/status", made)

    async def createPodSets(self, op: Operation, index: int) -> None:
        for number in range(self._workload.get(op, "count")):
            await self.createPods({**op["createPodsOp"], "namespace": f"{op['namespacePrefix']}-{number}"}, index)

    async def createAny(self, op: Operation, index: int) -> None:
        space, count = op.get("namespace", ""), self._workload.get(op, "count", 1)
        if space:
            await self._cluster.namespace(space)
        item = self._workload.item
        await self._all(lambda n: self._cluster.create(item(op, op["templatePath"], n, count), space), count)

    createPodGroups = createAny

    async def updateAny(self, op: Operation, index: int) -> None:
        count = self._workload.get(op, "count", 1)
        for number in range(count):
            item = self._workload.item(op, op["templatePath"], number, count)
            where = f"{await self._cluster.path(item, op.get('namespace', ''))}/{item['metadata']['name']}"
            await self._cluster.call("PUT", "/".join([where, *op.get("subresources", ())]), item)
            await self._cluster.call("PUT", f"{where}/status", item)
            await asyncio.sleep(1 / op["updatePerSecond"] if op.get("updatePerSecond") else 0)

    async def deletePods(self, op: Operation, index: int) -> None:
        where, per_s = f"/api/v1/namespaces/{op['namespace']}/pods", op.get("deletePodsPerSecond")
        query = "?labelSelector=" + ",".join(f"{k}={v}" for k, v in (op.get("labelSelector") or {}).items())

        async def work() -> None:
            if not per_s:
                await self._cluster.call("DELETE", where + query)
                return
            for item in (await self._cluster.call("GET", where + query))["items"]:
                await self._cluster.call("DELETE", f"{where}/{item['metadata']['name']}", ok=404)
                await asyncio.sleep(1 / per_s)

        task = asyncio.create_task(work())
        if op.get("skipWaitToCompletion"):
            self._tasks.add(task)
        else:
            await task

    async def churn(self, op: Operation, index: int) -> None:
        space = op.get("namespace") or f"namespace-{index}"
        await self._cluster.namespace(space)
        again, most = op["mode"] == "recreate", op.get("number", 0)

        async def work() -> None:
            made: dict[tuple[str, int], str] = {}
            number = 0
            while again or not most or number < most:
                await asyncio.sleep(op.get("intervalMilliseconds", 500) / 1000)
                for path in op["templatePaths"]:
                    slot = (path, number % most if again else number)
                    if slot in made:
                        await self._cluster.call("DELETE", made.pop(slot), ok=404)
                        continue
                    item = self._workload.item(op, path, number, most)
                    name = (await self._cluster.create(item, space))["metadata"]["name"]
                    made[slot] = f"{await self._cluster.path(item, space)}/{name}"
                number += 1

        self._tasks.add(asyncio.create_task(work()))

    async def barrier(self, op: Operation, index: int) -> None:
        spaces, labels = set(op.get("namespaces") or self._wanted), op.get("labelSelector") or {}
        tried = op.get("stageRequirement") == "Attempted"

        def ready() -> bool:
            return all(self._count(space, labels, tried=tried) >= self._wanted.get(space, 0) for space in spaces)

        await self._wait(f"barrier of {sorted(spaces)}", ready)
        if not tried:
            for space in spaces:
                self._wanted.pop(space, None)

    async def sleep(self, op: Operation, index: int) -> None:
        await asyncio.sleep(self._workload.seconds(op))

    async def startCollectingMetrics(self, op: Operation, index: int) -> None:
        self._measure.start(set(op["namespaces"]), op.get("labelSelector") or {})

    async def stopCollectingMetrics(self, op: Operation, index: int) -> None:
        self._measure.stop()

    async def allocResourceClaims(self, op: Operation, index: int) -> None:
        where = f"/apis/resource.k8s.io/v1/namespaces/{op['namespace']}/resourceclaims"
        if (await self._cluster.call("GET", where))["items"]:
            raise FailedError("allocResourceClaims needs kube-scheduler's own allocator; initClaims=0 plays the rest")
