"""The six published orders of nodes: their examples, and choices against a loop over all nodes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.core.nodes.devices import Demand
from licorne.lab.papers.fgd import read_pod_list
from licorne.lab.papers.fragmentation import Fragmentation, Shape, typical_shapes
from licorne.lab.papers.node_orders import (
    POLICIES,
    Chosen,
    LeastFragmentation,
    Machine,
    Score,
    best_fit,
    dot_product,
    gpu_clustering,
    gpu_packing,
    node_order,
)

SHARE, WHOLE_4 = 1, 1 << 4
SCORES: dict[str, Score] = {
    "DotProd": dot_product,
    "GpuClustering": gpu_clustering,
    "GpuPacking": gpu_packing,
    "BestFit": best_fit,
}


def machine(model: str, cpu: int, free: list[int], classes: int = 0) -> Machine:
    return Machine(model, cpu, 1 << 20, free, classes=classes)


NODES = {
    "A": machine("G2", 90_000, [540, *[1000] * 7], SHARE),
    "B": machine("G2", 96_000, [1000] * 8),
    "C": machine("T4", 8_000, [460, 1000], SHARE),
    "D": machine("P100", 4_000, [0, 1000], WHOLE_4),
    "E": machine("V100M16", 32_000, [300, 1000, 1000, 1000], SHARE | WHOLE_4),
    "H": machine("A10", 128_000, [1000]),
}
SHAPES = {
    "share": Shape(4000, Demand(1, 460), ""),
    "one": Shape(8000, Demand(1, 1000), ""),
    "two": Shape(16000, Demand(2, 1000), ""),
    "none": Shape(2000, Demand(0, 0), ""),
}
EXAMPLES = [
    # pod, policy, numbers of A, B, C, D, E, H; None: does not fit (docs/spec/experiments.md, B.6)
    ("share", "DotProd", (96, 95, 99, 99, 98, 98)),
    ("share", "GpuClustering", (76, 25, 95, 21, 64, 46)),
    ("share", "GpuPacking", (95, 25, 96, 49, 49, 32)),
    ("share", "BestFit", (22, 16, 92, 96, 71, 48)),
    ("share", "FGD", (58, 42, 57, 54, 42, 42)),
    ("one", "DotProd", (91, 91, 98, None, 96, 96)),
    ("one", "GpuPacking", (49, 25, 49, None, 49, 32)),
    ("one", "BestFit", (27, 21, 97, None, 76, 53)),
    ("one", "FGD", (53, 53, 63, None, 52, 53)),
    ("two", "DotProd", (83, 82, None, None, 93, None)),
    ("two", "GpuClustering", (1, 25, None, None, 14, None)),
    ("two", "GpuPacking", (48, 25, None, None, 48, None)),
    ("two", "BestFit", (36, 31, None, None, 85, None)),
    ("two", "FGD", (56, 56, None, None, 55, None)),
    ("none", "DotProd", (99, 99, 99, 99, 99, 99)),
    ("none", "GpuClustering", (0, 0, 0, 0, 0, 0)),
    ("none", "GpuPacking", (0, 0, 0, 0, 0, 0)),
    ("none", "BestFit", (18, 13, 88, 92, 67, 44)),
    ("none", "FGD", (50, 50, 47, 42, 50, 50)),
]


@pytest.mark.parametrize(("pod", "policy", "expected"), EXAMPLES)
def test_the_published_examples(openb: Path, pod: str, policy: str, expected: tuple[int | None, ...]) -> None:
    fragmentation = Fragmentation(read_pod_list(openb, "default").typical)
    score = SCORES.get(policy) or LeastFragmentation(fragmentation)
    for name, number in zip(NODES, expected, strict=True):
        node = NODES[name]
        node.level = fragmentation.level(node.cpu)
        if number is not None:
            assert score(node, SHAPES[pod]) == number, f"{policy} on {name}"


def test_clustering_keeps_classes_together() -> None:
    """A node with the class alone comes before a mixed one, that before one without GPU pods, and others come last."""
    four = Shape(1000, Demand(4, 1000), "")
    bases = [
        gpu_clustering(machine("G2", 9000, [1000] * 8, classes), four)
        for classes in (WHOLE_4, WHOLE_4 | SHARE, 0, SHARE)
    ]
    assert bases == [75, 50, 25, 0]


# -- choices -----------------------------------------------------------------------------------------------------

pods = st.lists(
    st.tuples(
        st.builds(
            Shape,
            cpu=st.sampled_from([1000, 2000, 4000]),
            devices=st.sampled_from([0, 200, 460, 500, 999, 1000, 2000]).map(Demand.of),
            spec=st.sampled_from(["", "", "T4", "T4|G2"]),
        ),
        st.sampled_from([0, 10, 60]),
    ),
    min_size=1,
    max_size=25,
)
machines = st.lists(
    st.tuples(
        st.sampled_from(["T4", "G2"]), st.sampled_from([4000, 8000]), st.sampled_from([50, 100]), st.integers(0, 3)
    ),
    min_size=1,
    max_size=5,
)


def fitting(nodes: list[Machine], shape: Shape, memory: int) -> list[int]:
    number, each = shape.devices
    return [
        at
        for at, node in enumerate(nodes)
        if node.cpu >= shape.cpu
        and node.memory >= memory
        and (not shape.spec or node.model in shape.spec.split("|"))
        and sum(left >= each for left in node.free) >= number
    ]


def naive_fgd(typical: Fragmentation, node: Machine, shape: Shape) -> tuple[int, tuple[int, ...]]:
    """Try every device, and return the best number and the devices; the lowest index of equal ones."""
    before = typical.of(node.model, typical.level(node.cpu), tuple(sorted(node.free)))
    number, each = shape.devices
    if not number or each == 1000:
        options = [tuple(index for index, left in enumerate(node.free) if left == 1000)[:number]]
    else:
        options = [(index,) for index, left in enumerate(node.free) if left >= each]
    best: tuple[int, tuple[int, ...]] = (-1, ())
    for option in options:
        after = sorted(left - each * (index in option) for index, left in enumerate(node.free))
        score = LeastFragmentation._score(
            before, typical.of(node.model, typical.level(node.cpu - shape.cpu), tuple(after))
        )
        if score > best[0]:
            best = score, option
    return best


@given(machines, pods, st.sampled_from(POLICIES), st.integers(0, 9))
def test_a_choice_is_the_earliest_best_of_all_nodes_that_fit(
    given_nodes: list[tuple[str, int, int, int]], given_pods: list[tuple[Shape, int]], policy: str, seed: int
) -> None:
    """Numbers kept from earlier pods are those that a loop over all nodes computes now."""
    nodes = [Machine(model, cpu, memory, [1000] * devices) for model, cpu, memory, devices in given_nodes]
    typical = Fragmentation(typical_shapes(shape for shape, _ in given_pods))
    for node in nodes:
        node.level = typical.level(node.cpu)
    order = node_order(policy, nodes, typical, Random(seed))
    for shape, memory in given_pods:
        chosen = order.choose(shape, memory)
        fits = fitting(nodes, shape, memory)
        assert (chosen is None) == (not fits)
        if chosen is None:
            continue
        node = nodes[chosen.node]
        number, each = shape.devices
        assert len(chosen.devices) == number
        assert all(node.free[index] >= each for index in chosen.devices)
        if policy == "Random":
            assert chosen.node in fits
        elif policy == "FGD":
            scores = [naive_fgd(typical, nodes[at], shape) for at in fits]
            best = max(score for score, _ in scores)
            at = next(place for place, (score, _) in enumerate(scores) if score == best)
            assert chosen == Chosen(fits[at], scores[at][1])
        else:
            assert chosen.node == max(fits, key=lambda at: (SCORES[policy](nodes[at], shape), -at))
            if number and each < 1000:
                least = min(left for left in node.free if left >= each)
                assert chosen.devices == (node.free.index(least),)
        node.take(shape, memory, chosen.devices)
        node.level = typical.level(node.cpu)
        order.changed(chosen.node)


def test_random_takes_every_node_and_device_that_fits() -> None:
    shape = Shape(1, Demand(1, 300), "")
    found = set()
    for seed in range(200):
        nodes = [Machine("T4", 9, 9, [1000, 1000]) for _ in range(3)]
        found.add(node_order("Random", nodes, Fragmentation([]), Random(seed)).choose(shape, 0))
    assert found == {Chosen(node, (device,)) for node in range(3) for device in range(2)}
