"""The openb trace as a workload: 1,523 nodes and 8,152 pods of a GPU cluster (Alibaba; USENIX ATC 2023).

This module decides how a table of pods becomes arrivals and durations. A pod arrives at its creation, and runs from its
scheduling to its deletion, or from its creation if it was never scheduled. The recorded times leave the cluster 99 % idle,
which tests nothing, so there are three ways to read them:

* `recorded`: as they are;
* `fill`: pods arrive at the recorded times and stay;
* `load`, with a load F (the default, 0.9): the arrival times are compressed until the peak demand for the scarcest
  resource, if every pod started on arrival, is F times the capacity. Durations are kept. The factor is found by bisection
  on a grid of 2^-30, in integers throughout, so that it is the same on every machine. All pods at once want 98 % of the
  GPUs, so for a higher load the trace is taken several times, one after the other: only then does demand exceed supply.

Every pod is an application of its own, because the trace does not say which pods belong together; the queue is that of
its QoS class (`root.ls`), and the user has the name of the class. GPU models are node constraints
(docs/spec/scheduler-interface.md, section 9). A GPU is a device (`licorne.workload.devices`): a pod has a share of one, or whole ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path

import msgspec

from licorne._wording import counted
from licorne.core.nodes.constraints import CONSTRAINTS_TAG
from licorne.core.nodes.devices import WHOLE
from licorne.workload.device_models import OPENB_LABEL
from licorne.workload.lines import App, Ask, Line, Node
from licorne.workload.measure import NANOSECONDS
from licorne.workload.traces.tables import Row, rows
from licorne.workload.workload import Mode, Workload, WorkloadError

DEFAULT_PODS = "openb_pod_list_default.csv"
NODES = "openb_node_list_all_node.csv"
GPU = "alibabacloud.com/gpu-milli"
"""The resource type of GPUs, in thousandths of a device."""
LOAD = 0.9
"""The load that is aimed at if none is given."""
_MIB = 1 << 20
_GRID = 30
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip


class Pod(msgspec.Struct, gc=False):
    """A row of a pod list: arrival and duration in seconds, resources, and the GPU models that it accepts."""

    name: str
    qos: str
    created_s: int
    duration_s: int
    resource: dict[str, int]
    models: tuple[str, ...]


def read_openb(path: Path, *, how: str = "load", load: float = LOAD) -> Workload:
    """Read the trace as a timed workload. `path`: its folder, or one of its pod lists with the node list beside it.

    `how` is `recorded`, `fill` or `load`. Raises WorkloadError (file:line: column: what is wrong, or a load that cannot be
    reached) and OSError.
    """
    if how == "load" and not 0 < load <= 100:
        raise WorkloadError(f"load must be above 0 and at most 100, not {load:g}")
    if path.is_dir() and not (path / DEFAULT_PODS).exists():
        raise WorkloadError(
            f"{path}: a folder, but not that of the openb trace ({DEFAULT_PODS}: no such file; give the trace's folder or "
            "one of its pod lists, or a workload in JSON lines)"
        )
    pods_file = path / DEFAULT_PODS if path.is_dir() else path
    cut_off: list[str] = []
    pods = sorted(_read_pods(pods_file, cut_off), key=lambda pod: pod.created_s)
    nodes = _read_nodes(pods_file.parent / NODES, cut_off)
    notes = ["each pod is an application of its own, in the queue of its QoS class, as in root.ls"]
    notes += [*_unknown_models(pods_file, pods, nodes), *cut_off]
    arrivals_ns = [pod.created_s * NANOSECONDS for pod in pods]
    if how == "load":
        capacity: Counter[str] = Counter()
        for node in nodes:
            capacity.update(node.res)
        recorded, resource = peak_share(pods, arrivals_ns, capacity)
        if recorded > load:
            out = "a higher one can be reached with --load, and --as recorded takes these times"
            raise WorkloadError(
                f"load {load:g} is out of reach: the recorded times have {recorded:.4g}, of {resource}; {out}"
            )
        pods, note = repeat(pods, capacity, load)
        notes += [note] if note else []
        arrivals_ns, note = squeeze(pods, capacity, load)
        notes.append(note)
    elif how == "fill":
        notes.append("pods arrive at their recorded times and stay")
    elif how != "recorded":
        raise WorkloadError(f"the trace can be read as recorded, fill or load, not as {how!r}")
    lines: list[Line] = [*nodes]
    for pod, at_ns in zip(pods, arrivals_ns, strict=True):
        lines += _lines_of(pod, at_ns, stays=how == "fill")
    return Workload(
        name=f"{pods_file.stem} ({f'load {load:g}' if how == 'load' else how})",
        mode=Mode.TIMED,
        config=default_config(pod.qos for pod in pods),
        lines=lines,
        notes=notes,
        devices=GPU,
    )


def repeat(pods: list[Pod], capacity: dict[str, int], load: float) -> tuple[list[Pod], str]:
    """Return the pods as many times as it takes to reach a load, one time after the other, and a note if more than once.

    The pods of the second time have `~2` after their names, and so on.
    """
    share, resource = peak_share(pods, [0] * len(pods), capacity)
    if share <= 0 or load <= share:
        return pods, ""
    times = ceil(load / share)
    span_s = pods[-1].created_s + 1
    found = [
        pod
        if not time
        else msgspec.structs.replace(pod, name=f"{pod.name}~{time + 1}", created_s=pod.created_s + time * span_s)
        for time in range(times)
        for pod in pods
    ]
    return (
        found,
        f"the trace is taken {times} times, one after the other: all its pods at once want {share:.1%} of {resource}",
    )


def squeeze(pods: list[Pod], capacity: dict[str, int], load: float) -> tuple[list[int], str]:
    """Return arrival times in nanoseconds at which peak demand is nearly but at most `load` of capacity, and a note.

    Arrivals are compressed, at most to a single moment, and never stretched; the note says when a load is out of reach.
    """
    whole = 1 << _GRID

    def at_scale(scale: int) -> list[int]:
        return [pod.created_s * NANOSECONDS * scale >> _GRID for pod in pods]

    low, high = 0, whole
    if peak_share(pods, at_scale(0), capacity)[0] <= load:
        high = 0
    # `high` keeps within the load (unless even the recorded times exceed it), `low` does not.
    while high - low > 1:
        middle = (low + high) // 2
        if peak_share(pods, at_scale(middle), capacity)[0] <= load:
            high = middle
        else:
            low = middle
    arrivals_ns = at_scale(high)
    share, resource = peak_share(pods, arrivals_ns, capacity)
    known = {whole: "arrival times as recorded", 0: "all pods at once"}
    factor = known.get(high, f"arrival times × {high / whole:.6f}")
    return arrivals_ns, f"{factor}: peak demand would be {share:.1%} of {resource} if every pod started on arrival"


def peak_share(pods: list[Pod], arrivals_ns: list[int], capacity: dict[str, int]) -> tuple[float, str]:
    """Return the highest demand over time as a share of capacity, over all resource types, and the type that has it.

    Pods are in order of arrival; each needs its resources from its arrival up to, and not at, its end.
    """
    started = [(at, pod) for at, pod in zip(arrivals_ns, pods, strict=True) if pod.duration_s > 0]
    ends = [(at + pod.duration_s * NANOSECONDS, index) for index, (at, pod) in enumerate(started)]
    ends.sort()
    demand = dict.fromkeys(capacity, 0)
    peak = dict(demand)
    ended = 0
    for at_ns, pod in started:
        # All pods that have ended by now are in `started` before this one, as durations are above 0.
        while ends[ended][0] <= at_ns:
            for name, amount in started[ends[ended][1]][1].resource.items():
                demand[name] -= amount
            ended += 1
        for name, amount in pod.resource.items():
            level = demand.get(name, 0) + amount
            demand[name] = level
            if level > peak.get(name, 0):
                peak[name] = level
    return max((peak[name] / total if total > 0 else 0.0, name) for name, total in capacity.items())


def default_config(classes: Iterable[str]) -> str:
    """Return queues for the trace: one for each QoS class under root, without quotas, each with the class as its user."""
    queues = "".join(
        f"          - name: {name.lower()}\n            submitacl: {name}\n" for name in sorted(set(classes))
    )
    return f"partitions:\n  - name: default\n    queues:\n      - name: root\n        queues:\n{queues}"


def _lines_of(pod: Pod, at_ns: int, *, stays: bool) -> list[Line]:
    """Return a pod as an application of its own, and its ask."""
    at = at_ns // NANOSECONDS if at_ns % NANOSECONDS == 0 else at_ns / NANOSECONDS
    tags = None
    if pod.models:
        expression = {"key": OPENB_LABEL, "operator": "In", "values": list(pod.models)}
        tags = {CONSTRAINTS_TAG: msgspec.json.encode({"nodeAffinity": [[expression]]}).decode()}
    application = App(at=at, id=pod.name, queue=f"root.{pod.qos.lower()}", user=pod.qos, tags={"namespace": pod.qos})
    duration_s = None if stays else pod.duration_s
    return [application, Ask(at=at, key=pod.name, app=pod.name, res=pod.resource, tags=tags, duration_s=duration_s)]


def _read_nodes(path: Path, notes: list[str]) -> list[Node]:
    nodes: list[Node] = []
    for row in rows(path, _NODE_COLUMNS, "the node list must lie beside the pod list", notes):
        resource = {"vcore": row.count("cpu_milli"), "memory": row.count("memory_mib") * _MIB}
        devices = row.count("gpu")
        if devices:
            resource[GPU] = devices * WHOLE
        name = row.text("sn")
        attributes = {"si/hostname": name}
        if row.values["model"]:
            attributes[f"label/{OPENB_LABEL}"] = row.values["model"]
        nodes.append(Node(id=name, res=resource, attrs=attributes))
    return nodes


def _read_pods(path: Path, notes: list[str]) -> list[Pod]:
    pods: list[Pod] = []
    advice = "give the trace's folder or one of its pod lists; --columns reads another table"
    for row in rows(path, _POD_COLUMNS, advice, notes):
        resource = {"vcore": row.count("cpu_milli"), "memory": row.count("memory_mib") * _MIB}
        milli = gpu_milli(row)
        if milli:
            resource[GPU] = milli
        created_s = row.count("creation_time")
        started_s = row.count("scheduled_time") if row.values["scheduled_time"] else created_s
        duration_s = row.count("deletion_time") - started_s
        if duration_s < 0 or row.count("deletion_time") < created_s:
            raise row.fault("deletion_time", f"is before the pod's {'start' if duration_s < 0 else 'creation'}")
        # Alternatives are separated by a bar, and some are listed twice.
        models = tuple(dict.fromkeys(model for model in row.values["gpu_spec"].split("|") if model))
        pods.append(Pod(row.text("name"), row.text("qos"), created_s, duration_s, resource, models))
    return pods


def _unknown_models(path: Path, pods: list[Pod], nodes: list[Node]) -> Iterator[str]:
    """Note the models of GPUs that pods accept and no node has, with the models that nodes have."""
    known = {model for node in nodes if (model := (node.attrs or {}).get(f"label/{OPENB_LABEL}"))}
    accepting = Counter(model for pod in pods for model in pod.models if model not in known)
    if accepting:
        said = ", ".join(f"{model} ({counted(number, 'pod')})" for model, number in sorted(accepting.items()))
        left = sum(bool(pod.models) and known.isdisjoint(pod.models) for pod in pods)
        accept = "accepts" if left == 1 else "accept"
        lost = f"; {counted(left, 'pod')} {accept} no other, and cannot be placed" if left else ""
        yield f"{path.name}: no node has these models of gpu_spec: {said}{lost}; nodes have {', '.join(sorted(known)) or 'none'}"


def gpu_milli(row: Row) -> int:
    """Return the thousandths of GPUs that a pod of a list wants in all: a share of one, or whole ones.

    Raises:
        WorkloadError: it wants parts of several GPUs, or more of one than there is.
    """
    number, each = (row.count(column) if row.values[column] else 0 for column in ("num_gpu", "gpu_milli"))
    if each > WHOLE or (number > 1 and each != WHOLE):
        raise row.fault("gpu_milli", f"a pod has a share of one GPU, or whole ones: not {each} of each of {number}")
    return number * each
