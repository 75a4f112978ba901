"""Measures checkpoints: their size, how long it takes to take and to restore one, and to ask about a moment of a recording.

A made-up cluster fills up: pods of different sizes come in requests of a thousand, and are placed. Then the state is taken,
compressed and restored. Times are processor times, so that they mean something on a machine that does other work too.
"""

from __future__ import annotations

import gc
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import msgspec

from licorne import SchedulerAPI
from licorne.si import messages, v19
from licorne.state.recording import Recorder, Replay, add_checkpoint, choose_run, replay_from
from licorne.state.recording.folder import checkpoints_in

REQUEST: Final = 1_000
SECOND_NS: Final = 10**9
START_NS: Final = 1_700_000_000 * SECOND_NS
QUEUES: Final = 20
T = TypeVar("T")


class CheckpointFigures(msgspec.Struct, frozen=True):
    """The figures: numbers of nodes and allocations, bytes, and seconds of processor time.

    `at_s` is the time to ask about a moment just before the end, from a checkpoint halfway; `whole_s` from the beginning.
    """

    nodes: int
    allocations: int
    bytes: int
    compressed_bytes: int
    take_s: float
    restore_s: float
    checked_restore_s: float
    recording_bytes_per_decision: float
    at_s: float
    whole_s: float


def measure_checkpoint(nodes: int, pods: int) -> CheckpointFigures:
    """Fill a cluster, and measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Recorder(folder) as recorder:
            api = SchedulerAPI(on_output=lambda *_: None)
            api.input_log = recorder
            now_ns = _fill(api, nodes, pods)
        gc.collect()
        data, take_s = _timed(api.checkpoint)
        _, restore_s = _timed(lambda: SchedulerAPI().restore_checkpoint(data, check=False))
        _, checked_s = _timed(lambda: SchedulerAPI().restore_checkpoint(data))
        run = choose_run(folder)
        _, whole_s = _timed(lambda: Replay(run).run(now_ns - SECOND_NS))
        add_checkpoint(run, (START_NS + now_ns) // 2)
        add_checkpoint(run)
        stored = sum(path.stat().st_size for path in run.folder.iterdir())
        checkpoints_in(run.folder)[-1].unlink()
        _, at_s = _timed(lambda: replay_from(run, now_ns - SECOND_NS).run(now_ns - SECOND_NS))
        partition = api.cluster.partition("rm")
        running = sum(len(node.allocations) for node in partition.nodes.values())
        return CheckpointFigures(
            nodes=nodes,
            allocations=running,
            bytes=len(data),
            compressed_bytes=len(zlib.compress(data)),
            take_s=take_s,
            restore_s=restore_s,
            checked_restore_s=checked_s,
            recording_bytes_per_decision=round(stored / max(running, 1), 1),
            at_s=at_s,
            whole_s=whole_s,
        )


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    found = work()
    return found, round(time.process_time() - began, 3)


def _fill(api: SchedulerAPI, nodes: int, pods: int) -> int:
    """Let nodes, applications and pods come; return the time at the end (ns)."""
    random = Random(1)
    queues = ", ".join(f"{{name: q{number}}}" for number in range(QUEUES))
    text = f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: [{queues}]}}]}}]"
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=text), now_ns=START_NS)
    capacity = {"vcore": 64_000, "memory": 256 << 30}
    made = [
        messages.NodeUpdate(node_id=f"node-{number}", action=messages.NodeAction.CREATE, capacity=capacity)
        for number in range(nodes)
    ]
    api.submit("rm", made, now_ns=START_NS)
    applications = max(1, pods // 100)
    apps = [
        messages.AddApplication(
            application_id=f"app-{number}", queue=f"root.q{number % QUEUES}", user=f"u{number % 30}"
        )
        for number in range(applications)
    ]
    api.submit("rm", apps, now_ns=START_NS)
    now_ns = START_NS
    for first in range(0, pods, REQUEST):
        now_ns += SECOND_NS
        asks = [
            messages.Allocation(
                key=f"pod-{number}-{random.getrandbits(32):08x}",
                application_id=f"app-{random.randrange(applications)}",
                resource={"vcore": random.choice((500, 1000, 1500, 2000)), "memory": random.choice((1, 2, 4, 6)) << 30},
                tags={"kubernetes.io/meta/namespace": f"ns{number % 40}", "app": f"a{random.randrange(100)}"},
            )
            for number in range(first, min(first + REQUEST, pods))
        ]
        api.submit("rm", asks, now_ns=now_ns)
        api.schedule(now_ns=now_ns)
    return now_ns


__all__ = ["CheckpointFigures", "measure_checkpoint"]
