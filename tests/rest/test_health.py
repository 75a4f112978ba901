"""The health checks: names and texts of the original; each of them finds a planted fault, and recovers.

Source: docs/spec/rest-api.md, "Health".
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from common.waiting import eventually
from licorne.host.web import health, monitor
from licorne.host.web.settings import WebSettings
from licorne.si.messages import NodeAction, NodeUpdate
from rest.world import World, busy, run
from seeds import some_seeds

PATH = "/ws/v1/scheduler/healthcheck"
FINE = [
    ("Scheduling errors", "There were 0 scheduling errors logged in the metrics"),
    ("Failed nodes", "There were 0 failed nodes logged in the metrics"),
    ("Negative resources", "Partitions with negative resources: []"),
    ("Negative resources", "Nodes with negative resources: []"),
    ("Consistency of data", "Partitions with inconsistent data: []"),
    ("Consistency of data", "Nodes with inconsistent data: []"),
    ("Reservation check", "Reservation/node nr ratio: [0.000000]"),
    ("Orphan allocation on node check", "Orphan allocations: []"),
    ("Orphan allocation on app check", "OrphanAllocations: []"),
    ("Invariants", "Contradictions: []"),
]


def check(world: World) -> Any:
    run(world.monitor.check_health())
    return world.get(PATH)


def failed(found: Any) -> list[str]:
    return [row["Name"] for row in found["HealthChecks"] if not row["Succeeded"]]


def test_a_sound_scheduler_is_healthy() -> None:
    found = check(busy())
    assert list(found) == ["Healthy", "HealthChecks"]
    assert found["Healthy"] is True
    assert list(found["HealthChecks"][0]) == ["Name", "Succeeded", "Description", "DiagnosisMessage"]
    assert [(row["Name"], row["DiagnosisMessage"]) for row in found["HealthChecks"]] == FINE


def test_a_check_that_fails_by_itself_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy()
    sound, seen = health.run, []

    def broken(*given: Any) -> Any:
        seen.append(given)
        if len(seen) == 1:
            raise KeyError("a bug")
        return sound(*given)

    monkeypatch.setattr(health, "run", broken)
    monkeypatch.setattr(monitor, "TICK_S", 0.001)
    world.monitor._health_interval_s = 0.001

    async def story() -> None:
        watching = asyncio.create_task(world.monitor.run())
        await eventually(lambda: world.monitor.health is not None)
        watching.cancel()

    run(story())
    assert world.monitor.errors == 1
    assert world.get(PATH)["HealthChecks"]


def test_no_result_exists_before_the_first_run() -> None:
    assert busy().get(PATH, 404)["message"] == "Health check is not available"


def test_no_result_is_left_once_the_checks_are_switched_off() -> None:
    world = busy()
    assert check(world)["Healthy"]
    world.monitor.retune(WebSettings(health_interval_s=0))
    assert world.get(PATH, 404)["message"] == "Health check is not available"
    run(world.monitor.check_health())  # one that was under way when they were switched off
    assert world.get(PATH, 404)
    world.monitor.retune(WebSettings())
    assert check(world)["Healthy"]


def _partition(world: World) -> Any:
    return world.api.cluster.partition("mycluster")


def _orphan_on_node(world: World) -> None:
    _partition(world).applications["app-1"].allocations.clear()


def _orphan_on_app(world: World) -> None:
    _partition(world).nodes["n1"].allocations.clear()


def _lost_capacity(world: World) -> None:
    _partition(world).total.minus(_partition(world).nodes["n1"].capacity)


def _lost_free(world: World) -> None:
    _partition(world).nodes["n1"].free.minus(_partition(world).nodes["n2"].capacity)


def _engine(world: World) -> None:
    world.monitor.failed()


FAULTS: list[tuple[Callable[[World], None], list[str]]] = [
    (_orphan_on_node, ["Orphan allocation on node check", "Invariants"]),
    (_orphan_on_app, ["Orphan allocation on app check", "Invariants"]),
    (_lost_capacity, ["Consistency of data", "Invariants"]),
    (_lost_free, ["Consistency of data", "Invariants"]),
    (_engine, ["Scheduling errors"]),
]


@pytest.mark.parametrize(("fault", "names"), FAULTS)
def test_a_planted_fault_is_found(fault: Callable[[World], None], names: list[str]) -> None:
    world = busy()
    fault(world)
    found = check(world)
    assert found["Healthy"] is False
    assert failed(found) == names


def test_a_contradiction_that_is_gone_is_healthy_again() -> None:
    world = busy()
    partition = _partition(world)
    node = partition.nodes["n1"]
    for part in (partition.total, node.free):
        part.minus(node.capacity)
        assert check(world)["Healthy"] is False
        part.plus(node.capacity)
        found = check(world)
        assert (found["Healthy"], failed(found)) == (True, [])


def test_a_healed_fault_is_healthy_again() -> None:
    world = busy()
    world.monitor.failed()
    world.monitor.counts.nodes_refused += 2
    assert failed(check(world)) == ["Scheduling errors", "Failed nodes"]
    assert check(world)["Healthy"] is True


def test_the_scheduler_goes_on_between_the_steps() -> None:
    """Whatever happens between two steps, a healthy scheduler is found healthy."""
    world = busy()
    steps = health.run(world.backend, 0, 0)
    result = None
    for number, step in enumerate(steps):
        result = step
        if step is None and number < 20:
            world.ask(f"s{number}", "app-1", vcore=1)
            world.schedule(0.1)
            if number == 3:
                world.release("k1", "app-1")
            if number == 5:
                world.application("new", "root.b.other").ask("n", "new", vcore=1)
    assert result is not None
    assert result.healthy, result


@pytest.mark.parametrize("seed", some_seeds("LICORNE_HEALTH_SEED", 5))
def test_much_may_happen_between_any_two_steps(seed: int) -> None:
    """Nodes come and go, asks that fit nowhere make shapes fail, others are placed and released."""
    world, rng = busy(), random.Random(seed)
    for number in range(40):
        world.node(f"m{number}", vcore=1000, memory=1000 + number)
    steps, last = 0, None
    for result in health.run(world.backend, 0, 0):
        steps, last = steps + 1, result
        match rng.randrange(8):
            case 0:
                world.node(f"s{steps}", vcore=rng.randrange(1, 3000))
            case 1:
                node = rng.choice(sorted(_partition(world).nodes))
                world.submit(NodeUpdate(node_id=node, action=NodeAction.DECOMISSION))
            case 2 | 3:
                world.ask(f"s{steps}", rng.choice(("app-1", "app-2")), vcore=rng.choice((1, 900, 2500, 50_000)))
            case 4:
                world.release(f"s{rng.randrange(steps)}", rng.choice(("app-1", "app-2")))
            case _:
                world.schedule(rng.random())
    assert steps > 120  # each node three times
    assert last is not None
    assert last.healthy, last


def test_a_large_partition_is_not_checked_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "WHOLE_MAX", 1)
    message = check(busy())["HealthChecks"][-1]["DiagnosisMessage"]
    assert message == "Contradictions: []; too large to be checked as a whole: [[mycluster]default]"
