"""Tight clusters for gangs of different members, and an exact solver that tells which of the gangs fit."""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any, NamedTuple

from gangs_atomic.helpers import GangBench, task_groups
from licorne.si.messages import Allocation

SMALL = 8
"""Members of the largest gang of which none may be missed."""
KINDS = ("vcore", "memory", "pods", "idle GPUs")
Amounts = dict[str, int]


class Case(NamedTuple):
    """Nodes and members, each as amounts; `fits` says whether all members fit."""

    kind: str
    nodes: list[Amounts]
    members: list[Amounts]
    fits: bool


def drawn(seed: int, *, large: bool = False) -> Case:
    """Cut nodes into members, so that little or nothing is left; a small gang may then have one more than fits."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    types = ["vcore"] if kind == "vcore" or (kind != "memory" and rng.random() < 0.5) else ["vcore", "memory"]
    while True:
        cut = [
            [{t: rng.randint(1, 9) for t in types} for _ in range(rng.randint(1, 4))] for _ in range(rng.randint(2, 6))
        ]
        slack = rng.choice([0, 0, 1])
        nodes = [{t: sum(m[t] for m in on) + rng.randint(0, slack) for t in types} for on in cut]
        members = [member for on in cut for member in on]
        if len({*map(str, members)}) > 1 and (len(members) > SMALL) is large and len(members) <= 2 * SMALL:
            break
    rng.shuffle(members)
    if not large and rng.random() < 0.3:
        members[0] = {t: amount + 1 for t, amount in members[0].items()}
    for number, node in enumerate(nodes):
        if kind in KINDS[2:]:
            node["pods"] = 110
        if kind == "idle GPUs" and number % 2:
            node["gpu"] = 8
    if kind in KINDS[2:]:
        members = [member | {"pods": 1} for member in members]
    return Case(kind, nodes, members, large or solvable(nodes, members))


def solvable(nodes: list[Amounts], members: list[Amounts]) -> bool:
    """Tell whether all members fit: node after node takes each set of members that it has room for."""
    full = (1 << len(members)) - 1
    sums: list[Amounts] = [{}]
    for taken in range(1, full + 1):
        low = taken & -taken
        one, rest = members[low.bit_length() - 1], sums[taken ^ low]
        sums.append({t: one[t] + rest.get(t, 0) for t in one})
    reached = {0}
    for node in nodes:
        on = [taken for taken in range(full + 1) if all(node.get(t, 0) >= a for t, a in sums[taken].items())]
        reached = {before | taken for before in reached for taken in on if not before & taken}
    return full in reached


def placed(case: Case) -> bool:
    """Tell whether licorne starts the gang: with all members, and nothing else."""
    b = GangBench()
    for number, node in enumerate(case.nodes):
        named: dict[str, Any] = {**node}
        b.node(f"n{number}", **named)
    b.add("g", task_groups(w=len(case.members)))
    for number, member in enumerate(case.members):
        b.send(Allocation(key=f"g{number}", application_id="g", resource=member, task_group="w"))
    found = len(b.run().split())
    assert found in (0, len(case.members)), f"{found} of {len(case.members)} members: {case}"
    return found > 0


def check(seed: int) -> None:
    """Compare licorne with the exact solver on one small gang."""
    case = drawn(seed)
    assert placed(case) is case.fits, f"seed {seed}: {case}"


def misses(first: int, count: int, *, large: bool) -> tuple[Counter[str], Counter[str]]:
    """Return by kind how many of the gangs fit, and how many of these do not start."""
    fit: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for seed in range(first, first + count):
        case = drawn(seed, large=large)
        if case.fits:
            fit[case.kind] += 1
            missed[case.kind] += not placed(case)
    return fit, missed


if __name__ == "__main__":
    for size in (False, True):
        sys.stdout.write(f"{misses(int(sys.argv[1]), int(sys.argv[2]), large=size)}\n")
