"""Every metric, written out: name, type, labels with their values, bounds of buckets.

Source: docs/spec/metrics.md, sections 1 to 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from licorne.core.base.states import ApplicationEvent
from licorne.state.recording import Counts
from licorne.state.recording.recorder import Figures
from rest.world import World, busy, run

ANY = None
SECONDS = "0.0001 0.001 0.01 0.1 1 10 100 1000 +Inf"
WAITS = "0.01 0.1 1 10 60 300 900 3600 14400 +Inf"
LAGS = "0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1 +Inf"
ATTEMPT = {"allocated", "rejected", "error", "released"}
SHARES = {"[0,10%]", *(f"({ten}%,{ten + 10}%]" for ten in range(10, 100, 10))}
APP = {"new", "accepted", "running", "failing", "failed", "resuming", "completing", "completed", "rejected"}
RESOURCE = {"guaranteed", "max", "allocated", "pending", "preempting", "maxRunningApps"}
QUEUES = {"root", "root.a", "root.b", "root.b.dyn", "root.other"}
LEAVES = {"root.a", "root.b.dyn", "root.other"}
PARTITION = {"[mycluster]default"}
PARKED = {"live", "no_node", "refused", "awaits_node", "awaits_placeholder", "awaits_gang"}
WORK = {"applications_visited", "applications_woken", "asks_attempted", "blocks_scanned", "nodes_moved"}

# name: type, labels and their values, bounds of its buckets
Row = tuple[str, Mapping[str, set[str] | None], str]
TABLE: dict[str, Row] = {
    # 1: the scheduler
    "yunikorn_scheduler_container_allocation_attempt_total": ("counter", {"state": ATTEMPT}, ""),
    "yunikorn_scheduler_application_submission_total": ("counter", {"result": {"new", "accepted", "rejected"}}, ""),
    "yunikorn_scheduler_application_total": (
        "gauge",
        {"state": {"running", "resuming", "failing", "completing", "completed", "failed"}},
        "",
    ),
    "yunikorn_scheduler_node": ("gauge", {"state": {"active", "failed", "draining", "decommissioned"}}, ""),
    "yunikorn_scheduler_scheduling_latency_milliseconds": ("histogram", {}, SECONDS),
    "yunikorn_scheduler_scheduling_cycle_milliseconds": ("histogram", {}, SECONDS),
    "yunikorn_scheduler_node_sorting_latency_milliseconds": ("histogram", {"level": {"app", "queue"}}, SECONDS),
    "yunikorn_scheduler_trynode_latency_milliseconds": ("histogram", {}, SECONDS),
    "yunikorn_scheduler_trynode_evaluation_milliseconds": ("histogram", {}, SECONDS),
    "yunikorn_scheduler_trypreemption_latency_milliseconds": ("histogram", {}, SECONDS),
    **{
        f"yunikorn_scheduler_{name}_node_usage_total": ("gauge", {"range": SHARES}, "")
        for name in ("memory", "vcore", "pods", "ephemeral_storage", "nvidia_com_gpu")
    },
    # 2: queues, also by the names of releases before 1.4
    "yunikorn_queue_app": ("gauge", {"queue": LEAVES, "state": APP}, ""),
    "yunikorn_queue_app_total": (
        "counter",
        {"queue": {"root.a", "root.other"}, "state": {"completed", "failed", "rejected"}},
        "",
    ),
    "yunikorn_queue_resource": ("gauge", {"queue": QUEUES, "state": RESOURCE, "resource": ANY}, ""),
    **{
        f"yunikorn_{queue.replace('.', '_')}_queue_{what}": found
        for queue in QUEUES
        for what, found in (
            ("container", ("counter", {"state": {"allocated", "released"}}, "")),
            ("resource", ("gauge", {"state": RESOURCE, "resource": ANY}, "")),
        )
    },
    **{f"yunikorn_{queue.replace('.', '_')}_queue_app": ("gauge", {"state": APP}, "") for queue in LEAVES},
    # 3: events
    **{
        f"yunikorn_event_total_{what}": ("counter", {}, "")
        for what in ("created", "channeled", "not_channeled", "processed", "stored", "not_stored", "collected")
    },
    # what the original has not
    "licorne_decisions_total": ("counter", {}, ""),
    "licorne_decisions_per_second": ("gauge", {}, ""),
    "licorne_parked_asks": ("gauge", {"reason": PARKED}, ""),
    "licorne_work_total": ("counter", {"partition": PARTITION, "kind": WORK}, ""),
    "licorne_wakeups_total": ("counter", {"partition": PARTITION}, ""),
    "licorne_preemption_searches_total": ("counter", {"partition": PARTITION}, ""),
    "licorne_reservations": ("gauge", {"partition": PARTITION}, ""),
    "licorne_waiting_seconds": ("histogram", {"partition": PARTITION, "queue": {"root.a", "root.other"}}, WAITS),
    "licorne_log_lines_dropped_total": ("counter", {}, ""),
    "licorne_messages_total": ("counter", {"rm": {"mycluster"}, "way": {"in", "out"}}, ""),
    "licorne_shadow_pods_total": ("counter", {"outcome": {"same", "elsewhere", "first", "gone"}}, ""),
    "licorne_writes_total": ("counter", {"kind": {"binding"}, "result": {"done"}}, ""),
    "licorne_api_requests_total": ("counter", {"method": {"POST"}, "code": {"201"}}, ""),
    "licorne_news_age_seconds": ("gauge", {"kind": {"pods"}}, ""),
    "licorne_lease_held": ("gauge", {}, ""),
    "licorne_recording_state": ("gauge", {"state": {"waiting", "on", "ended"}}, ""),
    "licorne_recording_bytes_total": ("counter", {}, ""),
    "licorne_recording_entries_total": ("counter", {}, ""),
    "licorne_recording_runs_total": ("counter", {}, ""),
    "licorne_recording_gaps_total": ("counter", {}, ""),
    "licorne_recording_queue_bytes": ("gauge", {}, ""),
    "licorne_recording_lag_seconds": ("gauge", {}, ""),
    "licorne_loop_lag_seconds": ("histogram", {}, LAGS),
    "licorne_loop_lag_seconds_max": ("gauge", {}, ""),
    "licorne_decision_gap_seconds": ("histogram", {}, LAGS),
    "licorne_decision_gap_seconds_max": ("gauge", {}, ""),
    "licorne_clock_offset_seconds": ("gauge", {}, ""),
    "licorne_build_info": ("gauge", {"version": ANY, "python": ANY, "compiled": ANY}, ""),
}
OF_THE_PROCESS = ("process_", "python_")

_LINE = re.compile(r"(\w[\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def everything() -> World:
    """A scheduler in which every metric has a value."""
    world = busy().node("gpu", {}, **{"nvidia.com/gpu": 4, "ephemeral-storage": 1000})
    world.backend.messages = lambda: {"mycluster": (3, 2)}
    world.backend.figures = lambda: {
        "licorne_shadow_pods": {("same",): 3, ("elsewhere",): 1, ("first",): 0, ("gone",): 0},
        "licorne_writes": {("binding", "done"): 3},
        "licorne_api_requests": {("POST", "201"): 3},
        "licorne_news_age_seconds": {("pods",): 1.5},
        "licorne_lease_held": {(): 1},
    }
    recording = Figures(state="on", counts=Counts(bytes=9, entries=3, runs=1), queue_bytes=0, lag_s=0.0)
    world.backend.recording = lambda: recording  # type: ignore[method-assign]
    world.application("refused", "root.a", user="")
    for app in ("ends", "fails"):
        world.application(app, "root.other").ask(app, app, vcore=1)
    world.schedule()
    partition = world.api.cluster.partition("mycluster")
    partition.lifecycle.fire(partition.applications["fails"], ApplicationEvent.FAIL, "for a test")
    world.release("ends", "ends").release("fails", "fails")
    world.application("stays", "root.other").ask("stays", "stays", vcore=1)
    world.schedule(61.0)
    run(world.monitor.count_parked())
    return world


def parsed(text: str) -> tuple[dict[str, str], dict[str, list[dict[str, str]]]]:
    """Types by name, and the labels of all samples by name of the family."""
    types: dict[str, str] = {}
    samples: dict[str, list[dict[str, str]]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            types[name] = kind
            samples[name] = []
        elif not line.startswith("#"):
            match = _LINE.fullmatch(line)
            assert match is not None, line
            family = match[1] if match[1] in types else re.sub("_(bucket|sum|count)$", "", match[1])
            samples[family].append(dict(_LABEL.findall(match[2] or "")))
            float(match[3])
    return types, samples


def test_the_table_is_complete_and_true() -> None:
    world = everything()
    text = world.metrics(old_queue_names=True)
    types, samples = parsed(text)
    own = {name: kind for name, kind in types.items() if not name.startswith(OF_THE_PROCESS)}
    assert own == {name: kind for name, (kind, _, _) in TABLE.items()}
    for name, (kind, labels, bounds) in TABLE.items():
        found = samples[name]
        assert found, name
        for sample in found:
            assert set(sample) - {"le"} == set(labels), (name, sample)
        for label, values in labels.items():
            seen = {sample[label] for sample in found}
            if values is not None:
                assert seen <= values, (name, label)
                assert seen == values or label == "state", (name, label, seen)
        if bounds:
            assert kind == "histogram"
            series: dict[Any, list[str]] = {}
            for sample in found:
                if "le" in sample:
                    series.setdefault(tuple(sample[label] for label in labels), []).append(sample["le"])
            assert series, name
            assert all(" ".join(les) == bounds for les in series.values()), name


def test_ends_of_applications_by_queue() -> None:
    _, samples = parsed(everything().request("GET", "/ws/v1/metrics").text)
    ended = {(of["queue"], of["state"]) for of in samples["yunikorn_queue_app_total"]}
    assert ended == {("root.other", "completed"), ("root.other", "failed"), ("root.a", "rejected")}
