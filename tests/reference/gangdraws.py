"""Gangs without placeholders in random clusters, and the nodes held for them, as the comparison sees them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from licorne.si.messages import Allocation, Input
from reference.atomic import FOREVER, GROUPS_TAG
from reference.model import Partition
from reference.sums import Sums

if TYPE_CHECKING:
    from reference.cluster import ReferenceCluster
    from reference.clusters import Manager, Scenario

UNLIMITED = (1 << 63) - 1


def gang(scenario: Scenario, manager: Manager, partition: Partition) -> list[Input]:
    """A gang with most of its asks, rather all alike; some bad ones."""
    rng = scenario.rng
    groups = {f"t{number}": rng.randint(1, 4) for number in range(rng.choice([1, 1, 2]))}
    add = scenario._app_add(manager, partition)
    add.application_id = scenario._name("gang")
    text = [{"name": n, "minMember": m, "minResource": {"cpu": f"{rng.randint(1, 3)}m"}} for n, m in groups.items()]
    if rng.random() < 0.05:
        text[0]["minMember"] = 0
    add.tags = add.tags | {GROUPS_TAG: json.dumps(text)}
    how = rng.choice(["atomic"] * 9 + ["default"])
    if how:
        add.tags = add.tags | {"gang.scheduling": how}
    if rng.random() < 0.05:
        del add.tags[GROUPS_TAG]
    found: list[Input] = [add]
    alike = {"vcore": rng.randint(1, 5)}
    all_alike = rng.random() < 0.6
    for name, members in groups.items():
        found += [
            _member(scenario, partition, add.application_id, name, alike if all_alike else None)
            for _ in range(members - (rng.random() < 0.2) + (rng.random() < 0.1))
        ]
    return found


def latecomers(scenario: Scenario, manager: Manager, partition: Partition) -> list[Input]:
    """Asks for gangs that wait, and short work beside them."""
    rng = scenario.rng
    found: list[Input] = []
    for app in partition.apps.values():
        if app.atomic is not None and rng.random() < 0.5:
            found.append(_member(scenario, partition, app.id, rng.choice([*app.atomic.needs, "other", ""]), None))
        elif rng.random() < 0.4:
            short = _member(scenario, partition, app.id, "", None)
            short.timeout_ms = rng.choice([1000, 3000, 20000])
            found.append(short)
    if rng.random() < 0.3:  # what may run in front of a gang
        add = scenario._app_add(manager, partition)
        found = [add, *(_member(scenario, partition, add.application_id, "", {"vcore": 1}) for _ in range(4))]
    return found[:5]


def busy(scenario: Scenario, manager: Manager, partition: Partition) -> list[Input]:
    """Fill nodes nearly with work that ends at known times, then add a gang, and small work after it."""
    rng = scenario.rng
    known = rng.random() < 0.8
    sums = Sums(partition)
    filler = scenario._app_add(manager, partition)
    filler.application_id = scenario._name("busy")
    found: list[Input] = [filler]
    for node in partition.nodes.values():
        free = sums.free(node).get("vcore", 0)
        if free >= 3:
            work = _member(scenario, partition, filler.application_id, "", {"vcore": free - rng.randint(1, 2)})
            work.node_id = node.id
            work.timeout_ms = rng.choice([5000, 9000, 40000]) if known or rng.random() < 0.7 else 0
            found.append(work)
    add = scenario._app_add(manager, partition)
    add.application_id = scenario._name("gang")
    members, size = rng.randint(1, 3), rng.randint(3, 6)
    text = [{"name": "t", "minMember": members, "minResource": {"cpu": "1m"}}]
    add.tags = add.tags | {GROUPS_TAG: json.dumps(text), "gang.scheduling": "atomic"}
    found.append(add)
    alike = rng.random() < 0.6
    for _ in range(members):
        amounts = {"vcore": size if alike else rng.randint(1, 6)}
        found.append(_member(scenario, partition, add.application_id, "t", amounts))
    small = scenario._app_add(manager, partition)
    small.application_id = scenario._name("small")
    found.append(small)
    for _ in range(rng.randint(1, 4)):
        ask = _member(scenario, partition, small.application_id, "", {"vcore": rng.choice([1, 1, 2])})
        ask.timeout_ms = rng.choice([0, 2000, 5000, 20000])
        found.append(ask)
    return found


def _member(
    scenario: Scenario, partition: Partition, app: str, group: str, amounts: dict[str, int] | None
) -> Allocation:
    rng = scenario.rng
    return Allocation(
        key=scenario._name("member"),
        application_id=app,
        partition=partition.name,
        resource=dict(amounts or scenario._amounts()),
        task_group=group,
        priority=rng.choice([0, 0, 0, 1]),
        timeout_ms=rng.choice([0, 0, 5000, 30000]),
    )


# -- what both hold ----------------------------------------------------------------------------------------


def held_by_product(cluster: Any) -> dict[str, list[str]]:
    """The gang that holds nodes, the nodes, and the start that it is planned for."""
    return {
        f"{p.owner}/{p.name} hold": [hold.app.id, *sorted(node.id for node in hold.nodes), _start(hold.plan.last[0])]
        for p in cluster.partitions()
        if (hold := p.atomic.backfill.hold) is not None
    }


def held_by_reference(cluster: ReferenceCluster) -> dict[str, list[str]]:
    """The same."""
    return {
        f"{rm}/{name} hold": [hold.app.id, *sorted(node.id for node in hold.nodes), _start(hold.last[0])]
        for rm, partitions in cluster.managers.items()
        for name, partition in partitions.items()
        if (hold := partition.atomic.hold) is not None
    }


def _start(moment: int) -> str:
    return "?" if moment in (FOREVER, UNLIMITED) else str(moment)
