"""What a scheduler has, reported to a new one, gives the new one the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from core.test_restart import CONFIG, SETTINGS, Program, later, waiting, work
from determinism.history import History
from licorne import SchedulerAPI
from licorne.core.inspection.reported import report
from licorne.si import messages, v19
from licorne.si.constants import FOREIGN_STATIC, TAG_FOREIGN
from seeds import some_seeds


def picture(api: SchedulerAPI) -> dict[str, Any]:
    """Return what messages can say of a scheduler's partition."""
    partition = api.cluster.partition("rm")
    return {
        "nodes": {
            node.id: (
                bool(node.schedulable),
                node.attributes,
                node.capacity.named(partition.types),
                node.occupied.named(partition.types),
                node.allocated.named(partition.types),
            )
            for node in partition.nodes.values()
        },
        "applications": {
            app.id: (
                app.queue.path,
                app.user,
                app.groups,
                sorted(
                    (one.key, one.id, one.node.id if one.node else "", one.priority, one.placeholder)
                    for one in app.allocations.values()
                ),
                sorted((ask.key, ask.priority, ask.repeats, ask.shape.resource) for ask in app.asks.values()),
            )
            for app in partition.applications.values()
        },
        "foreign": {key: (foreign.node.id, foreign.tags) for key, foreign in partition.foreign.items()},
    }


@pytest.mark.parametrize("steps", [50, 150, 300])
def test_a_history_is_reported_whole(steps: int) -> None:
    history = History(False)
    for _ in range(steps):
        history.step()
    there = history.api.cluster.partition("rm")
    new = SchedulerAPI(on_output=lambda *_: None)
    new.register_resource_manager(
        v19.RegisterResourceManagerRequest(rm_id="rm", config=history.api.cluster.managers["rm"].configuration.text),
        now_ns=history.now,
    )
    new.submit("rm", list(report(there)), now_ns=history.now)
    new.validate()
    assert picture(new) == picture(history.api)
    assert any(app.allocations for app in there.applications.values())


def test_nodes_that_drain_other_programs_and_gangs_are_reported() -> None:
    told = Program()
    told.api.submit(
        "rm",
        [
            messages.NodeUpdate(node_id="n1", action=messages.NodeAction.CREATE, capacity={"vcore": 9000}),
            messages.NodeUpdate(
                node_id="n2",
                action=messages.NodeAction.CREATE_DRAIN,
                capacity={"vcore": 4000},
                attributes={"zone": "a"},
                occupied={"vcore": 7},
            ),
            messages.Allocation(
                key="daemon", node_id="n1", tags={TAG_FOREIGN: FOREIGN_STATIC}, resource={"vcore": 100}
            ),
            messages.AddApplication(
                application_id="gang",
                queue="root.fifo",
                user="u",
                execution_timeout_ms=60_000,
                placeholder_ask={"vcore": 4000},
                gang_style="Hard",
            ),
            *(
                messages.Allocation(
                    key=f"ph{number}",
                    application_id="gang",
                    resource={"vcore": 2000},
                    task_group="g",
                    placeholder=True,
                )
                for number in range(2)
            ),
        ],
        now_ns=told.now,
    )
    told.pods.update({f"ph{number}": v19.Allocation(allocation_key=f"ph{number}") for number in range(2)})
    told.schedule()
    new = SchedulerAPI(on_output=lambda *_: None)
    request = v19.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG, extra_config=SETTINGS)
    new.register_resource_manager(request, now_ns=told.now)
    new.submit("rm", list(report(told.api.cluster.partition("rm"))), now_ns=told.now)
    new.validate()
    assert picture(new) == picture(told.api)
    gang = new.cluster.partition("rm").applications["gang"].gang
    assert gang is not None
    assert (gang.hard, gang.timeout_ns, gang.placed) == (True, 60 * 10**9, 2)


@pytest.mark.parametrize("seed", some_seeds("LICORNE_RESTART_SEED", 3))
def test_with_its_ages_the_same_is_decided(seed: int) -> None:
    program, other = Program(), Program()
    work(random.Random(seed), program)
    work(random.Random(seed), other)
    kept, there = other.api.ages("rm"), list(report(other.api.cluster.partition("rm")))
    other.start()
    other.api.submit("rm", there, now_ns=other.now)
    other.api.restore_ages("rm", kept, now_ns=other.now)
    assert waiting(other) == waiting(program)
    assert later(random.Random(seed + 1), other) == later(random.Random(seed + 1), program)
