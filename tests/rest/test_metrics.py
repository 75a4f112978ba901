"""Metrics: names, labels, help texts and when each one moves (docs/spec/metrics.md)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from common import virtual
from licorne.host.web import monitor
from licorne.host.web.figures import metrics, queue_figures
from licorne.host.web.figures.metric_texts import QUEUE_CONTAINER_HELP
from licorne.si.messages import Allocation, NodeAction, NodeUpdate, RemoveApplication
from rest.world import World, busy, run

SCHEDULER = "yunikorn_scheduler_"
# Of each metric of the original: its type, and the names of its labels (docs/spec/metrics.md, sections 1 to 3).
ORIGINAL = [
    ("container_allocation_attempt_total", "counter", ("state",)),
    ("application_submission_total", "counter", ("result",)),
    ("application_total", "gauge", ("state",)),
    ("node", "gauge", ("state",)),
    ("scheduling_latency_milliseconds", "histogram", ()),
    ("scheduling_cycle_milliseconds", "histogram", ()),
    ("node_sorting_latency_milliseconds", "histogram", ("level",)),
    ("trynode_latency_milliseconds", "histogram", ()),
    ("trynode_evaluation_milliseconds", "histogram", ()),
    ("trypreemption_latency_milliseconds", "histogram", ()),
    ("memory_node_usage_total", "gauge", ("range",)),
    ("nvidia_com_gpu_node_usage_total", "gauge", ("range",)),
]

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(world: World) -> Samples:
    answer = world.request("GET", "/ws/v1/metrics")
    assert not world.failures, world.failures
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    text = re.sub(r"(# TYPE \S+(?<!_total)) counter", r"\1 gauge", answer.text)  # else the parser adds `_total`
    families = text_string_to_metric_families(text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, tuple(sorted(labels.items()))))


def values(found: Samples, name: str, label: str, **labels: str) -> Mapping[str, float]:
    """The values of a metric by one label."""
    return {
        dict(of)[label]: number
        for (metric, of), number in found.items()
        if metric == name and label in dict(of) and labels.items() <= dict(of).items()
    }


@pytest.mark.parametrize(("name", "kind", "labels"), ORIGINAL)
def test_metrics_of_the_original(name: str, kind: str, labels: tuple[str, ...]) -> None:
    world = busy().node("gpu", {}, **{"nvidia.com/gpu": 4})
    text = world.request("GET", "/ws/v1/metrics").text
    assert f"# TYPE {SCHEDULER}{name} {kind}\n" in text
    assert f"# HELP {SCHEDULER}{name} " in text
    found = scrape(world)
    sample = SCHEDULER + name + ("_bucket" if kind == "histogram" else "")
    names = {tuple(key for key, _ in of if key != "le") for metric, of in found if metric == sample}
    assert names == {labels}


def test_help_is_to_the_letter() -> None:
    text = World().register().request("GET", "/ws/v1/metrics").text
    attempts = (
        "Total number of attempts to allocate containers. State of the attempt includes `allocated`, `rejected`, "
        "`error`, `released`"
    )
    resources = (
        "Queue resource metrics. State of the resource includes `guaranteed`, `max`, `allocated`, `pending`, "
        "`preempting`, `maxRunningApps`."
    )
    for line in (
        f"# HELP yunikorn_scheduler_container_allocation_attempt_total {attempts}",
        f"# HELP yunikorn_queue_resource {resources}",
        f"# HELP yunikorn_root_a_queue_container {QUEUE_CONTAINER_HELP}",
        "# TYPE yunikorn_root_a_queue_container counter",
        "# TYPE yunikorn_event_total_created counter",
    ):
        assert line in text.splitlines()


def test_every_metric_is_described_once() -> None:
    for old in (False, True):
        world = busy()
        lines = world.metrics(old_queue_names=old).splitlines()
        types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
        assert len(types) == len(set(types))


def test_counters_move_as_in_the_original() -> None:
    world = busy()
    attempts, submissions = SCHEDULER + "container_allocation_attempt_total", SCHEDULER + "application_submission_total"
    found = scrape(world)
    assert values(found, attempts, "state") == {"allocated": 1, "rejected": 0, "error": 0, "released": 0}
    assert values(found, submissions, "result") == {"new": 2, "accepted": 2, "rejected": 0}
    world.release("k1", "app-1").application("bad", user="").ask("x", "nobody", vcore=1)
    found = scrape(world)
    assert values(found, attempts, "state") == {"allocated": 1, "rejected": 1, "error": 1, "released": 1}
    assert values(found, submissions, "result") == {"new": 2, "accepted": 2, "rejected": 1}


def test_applications_by_state() -> None:
    world = busy()
    total = SCHEDULER + "application_total"
    assert values(scrape(world), total, "state")["running"] == 1
    world.release("k2", "app-1").release("k1", "app-1")
    assert values(scrape(world), total, "state")["completing"] == 1
    world.schedule(31.0)
    found = scrape(world)
    states = values(found, total, "state")
    assert (states["running"], states["completing"], states["completed"]) == (0, 0, 1)
    by_queue = values(found, "yunikorn_queue_app", "state", queue="root.a")
    assert (by_queue["completed"], by_queue["running"]) == (1, 0)
    assert values(found, "yunikorn_queue_app", "state", queue="root") == {}


def test_nodes_by_state() -> None:
    world = busy()
    world.submit(NodeUpdate(node_id="n1", action=NodeAction.DRAIN_NODE))
    nodes = values(scrape(world), SCHEDULER + "node", "state")
    assert nodes == {"active": 2, "failed": 0, "draining": 1, "decommissioned": 0}
    world.submit(NodeUpdate(node_id="n1", action=NodeAction.DECOMISSION))
    world.submit(NodeUpdate(node_id="n9", action=NodeAction.CREATE, partition="none"))
    nodes = values(scrape(world), SCHEDULER + "node", "state")
    assert nodes == {"active": 1, "failed": 1, "draining": 0, "decommissioned": 1}


def test_nodes_are_counted_by_ranges_of_usage() -> None:
    world = World().register().application("app", "root.other")
    for number, wanted in enumerate((10, 11, 20, 100, 0)):
        world.node(f"n{number}", vcore=100)
        if wanted:
            world.ask(f"k{number}", "app", vcore=wanted)
            world.schedule()
    usage = values(scrape(world), SCHEDULER + "vcore_node_usage_total", "range")
    assert list(usage) == ["[0,10%]", *(f"({ten}%,{ten + 10}%]" for ten in range(10, 100, 10))]
    assert sum(usage.values()) == 5
    assert usage["(90%,100%]"] == 1


def test_queues() -> None:
    found = scrape(busy())
    resource = "yunikorn_queue_resource"
    assert values(found, resource, "resource", queue="root.a", state="max") == {"memory": 10**11, "vcore": 10_000}
    assert values(found, resource, "resource", queue="root.a", state="maxRunningApps") == {"apps": 5}
    assert values(found, resource, "resource", queue="root", state="maxRunningApps") == {"apps": 0}
    assert values(found, resource, "resource", queue="root", state="pending") == {"memory": 10**6, "vcore": 108_000}
    assert value(found, "yunikorn_root_a_queue_container", state="allocated") == 1
    assert value(found, "yunikorn_root_queue_container", state="released") == 0
    assert values(found, "yunikorn_queue_app", "state", queue="root.a")["running"] == 1


def test_an_application_counts_at_its_own_queue_alone() -> None:
    world = busy()
    for name in ("app-1", "app-2"):
        world.ask(f"{name}-more", name, vcore=1)
    world.schedule()
    found = scrape(world)
    running = values(found, "yunikorn_queue_app", "queue", state="running")
    assert running == {"root.a": 1, "root.b.dyn": 1, "root.other": 0}
    assert values(found, SCHEDULER + "application_total", "state")["running"] == sum(running.values())


def test_a_series_is_zero_when_its_amount_is_gone() -> None:
    world = busy()
    resource = "yunikorn_queue_resource"
    assert values(scrape(world), resource, "resource", queue="root.b.dyn", state="pending") == {"vcore": 100_000}
    world.release("k3", "app-2")
    found = scrape(world)
    assert values(found, resource, "resource", queue="root.b.dyn", state="pending") == {"vcore": 0}
    assert values(found, resource, "resource", queue="root.a", state="pending") == {"memory": 10**6, "vcore": 8000}
    assert values(found, resource, "resource", queue="root.other", state="maxRunningApps") == {"apps": 0}
    world.submit(RemoveApplication(application_id="app-2"))
    world.schedule(20.0)
    scrape(world)
    assert "root.b.dyn" not in world.monitor.counts.shown


def test_series_that_fell_to_zero_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_figures, "ZEROS_MAX", 3)
    world = World().register().application("x", "root.other")
    for number in range(8):
        world.ask(f"k{number}", "x", **{f"type{number}": 1})
        scrape(world)
        world.release(f"k{number}", "x")
    found = values(scrape(world), "yunikorn_queue_resource", "resource", queue="root.other", state="pending")
    assert found == {"type5": 0, "type6": 0, "type7": 0}


def test_asks_of_an_unknown_partition_are_not_counted_as_rejected() -> None:
    world = busy()
    world.submit(Allocation(key="k", application_id="app-1", partition="none", resource={"vcore": 1}))
    assert world.outputs[-1].reason.startswith("Failed to find partition")  # type: ignore[union-attr]
    attempts = SCHEDULER + "container_allocation_attempt_total"
    assert values(scrape(world), attempts, "state")["rejected"] == 0


def test_a_removed_queue_has_no_series_and_its_parents_keep_theirs() -> None:
    world = busy()
    world.submit(RemoveApplication(application_id="app-2"))
    world.application("app-3", "root.b.dyn").ask("k9", "app-3", vcore=1)
    world.schedule()
    world.submit(RemoveApplication(application_id="app-3"))
    before = scrape(world)
    assert value(before, "yunikorn_root_b_dyn_queue_container", state="allocated") == 1
    world.schedule(20.0)
    for _ in range(2):
        found = scrape(world)
        gone = [name for name, of in found if "dyn" in name or ("queue", "root.b.dyn") in of]
        assert gone == []
        for name, made, released in (("root_b", 1, 1), ("root", 2, 1)):
            assert value(found, f"yunikorn_{name}_queue_container", state="allocated") == made
            assert value(found, f"yunikorn_{name}_queue_container", state="released") == released
        world.monitor.counts.forget_removed()
    assert not [key for key in world.monitor.counts.by_queue if key[2] == "root.b.dyn"]


def test_metrics_that_the_original_lacks() -> None:
    world = busy()
    run(world.monitor.count_parked())
    found = scrape(world)
    assert value(found, "licorne_decisions_total") == 1
    assert sum(values(found, "licorne_parked_asks", "reason").values()) == 2
    assert value(found, "licorne_wakeups_total", partition="[mycluster]default") is not None
    waited = {"partition": "[mycluster]default", "queue": "root.a"}
    assert value(found, "licorne_waiting_seconds_count", **waited) == 1
    assert value(found, "licorne_waiting_seconds_sum", **waited) == 1.0
    assert value(found, "licorne_waiting_seconds_bucket", le="1", **waited) == 1
    assert value(found, "licorne_waiting_seconds_bucket", le="0.1", **waited) == 0
    assert value(found, SCHEDULER + "scheduling_cycle_milliseconds_count") == 2
    offset = value(found, "licorne_clock_offset_seconds")
    assert offset is not None
    assert abs(offset - (time.time() - world.now / 1e9)) < 3600
    assert value(found, "yunikorn_event_total_created") == world.monitor.ring.made


def test_the_scheduler_goes_on_while_metrics_are_read() -> None:
    """Figures that must agree are read at one moment: counters of a queue never fall, whatever happens between two steps."""
    world = busy()
    for number in range(30):
        world.node(f"m{number}", vcore=1000)
    steps, before = 0, (0.0, 0.0)
    for _ in range(20):
        found = metrics.Snapshot()
        for _ in metrics.fill(found, world.monitor, old_queue_names=False):
            steps += 1
            world.ask(f"s{steps}", "app-1", vcore=1)
            world.schedule()
            world.release(f"s{steps - 3}", "app-1")
        line = "yunikorn_root_a_queue_container"
        samples = [float(one.split()[1]) for one in found.lines if one.startswith(f"{line}{{")]
        made, released = samples
        assert before < (made, released)
        assert before[1] <= released <= made
        before = (made, released)


def test_names_of_old_releases() -> None:
    world = busy()
    text = world.metrics(old_queue_names=True)
    assert 'yunikorn_root_a_queue_app{state="running"} 1\n' in text
    assert 'yunikorn_root_a_queue_resource{state="max",resource="vcore"} 10000\n' in text
    assert "yunikorn_root_a_queue_resource" not in world.request("GET", "/ws/v1/metrics").text


def test_illegal_names_are_replaced() -> None:
    text = "partitions: [{name: default, queues: [{name: 'x/y@z#:-'}]}]"
    found = scrape(World().register(text=text).node("n", {}, **{'a"b\\c\nd': 5}))
    assert value(found, "yunikorn_root_x_y_z_:__queue_container", state="allocated") == 0
    assert values(found, "yunikorn_queue_resource", "resource", queue="root", state="max") == {'a"b\\c\nd': 5}


def test_rates_are_those_of_the_last_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> float:
        monkeypatch.setattr(monitor, "time", SimpleNamespace(monotonic=asyncio.get_running_loop().time))
        world = busy()
        task = asyncio.create_task(world.monitor.run())
        await asyncio.sleep(0.5)
        world.monitor.cycle(0.1, 500)
        await asyncio.sleep(0.7)
        task.cancel()
        assert world.monitor.health is not None
        return world.monitor.rate

    assert virtual.run(story()) == 500
