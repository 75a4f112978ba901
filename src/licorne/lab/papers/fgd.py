"""The figures of FGD and five other policies on the openb trace (Weng et al., USENIX ATC 2023).

The rules are those of docs/spec/experiments.md, part B; the runs are made by `licorne.lab.papers.placements`. A run is a list of pods,
a policy, and two orders: of the nodes, and of the arrival of the pods.

* Where the folder has the orders of a published run, its values must come out to 0.011: they were rounded twice.
* Random draws numbers in an order that depends on threads, so its single runs cannot be repeated; and for a list without orders
  nothing can. The mean of ten runs with orders of our own must lie within two standard deviations of the published ten, and 0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from licorne._bounded import DOCUMENT_BYTES, unpacked
from licorne._files import file_bytes
from licorne.core.nodes.devices import WHOLE, Demand
from licorne.lab.papers.fragmentation import Shape, Typical, typical_shapes
from licorne.lab.papers.node_orders import POLICIES
from licorne.lab.papers.placements import Curve, Experiment, GpuNode, GpuPod, Shares
from licorne.lab.papers.reproduction import Cell, DataFile, Part, Reproduced, data_file, digest_of, run_groups
from licorne.sim.collector import quiet_collector
from licorne.workload.traces.openb import NODES, gpu_milli
from licorne.workload.traces.tables import rows
from licorne.workload.workload import Progress, WorkloadError

PERCENTS = (50, 80, 90, 100, 110, 120, 130)
"""Per cent of the capacity that has arrived, at which values were published."""
EXACT = 0.011
"""By how much a value of a published run may differ."""
RUNS = 10
"""Runs of which the mean is compared where there are no published orders."""
TOP_UP = 1.3
"""How much of the capacity arrives in a run with orders of our own."""
RANDOM = "Random"
LIST_NAME = "openb_pod_list_{}.csv"
RUNS_FILE = "runs.csv"
MEANS_FILE = "expected.csv"
SOURCE = (
    "Qizhen Weng, Lingyun Yang, Yinghao Yu, Wei Wang, Xiaochuan Tang, Guodong Yang, Liping Zhang: Beware of Fragmentation: "
    "Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent. USENIX ATC '23."
)
DATA_SOURCE = (
    "github.com/hkust-adsl/kubernetes-scheduler-simulator: data/csv has the lists of nodes and pods, "
    "experiments/analysis/expected_results the values. The trace is Alibaba's (github.com/alibaba/clusterdata, "
    "cluster-trace-gpu-v2023). docs/use/published-tables.md says what the folder must have"
)


class PodList(NamedTuple):
    """A list of pods of the trace, with the typical shapes of its pods."""

    name: str
    file: Path
    pods: list[GpuPod]
    typical: list[Typical]


class Orders(NamedTuple):
    """The rows of the list of nodes in the order that settles ties, and those of the list of pods in order of arrival."""

    nodes: Sequence[int]
    pods: Sequence[int]


class Published(NamedTuple):
    """A published run: the list, its seed, and the file with its orders."""

    list: str
    seed: str
    file: Path


Values = dict[tuple[str, ...], dict[int, tuple[float, float]]]
"""Published values with their tolerance, by percentage; by list, seed and policy (or list and policy), and metric."""
_Runs = tuple[Sequence[GpuNode], PodList, str, Sequence[Orders]]
"""Runs of one list and policy, one for each of the orders; Random draws its numbers from the position of the run."""


def reproduce(folder: Path, part: Part = "usual", at_once: int = 1, progress: Progress | None = None) -> Reproduced:
    """Make the published runs again for which the folder has what it takes, of one list and seed if `part` is small.

    If `part` is all, means of ten runs are compared for each list and policy, also where there are published orders: with these,
    and as many orders of our own as they are fewer than ten.

    Raises:
        WorkloadError: a file is missing or not what it should be; the text has file, line and column.
        OSError: a file cannot be read.
        CrashedError: a process has ended too early.
    """
    nodes = read_nodes(folder / NODES)
    if not any(node.devices for node in nodes):
        raise WorkloadError(f"{folder / NODES}: gpu: no node has GPUs; {DATA_SOURCE}")
    published = _published(folder)
    means = _means(folder / MEANS_FILE)
    known = {name for name, _, _ in means}
    names = [name for name in _lists(folder) if name in known]
    notes = [f"nothing was published of {name}" for name in _lists(folder) if name not in known]
    if part == "small":
        notes = ["a part only: the other lists and seeds, and Random, were left out"]
        published, names = published[:1], []
    lists = {name: read_pod_list(folder, name) for name in dict.fromkeys([*(run.list for run in published), *names])}
    with_orders = {run.list for run in published} if part != "all" else set()
    averaged = [(name, policy) for name in names for policy in POLICIES if policy == RANDOM or name not in with_orders]
    exact = [(run, policy) for run in published for policy in POLICIES if policy != RANDOM]
    if not exact and not averaged:
        raise WorkloadError(f"{folder}: no list of pods with published values; {DATA_SOURCE}")
    values = _values(folder / RUNS_FILE) if exact else {}
    orders = _orders(nodes, lists, exact, averaged)
    # The longest first, so that no process is busy for long when the others have ended.
    keys = sorted(orders, key=lambda key: -sum(len(each.pods) for each in orders[key].values()))
    groups = {key: (nodes, lists[key[0]], key[1], list(orders[key].values())) for key in keys}
    found = run_groups(groups, _run, sum(map(len, orders.values())), at_once, progress)
    curves = {key: dict(zip(orders[key], found[key], strict=True)) for key in keys}
    cells: list[Cell] = []
    digests: list[str] = []
    for one, policy in exact:
        curve = curves[one.list, policy][one.seed]
        digests.append(curve.digest)
        cells += _cells((one.list, one.seed, policy), f"{one.list} {one.seed} {policy}", [curve], values)
    for name, policy in averaged:
        made = curves[name, policy]
        digests += [curve.digest for seed, curve in made.items() if isinstance(seed, int)]
        cells += _cells((name, policy), f"{name} mean of {len(made)} {policy}", list(made.values()), means)
    return Reproduced(
        name="fgd",
        title="GPUs allocated and fragmented, six policies on the openb trace (ATC '23)",
        source=SOURCE,
        data_source=DATA_SOURCE,
        data=_data(folder, lists, published, exact=bool(exact)),
        cells=cells,
        simulations=len(digests),
        digest=digest_of(digests),
        notes=notes,
    )


def _orders(
    nodes: Sequence[GpuNode],
    lists: Mapping[str, PodList],
    exact: Iterable[tuple[Published, str]],
    averaged: Iterable[tuple[str, str]],
) -> dict[tuple[str, str], dict[str | int, Orders]]:
    """Return the orders of all runs by list and policy, those of published runs by their seed, our own by the number they are drawn from."""
    found: dict[tuple[str, str], dict[str | int, Orders]] = {}
    for run, policy in exact:
        read = read_orders(run.file, nodes=len(nodes), pods=len(lists[run.list].pods))
        found.setdefault((run.list, policy), {})[run.seed] = read
    own = cache(lambda name, seed: own_orders(nodes, lists[name].pods, seed))
    for name, policy in averaged:
        orders = found.setdefault((name, policy), {})
        orders |= {seed: own(name, seed) for seed in range(RUNS - len(orders))}
    return found


def _run(runs: _Runs) -> list[Curve]:
    """Make runs; return their results, without the decisions."""
    nodes, pods, policy, orders = runs
    curves = [run_once(nodes, pods, policy, each, seed) for seed, each in enumerate(orders)]
    return [msgspec.structs.replace(curve, placed=()) for curve in curves]


def run_once(nodes: Sequence[GpuNode], pods: PodList, policy: str, orders: Orders, seed: int) -> Curve:
    """Make one run; `seed` is for the policy Random."""
    with quiet_collector():
        ordered = [nodes[row] for row in orders.nodes]
        experiment = Experiment(ordered, pods.typical, policy, Random(seed))
        return experiment.run([pods.pods[row] for row in orders.pods])


def own_orders(nodes: Sequence[GpuNode], pods: Sequence[GpuPod], seed: int) -> Orders:
    """Draw orders from a seed: shuffle, then trim at random or top up until 130 % of the capacity arrive.

    Source: docs/spec/experiments.md, B.4.
    """
    random = Random(seed)
    goal = TOP_UP * WHOLE * sum(node.devices for node in nodes)
    arriving = list(range(len(pods)))
    random.shuffle(arriving)
    total = sum(pod.wanted for pod in pods)
    while total > goal:
        total -= pods[arriving.pop(random.randrange(len(arriving)))].wanted
    while total < goal and pods:
        row = random.randrange(len(pods))
        if total + pods[row].shape.devices.each > goal:
            break
        arriving.append(row)
        total += pods[row].wanted
    order = [row for row, node in enumerate(nodes) if node.devices]
    random.shuffle(order)
    return Orders(order, arriving)


# -- comparing ---------------------------------------------------------------------------------------------------


def _cells(key: tuple[str, ...], row: str, curves: Sequence[Curve], values: Values) -> Iterator[Cell]:
    """Yield a cell for each metric and percentage: the mean of the runs beside what was published."""
    for metric in Shares._fields:
        known = values.get((*key, metric))
        if known is None:
            raise WorkloadError(f"no published values of {metric} for {row}; {DATA_SOURCE}")
        for percent, (expected, tolerance) in known.items():
            if any(percent not in curve.shares for curve in curves):
                raise WorkloadError(f"{row}: no pod arrives at {percent} % of the capacity")
            got = [getattr(curve.shares[percent], metric) for curve in curves]
            cell = Cell(
                row=row,
                column=f"{metric} at {percent} %",
                expected=expected,
                got=sum(got) / len(got),
                tolerance=tolerance,
                decimals=3,
            )
            yield cell.compared()


# -- reading -----------------------------------------------------------------------------------------------------


def read_nodes(path: Path) -> list[GpuNode]:
    """Return the nodes of the list, in its order; those without GPUs take no part, and are kept so that rows keep their numbers.

    Raises:
        WorkloadError: the file is missing or not what it should be; the text has file, line and column.
    """
    advice = f"give the folder of the openb trace; it is published by {DATA_SOURCE}"
    return [
        GpuNode(row.values["model"], row.count("gpu"), row.count("cpu_milli"), row.count("memory_mib"))
        for row in rows(path, ("cpu_milli", "memory_mib", "gpu", "model"), advice)
    ]


def _lists(folder: Path) -> list[str]:
    """Return the names of the lists of pods in the folder."""
    before, after = LIST_NAME.split("{}")
    return sorted(path.name[len(before) : -len(after)] for path in folder.glob(LIST_NAME.format("*")))


def read_pod_list(folder: Path, name: str) -> PodList:
    """Read a list of pods of the folder.

    Raises:
        WorkloadError: the file is missing or not what it should be; the text has file, line and column.
    """
    path = folder / LIST_NAME.format(name)
    pods: list[GpuPod] = []
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    for row in rows(path, columns, "its orders or published values are in the folder"):
        shape = Shape(row.count("cpu_milli"), Demand.of(gpu_milli(row)), row.values.get("gpu_spec") or "")
        pods.append(GpuPod(shape, row.count("memory_mib")))
    return PodList(name, path, pods, typical_shapes(pod.shape for pod in pods))


def _published(folder: Path) -> list[Published]:
    """Return the published runs whose orders are in the folder."""
    found = []
    for path in sorted((folder / "orders").glob("*-*.txt.gz")):
        name, _, seed = path.name.removesuffix(".txt.gz").rpartition("-")
        found.append(Published(name, seed, path))
    return sorted(found, key=lambda run: (run.list != "default", run.list, run.seed))


def read_orders(path: Path, *, nodes: int, pods: int) -> Orders:
    """Read the orders of a published run, for lists with this many nodes and pods.

    Raises:
        WorkloadError: the file is not two lines, `nodes` and `pods`, each with numbers of rows.
    """
    try:
        texts = unpacked(file_bytes(path), DOCUMENT_BYTES, gzip=True).decode("ascii").splitlines()
    except ValueError as error:
        raise WorkloadError(f"{path}: not a readable gzip file of numbers: {error}") from None
    found = []
    for line, (name, limit) in enumerate((("nodes", nodes), ("pods", pods)), 1):
        words = texts[line - 1].split() if len(texts) >= line else []
        if words[:1] != [name]:
            raise WorkloadError(f"{path}:{line}: must begin with the word {name}")
        wrong = next((word for word in words[1:] if not word.isdigit() or int(word) >= limit), None)
        if wrong is not None:
            raise WorkloadError(f"{path}:{line}: {wrong!r} is no row of the list of {name}, which has {limit}")
        found.append([int(word) for word in words[1:]])
    if len(set(found[0])) < len(found[0]):
        raise WorkloadError(f"{path}:1: a node is there twice")
    return Orders(*found)


def _values(path: Path) -> Values:
    """Read the values of published runs."""
    columns = ("trace", "seed", "policy", "metric", *map(str, PERCENTS))
    return {
        (row.text("trace"), row.text("seed"), row.text("policy"), row.text("metric")): {
            percent: (_number(row.values[str(percent)], path), EXACT) for percent in PERCENTS
        }
        for row in rows(path, columns, DATA_SOURCE)
    }


def _means(path: Path) -> Values:
    """Read means and standard deviations of ten published runs."""
    found: Values = {}
    for row in rows(path, ("trace", "policy", "arrived_pct", "metric", "mean", "sd"), DATA_SOURCE):
        key = row.text("trace"), row.text("policy"), row.text("metric")
        mean, deviation = (_number(row.values[column], path) for column in ("mean", "sd"))
        found.setdefault(key, {})[row.count("arrived_pct")] = mean, 2 * deviation + 0.2
    return found


def _number(text: str, path: Path) -> float:
    try:
        return msgspec.convert(text, float, strict=False)
    except msgspec.ValidationError:
        raise WorkloadError(f"{path}: {text!r} is not a number") from None


def _data(folder: Path, lists: dict[str, PodList], published: Sequence[Published], *, exact: bool) -> list[DataFile]:
    """Return the files that a reproduction has read."""
    files = [folder / NODES, *(each.file for each in lists.values()), *(run.file for run in published)]
    return [data_file(path) for path in (*files, folder / MEANS_FILE, *([folder / RUNS_FILE] if exact else []))]
