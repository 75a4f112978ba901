"""The six published policies in any simulation: the choices of `licorne reproduce fgd`, and of a loop over all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random as Generator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import config
from licorne.core.nodes.devices import WHOLE, Demand, least_left
from licorne.lab.papers.fgd import read_nodes, read_orders, read_pod_list
from licorne.lab.papers.fragmentation import Shape, typical_shapes
from licorne.lab.papers.gpu_policies import FGD, BestFit, DotProd, GpuClustering, GpuPacking, Random
from licorne.lab.papers.node_orders import POLICIES, Chosen, Machine
from licorne.lab.papers.placements import DEVICE, Experiment, GpuNode, GpuPod, node_name
from licorne.sim.policies import Node, PlannedPod, Pod, Policy
from licorne.sim.policies.loading import load_policy
from licorne.sim.runner import simulate
from licorne.workload.device_models import OPENB_LABEL
from licorne.workload.lines import App, Ask, Line, NodeUpdate
from licorne.workload.lines import Node as NodeLine
from licorne.workload.workload import Mode, Workload
from rings import first_in_gate
from sim.held import Held

CLASSES: dict[str, type[Policy]] = {
    kind.__name__: kind for kind in (Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD)
}
NAMES = {
    "random": Random,
    "dotprod": DotProd,
    "gpu-clustering": GpuClustering,
    "gpu-packing": GpuPacking,
    "bestfit": BestFit,
    "fgd": FGD,
}
QUEUES = config("pods", more="nodesortpolicy: {type: %s}")


class Placed(Held):
    """Hears on which node and devices each pod is placed; pods and nodes have numbers as names."""

    @property
    def where(self) -> dict[int, Chosen]:
        return {int(key): Chosen(int(node), self.devices[key]) for key, node in self.nodes.items()}


def workload(nodes: Sequence[GpuNode], pods: Sequence[GpuPod], order: str = "fair") -> Workload:
    """Pods that arrive one after the other and stay."""
    lines: list[Line] = []
    for at, node in enumerate(nodes):
        res = {"vcore": node.cpu, "memory": node.memory_mib << 20, DEVICE: node.devices * WHOLE}
        lines.append(NodeLine(id=node_name(at), res=res, attrs={f"label/{OPENB_LABEL}": node.model}, at=0))
    lines.append(App(id="x", queue="root.pods", user="ann", at=0))
    for number, pod in enumerate(pods):
        wanted = {"vcore": pod.shape.cpu, "memory": pod.memory_mib << 20, DEVICE: pod.wanted}
        tags = None
        if pod.shape.spec:
            expression = {"key": OPENB_LABEL, "operator": "In", "values": pod.shape.spec.split("|")}
            tags = {"licorne/node-constraints": msgspec.json.encode({"nodeAffinity": [[expression]]}).decode()}
        res = {name: amount for name, amount in wanted.items() if amount}
        lines.append(Ask(key=str(number), app="x", res=res, tags=tags, at=number + 1))
    return Workload(name="gpus", mode=Mode.TIMED, lines=lines, config=QUEUES % order, devices=DEVICE)


def agrees(nodes: Sequence[GpuNode], pods: Sequence[GpuPod], name: str, order: str = "fair") -> int:
    """Compare a simulation with the experiment, pod by pod; return how many were placed."""
    typical = typical_shapes(pod.shape for pod in pods)
    curve = Experiment(nodes, typical, name, Generator(0)).run(pods)
    heard = Placed()
    result = simulate(workload(nodes, pods, order), policies=[CLASSES[name]], observers=[heard])
    assert [heard.where.get(number) for number in range(len(pods))] == list(curve.placed)
    assert result.digest == curve.digest
    return result.placed


gpu_pods = st.builds(
    GpuPod,
    shape=st.builds(
        Shape,
        cpu=st.sampled_from([1000, 2000, 4000]),
        devices=st.sampled_from([0, 200, 460, 500, 999, 1000, 2000]).map(Demand.of),
        spec=st.sampled_from(["", "", "T4", "T4|G2", "G2|T4"]),
    ),
    memory_mib=st.sampled_from([0, 10, 60]),
)
gpu_nodes = st.builds(
    GpuNode,
    model=st.sampled_from(["T4", "G2"]),
    devices=st.integers(0, 3),
    cpu=st.sampled_from([4000, 8000]),
    memory_mib=st.sampled_from([50, 100]),
)


@given(
    st.lists(gpu_nodes, min_size=1, max_size=5),
    st.lists(gpu_pods, min_size=1, max_size=25),
    st.sampled_from(POLICIES),
    st.sampled_from(["fair", "binpacking"]),
)
@examples(60)
def test_any_simulation_takes_the_nodes_and_devices_of_the_experiment(
    nodes: list[GpuNode], pods: list[GpuPod], name: str, order: str
) -> None:
    agrees([*nodes, GpuNode("G2", 1, 4000, 50)], pods, name, order)  # some capacity, of which shares are computed


@pytest.mark.parametrize("name", first_in_gate(reversed(POLICIES)))
def test_a_part_of_the_trace_is_placed_as_in_the_experiment(openb: Path, name: str) -> None:
    """A tenth of the nodes, and as many pods as more than fill them; half of the GPU pods name models."""
    placed, pods = part_of(openb, "gpuspec33", name, nodes=120, pods=1000)
    assert 500 < placed < pods


@pytest.mark.nightly
@pytest.mark.parametrize("name", POLICIES)
def test_the_whole_trace_is_placed_as_in_the_experiment(openb: Path, name: str) -> None:
    placed, pods = part_of(openb, "default", name, nodes=2000, pods=8152)
    assert 7500 < placed < pods == 8152


def part_of(folder: Path, listed: str, name: str, *, nodes: int, pods: int) -> tuple[int, int]:
    """Compare the first nodes and pods of a published run; return how many pods were placed, and how many there are."""
    all_nodes, pod_list = read_nodes(folder / "openb_node_list_all_node.csv"), read_pod_list(folder, listed)
    path = folder / "orders" / f"{listed}-42.txt.gz"
    orders = read_orders(path, nodes=len(all_nodes), pods=len(pod_list.pods))
    given_pods = [pod_list.pods[row] for row in orders.pods[:pods]]
    return agrees([all_nodes[row] for row in orders.nodes[:nodes]], given_pods, name), len(given_pods)


# -- where pods end and nodes change, which no experiment has ------------------------------------------------------------


def naive(policy: Policy, pod: Pod, nodes: Iterable[Node]) -> str | None:
    """Return the name of the best node by a look at each, with nothing kept from earlier pods."""
    assert isinstance(policy, DotProd | BestFit | GpuClustering | GpuPacking | FGD)
    number, each = pod.devices
    shape = Shape(pod.resources["vcore"], pod.devices, "|".join(pod.models))
    best: tuple[int, str] | None = None
    for node in sorted(nodes, key=lambda node: node.id):
        assert sum(left >= each for left in node.devices) >= number
        classes = {pod.devices.number * (pod.devices.each == WHOLE) for pod in node.pods if pod.devices.number}
        machine = Machine(
            node.attributes.get(f"label/{OPENB_LABEL}", ""), node.free.get("vcore", 0), 0, node.devices,
            classes=sum(1 << each for each in classes), level=policy.level(node.free.get("vcore", 0)),
        )  # fmt: skip
        found = policy.number(machine, shape)
        if best is None or found > best[0]:
            best = found, node.id
    return best[1] if best is not None else None


@pytest.mark.gate
@given(
    st.lists(gpu_nodes, min_size=1, max_size=4),
    st.lists(st.tuples(gpu_pods, st.integers(1, 9)), min_size=1, max_size=25),
    st.sampled_from([name for name in POLICIES if name != "Random"]),
    st.lists(st.tuples(st.integers(1, 25), st.integers(0, 3), st.sampled_from(["T4", "G2"])), max_size=3),
)
@examples(60)
def test_a_choice_is_the_best_of_all_nodes_also_where_pods_end_and_nodes_change(
    nodes: list[GpuNode], pods: list[tuple[GpuPod, int]], name: str, changes: list[tuple[int, int, str]]
) -> None:
    kind = CLASSES[name]
    asked = 0

    class Compared(kind):  # type: ignore[valid-type,misc]  # the class is a parameter
        def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> Node | None:
            nonlocal asked
            asked += 1
            fitting = list(nodes)
            chosen: Node | None = super().choose_node(pod, fitting)
            assert (chosen.id if chosen is not None else None) == naive(self, pod, fitting)
            return chosen

        def choose_device(self, pod: Pod, node: Node, share: int) -> int:
            device: int = super().choose_device(pod, node, share)
            if name != "FGD":
                assert device == least_left(node.devices, share)
            return device

    made = workload(nodes, [pod for pod, _ in pods])
    lines = [line for line in made.lines if not isinstance(line, Ask)]
    asks = [line for line in made.lines if isinstance(line, Ask)]
    for ask, (_, duration_s) in zip(asks, pods, strict=True):
        ask.duration_s = duration_s
    updates = [
        NodeUpdate(id=node_name(at), attrs={f"label/{OPENB_LABEL}": model}, at=at_s + 0.5)
        for at_s, at, model in changes
        if at < len(nodes)
    ]
    timed: list[Line] = [*asks, *updates]
    timed.sort(key=lambda line: line.at or 0)
    simulate(msgspec.structs.replace(made, lines=[*lines, *timed]), policies=[Compared])
    assert asked or not asks


def test_fgd_minimises_fragmentation_for_the_pods_of_the_workload() -> None:
    """Most pods want whole devices, so a share goes where one is broken already; where shares of 500 prevail, all fit anywhere."""
    nodes = [GpuNode("T4", 2, 8000, 10), GpuNode("T4", 1, 8000, 10)]
    share, whole, half = (GpuPod(Shape(1000, Demand.of(amount), ""), 0) for amount in (300, 1000, 500))
    heard = Placed()
    simulate(workload(nodes, [share, share, *[whole] * 20]), policies=[FGD], observers=[heard])
    assert heard.where[0].devices == heard.where[1].devices and heard.where[0].node == heard.where[1].node
    simulate(workload(nodes, [half, share, *[half] * 40]), policies=[FGD], observers=[heard])
    assert heard.where[0] == Chosen(0, (0,))


def test_each_pod_of_an_ask_that_repeats_counts_for_what_is_typical() -> None:
    """19 of 20 pods are of one shape, which alone is typical: no other amount of CPU matters."""
    asks = [Ask(key="a", app="x", res={"vcore": 1000, DEVICE: 500}, max=19), Ask(key="b", app="x", res={"vcore": 2000})]
    fgd = FGD()
    fgd.begin([PlannedPod(ask, DEVICE, 0) for ask in asks])
    assert [fgd.level(cpu) for cpu in (999, 1000, 2000)] == [0, 1, 1]


# -- how they are made -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_they_are_found_by_their_short_names(name: str) -> None:
    """As entry points, which an installation declares: after a change in pyproject.toml install anew (`make test` does)."""
    found = load_policy(name)
    assert type(found.policy) is NAMES[name]
    assert found.decides == ("choose_node", "choose_device")


def test_random_draws_the_same_for_a_seed() -> None:
    nodes, pods = [GpuNode("T4", 4, 8000, 10)] * 3, [GpuPod(Shape(100, Demand.of(100), ""), 0)] * 20

    def places(policy: Policy | type[Policy]) -> dict[int, Chosen]:
        heard = Placed()
        simulate(workload(nodes, pods), policies=[policy], observers=[heard])
        return heard.where

    one = Random(7)
    assert places(one) == places(one) == places(Random(7)) != places(Random)
    assert places(Random) == places(Random)


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_without_devices_is_placed(name: str) -> None:
    lines: list[Line] = [
        NodeLine(id="n1", res={"vcore": 2000}, at=0),
        NodeLine(id="n2", res={"vcore": 1000}, at=0),
        App(id="x", queue="root.pods", user="ann", at=0),
        *[Ask(key=str(number), app="x", res={"vcore": 1000}, at=1) for number in range(4)],
    ]
    result = simulate(
        Workload(name="cpus", mode=Mode.TIMED, lines=lines, config=QUEUES % "fair"), policies=[NAMES[name]]
    )
    assert result.placed == 3
    assert any("chooses devices, and this workload has none" in note for note in result.notes)
