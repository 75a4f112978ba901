"""The published runs of six policies on the openb trace, and what the reproduction makes of a wrong folder."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from licorne.core import compiled
from licorne.core.nodes.devices import Demand
from licorne.lab.papers import fgd
from licorne.lab.papers.fgd import (
    DATA_SOURCE,
    PERCENTS,
    Orders,
    own_orders,
    read_nodes,
    read_orders,
    read_pod_list,
    reproduce,
    run_once,
)
from licorne.lab.papers.fragmentation import Shape, typical_shapes
from licorne.lab.papers.node_orders import POLICIES
from licorne.lab.papers.placements import Curve, Experiment, GpuNode, GpuPod, Shares
from licorne.workload.workload import WorkloadError

PODS = [
    GpuPod(Shape(2000, Demand.of(amount), spec), memory)
    for amount, spec, memory in [
        (460, "", 0),
        (1000, "T4", 5),
        (0, "", 9),
        (2000, "", 5),
        (700, "G2|T4", 5),
        (3000, "", 1),
    ]
]
NODES = [GpuNode("T4", 2, 8000, 10), GpuNode("G2", 2, 8000, 20), GpuNode("G2", 4, 6000, 20)]


def run_small(policy: str, pods: list[GpuPod]) -> Curve:
    return Experiment(NODES, typical_shapes(pod.shape for pod in PODS), policy, Random(7)).run(pods)


@pytest.mark.parametrize("policy", POLICIES)
def test_pods_are_placed_until_nothing_fits_and_never_beyond_a_node(policy: str) -> None:
    pods = PODS * 5
    curve = run_small(policy, pods)
    assert any(chosen is None for chosen in curve.placed)
    cpu = [node.cpu for node in NODES]
    memory = [node.memory_mib for node in NODES]
    free = [[1000] * node.devices for node in NODES]
    for pod, chosen in zip(pods, curve.placed, strict=True):
        number, each = pod.shape.devices
        if chosen is None:
            for at, node in enumerate(NODES):
                fits = cpu[at] >= pod.shape.cpu and memory[at] >= pod.memory_mib and pod.shape.accepts(node.model)
                assert not fits or sum(left >= each for left in free[at]) < number
            continue
        cpu[chosen.node] -= pod.shape.cpu
        memory[chosen.node] -= pod.memory_mib
        for device in chosen.devices:
            free[chosen.node][device] -= each
        assert pod.shape.accepts(NODES[chosen.node].model)
        assert min(cpu) >= 0 and min(memory) >= 0 and min(map(min, free)) >= 0
    used = sum(1000 - left for each in free for left in each)
    assert curve.shares[max(curve.shares)].gpu_allocated_pct == pytest.approx(100 * used / 8000)
    assert run_small(policy, pods) == curve


def test_shares_are_means_over_the_pods_of_a_rounded_percentage() -> None:
    """Ten pods of 460 on 8,000: after them 5.75, 11.5, 17.25, … per cent have arrived; halves are rounded to even."""
    curve = run_small("BestFit", [PODS[0]] * 10)
    assert list(curve.shares) == [6, 12, 17, 23, 29, 34, 40, 46, 52, 58]
    assert curve.shares[12].gpu_allocated_pct == pytest.approx(11.5)


def test_own_orders_top_up_and_trim_to_130_percent() -> None:
    capacity = sum(node.devices for node in NODES) * 1000
    few = own_orders(NODES, PODS, 3)
    assert sorted(few.nodes) == [0, 1, 2]
    assert sorted(few.pods[: len(PODS)]) == list(range(len(PODS)))
    many = own_orders(NODES, PODS * 9, 3)
    assert len(set(many.pods)) == len(many.pods) < 9 * len(PODS)
    for orders, pods in ((few, PODS), (many, PODS * 9)):
        total = sum(pods[row].wanted for row in orders.pods)
        assert 1.3 * capacity - 3000 < total <= 1.3 * capacity + 3000
    assert own_orders(NODES, PODS, 3) == few != own_orders(NODES, PODS, 4)
    assert own_orders([*NODES, GpuNode("", 0, 9000, 9)], PODS, 3).nodes == few.nodes


# -- the real data -----------------------------------------------------------------------------------------------


TINY_NODES = "model,gpu,cpu_milli,memory_mib\nT4,2,8000,10\nG2,2,8000,20\n"
TINY_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,0,1,500\nb,1000,3,1,500\nc,1000,1,0,0\n"
TINY_MEANS = "trace,policy,arrived_pct,metric,mean,sd\n" + "".join(
    f"tiny,{policy},100,{metric},50,50\n" for policy in POLICIES for metric in Shares._fields
)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder with two nodes and a list of three pods, of which means of ten runs are known, and no orders."""
    for name, text in (
        ("openb_node_list_all_node.csv", TINY_NODES),
        ("openb_pod_list_tiny.csv", TINY_PODS),
        ("expected.csv", TINY_MEANS),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_processes_make_the_table_of_one_process(tiny: Path) -> None:
    told: list[tuple[int, int]] = []
    found = reproduce(tiny, "usual", 2, lambda done, total: told.append((done, total)))
    assert found == reproduce(tiny)
    assert [cell.row for cell in found.cells[::3]] == [f"tiny mean of 10 {policy}" for policy in POLICIES]
    assert found.simulations == 60
    assert told == [(done, 60) for done in range(10, 61, 10)]


def test_all_runs_are_ten_of_each_list_and_policy(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with published orders are compared one by one, and count for the means, too."""
    (tiny / "orders").mkdir()
    for number, pods in ((42, "0 1 2"), (43, "2 1 0")):
        (tiny / "orders" / f"tiny-{number}.txt.gz").write_bytes(gzip.compress(f"nodes 0 1\npods {pods}\n".encode()))
    keys = [
        f"tiny,{number},{policy},{metric}" for number in (42, 43) for policy in POLICIES for metric in Shares._fields
    ]
    columns = ",".join(map(str, PERCENTS))
    values = "\n".join(f"{key}{',50' * len(PERCENTS)}" for key in keys)
    (tiny / "runs.csv").write_text(f"trace,seed,policy,metric,{columns}\n{values}\n")
    made: list[tuple[str, tuple[int, ...]]] = []

    def run_once(_nodes: object, _pods: object, policy: str, orders: Orders, seed: int) -> Curve:
        made.append((policy, tuple(orders.pods)))
        return Curve({percent: Shares(50, 50, seed) for percent in PERCENTS}, [], "digest")

    monkeypatch.setattr(fgd, "run_once", run_once)
    found = reproduce(tiny, "all")
    assert Counter(policy for policy, _ in made) == dict.fromkeys(POLICIES, 10)
    published = {(policy, order) for policy in POLICIES[1:] for order in ((0, 1, 2), (2, 1, 0))}
    assert {(policy, order) for policy, order in made if len(order) == 3} == published
    assert found.simulations == 60
    assert Counter(cell.row.partition(" mean")[1] for cell in found.cells) == {"": 2 * 5 * 3 * 7, " mean": 6 * 3}
    assert {cell.got for cell in found.cells if "mean" in cell.row and "of_idle" in cell.column} == {4.5}  # of all ten
    assert reproduce(tiny).simulations == 2 * 5 + 10


@pytest.mark.nightly
@pytest.mark.skipif(
    not compiled, reason="five runs take minutes on plain Python; two are compared decision by decision"
)
def test_a_small_part_of_the_table_agrees_in_every_cell(openb: Path) -> None:
    told: list[tuple[int, int]] = []
    found = reproduce(openb, "small", 2, lambda done, total: told.append((done, total)))
    assert [cell for cell in found.cells if not cell.agrees] == []
    assert (len(found.cells), found.simulations) == (5 * 3 * 7, 5)
    assert told == [(done, 5) for done in range(1, 6)]
    assert {file.name for file in found.data} >= {"default-42.txt.gz", "runs.csv", "openb_pod_list_default.csv"}


@pytest.mark.gate
@pytest.mark.parametrize("policy", ["FGD", "GpuPacking"])
def test_every_decision_of_a_published_run_is_made_again(openb: Path, policy: str) -> None:
    nodes, pods = read_nodes(openb / "openb_node_list_all_node.csv"), read_pod_list(openb, "default")
    orders = read_orders(openb / "orders" / "default-42.txt.gz", nodes=len(nodes), pods=len(pods.pods))
    curve = run_once(nodes, pods, policy, orders, 0)
    made = [
        "-" if one is None else f"{orders.nodes[one.node]} {','.join(map(str, one.devices))}".rstrip()
        for one in curve.placed
    ]
    assert (
        made
        == gzip.decompress((openb / "decisions" / f"default-42-{policy}.txt.gz").read_bytes()).decode().split("\n")[:-1]
    )


@pytest.mark.gate
@pytest.mark.skipif(not compiled, reason="that the comparison bites is shown once, on the compiled core")
def test_ties_broken_by_the_order_of_the_file_give_other_values(openb: Path) -> None:
    """The comparison bites: with nodes in the order of the file FGD no longer has the published value at 100 %."""
    nodes, pods = read_nodes(openb / "openb_node_list_all_node.csv"), read_pod_list(openb, "cpu250")
    orders = read_orders(openb / "orders" / "cpu250-42.txt.gz", nodes=len(nodes), pods=len(pods.pods))
    curve = run_once(nodes, pods, "FGD", Orders(sorted(orders.nodes), orders.pods), 0)
    assert abs(curve.shares[100].gpu_allocated_pct - 93.20) > 0.5


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "openb_node_list_all_node.csv",
            None,
            "openb_node_list_all_node.csv: no such file; give the folder of the openb",
        ),
        (
            "openb_node_list_all_node.csv",
            "model,cpu_milli,memory_mib,gpu\n,1000,10,0\n",
            "gpu: no node has GPUs; github",
        ),
        ("expected.csv", None, "expected.csv: no such file; " + DATA_SOURCE[:40]),
        ("runs.csv", "trace,seed\n", "runs.csv:1: no column 'policy'; there are trace, seed"),
        ("openb_pod_list_default.csv", None, "openb_pod_list_default.csv: no such file"),
    ],
)
def test_a_folder_that_lacks_something_is_refused_with_the_file(
    openb: Path, tmp_path: Path, name: str, text: str | None, complaint: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for file in ("openb_node_list_all_node.csv", "openb_pod_list_default.csv", "expected.csv", "runs.csv"):
        shutil.copyfile(openb / file, folder / file)
    (folder / "orders").mkdir()
    shutil.copyfile(openb / "orders" / "default-42.txt.gz", folder / "orders" / "default-42.txt.gz")
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(WorkloadError) as refusal:
        reproduce(folder, "small")
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nodes 0 1\n", "o.txt.gz:2: must begin with the word pods"),
        ("nodes 0 1\npods 0 7\n", "o.txt.gz:2: '7' is no row of the list of pods, which has 3"),
        ("nodes 0 0\npods 0\n", "o.txt.gz:1: a node is there twice"),
        ("nodes 0 -1\npods 0\n", "o.txt.gz:1: '-1' is no row"),
        ("", "o.txt.gz:1: must begin with the word nodes"),
        (None, "o.txt.gz: not a readable gzip file of numbers"),
    ],
)
def test_orders_that_are_none_are_refused_with_their_line(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "o.txt.gz"
    path.write_bytes(b"no gzip" if text is None else gzip.compress(text.encode()))
    with pytest.raises(WorkloadError) as refusal:
        read_orders(path, nodes=2, pods=3)
    assert complaint in str(refusal.value)
