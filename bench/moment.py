"""Measures how long it takes to ask about a moment of a recorded week of 1,000 nodes and a million pods (`bench/week.yaml`).

The week is simulated and recorded; then it gets checkpoints by the rule by which another process writes them beside a service:
after `CHECKPOINT_BYTES` of the log or many entries, but not before the log has half as many bytes as the last one. Then moments are drawn, the
scheduler is restored as it was at each of them, as `licorne why --from DIR --at TIME` does, and is asked what waits. The last
moments are those that take longest: just before each checkpoint. Each is asked about by a process of its own, as by a command:
in one process the garbage of all that were restored before would be collected in the time of some. Times of these are processor
times, so that they mean something on a machine that does other work too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import msgspec

import licorne
from licorne.answers import Home, why
from licorne.answers.recorded import restore_moment
from licorne.host.recording import CHECKPOINT_BYTES
from licorne.sim.collector import quiet_collector
from licorne.state.copies import on_a_copy
from licorne.state.recording import Bounds, Recorder, Run, add_checkpoint, choose_run
from licorne.state.recording.blocks import block_bytes, read_blocks
from licorne.state.recording.checkpointer import is_due
from licorne.state.recording.checkpoints import read
from licorne.state.recording.entries import TIME
from licorne.state.recording.folder import segments_in

SCENARIO: Final = Path(__file__).with_name("week.yaml")
SECOND_NS: Final = 10**9
LENGTH_NS: Final = 7 * 86_400 * SECOND_NS
DRAWN: Final = 20
SEED: Final = 1


class Recorded(msgspec.Struct, frozen=True):
    """A recorded week. `bytes_per_decision`: bytes of the log and the checkpoints for each decision."""

    pods: int
    bytes_per_decision: float
    log_bytes: int
    checkpoint_bytes: int
    checkpoints: int
    recorded_s: float


class Moments(Recorded, frozen=True):
    """What was measured. Times are seconds: until the scheduler was restored, and until it had told what waits as well."""

    restored_median_s: float
    restored_most_s: float
    asked_median_s: float
    asked_most_s: float


def record(scenario: Path, folder: Path, load: float, say: Callable[[str], object]) -> tuple[Recorded, Run, list[Path]]:
    """Record a scenario, with `load` times its arrivals, and return what it takes, its run and its checkpoints."""
    say("recording a week ...")
    began = time.perf_counter()
    workload = licorne.Scenario.read(scenario).workload(load=load)
    with Recorder(folder, Bounds(queue_bytes=1 << 30)) as recorder:
        result = licorne.simulate(workload, pods=False, input_log=recorder)
    recorded_s = time.perf_counter() - began
    run = choose_run(folder)
    log = sum(path.stat().st_size for path in segments_in(run.folder))
    say("adding checkpoints ...")
    checkpoints = list(_add_checkpoints(run))
    saved = sum(path.stat().st_size for path in checkpoints)
    found = Recorded(
        pods=result.asks,
        bytes_per_decision=round((log + saved) / max(1, result.placed), 1),
        log_bytes=log,
        checkpoint_bytes=saved,
        checkpoints=len(checkpoints),
        recorded_s=round(recorded_s, 1),
    )
    return found, run, checkpoints


def measure_moments(load: float = 1.0, say: Callable[[str], object] = lambda _: None) -> Moments:
    """Record the week, with `load` times its arrivals, and measure."""
    with tempfile.TemporaryDirectory() as name, quiet_collector():
        folder = Path(name)
        recorded, run, checkpoints = record(SCENARIO, folder, load, say)
        begins_ns = run.begins_ns or 0
        random = Random(SEED)
        moments = [begins_ns + random.randrange(LENGTH_NS) for _ in range(DRAWN)]
        moments += [read(path).now_ns - SECOND_NS for path in checkpoints]
        restored, asked = [], []
        for at_ns in moments:
            restored_s, asked_s = on_a_copy(partial(_measured, folder, at_ns), tuple[float, float])
            restored.append(restored_s)
            asked.append(asked_s)
            say(f"  {(at_ns - begins_ns) / SECOND_NS / 86_400:5.2f} d: {restored[-1]:.2f} s, asked {asked[-1]:.2f} s")
        return Moments(
            **msgspec.structs.asdict(recorded),
            restored_median_s=round(median(restored), 2),
            restored_most_s=round(max(restored), 2),
            asked_median_s=round(median(asked), 2),
            asked_most_s=round(max(asked), 2),
        )


def _measured(folder: Path, at_ns: int) -> tuple[float, float]:
    began = time.process_time()
    found = restore_moment(choose_run(folder, at_ns=at_ns), at_ns)
    restored_s = time.process_time() - began
    why(Home(found))
    return restored_s, time.process_time() - began


def _add_checkpoints(run: Run) -> Iterator[Path]:
    """Add the checkpoints of a recorded run, and yield their files."""
    since = entries = last = 0
    for segment in segments_in(run.folder):
        sizes = block_bytes(segment)
        # Behind the last one is nothing to repeat.
        for size, block in zip(sizes[:-1], read_blocks(segment), strict=False):
            since += size
            entries += len(block)
            if is_due(since, entries, CHECKPOINT_BYTES, last):
                end_ns = max((entry[1] for entry in block if entry[0] == TIME), default=0)
                if (path := add_checkpoint(run, end_ns)) is not None:
                    since, entries, last = 0, 0, path.stat().st_size
                    yield path


__all__ = ["Moments", "Recorded", "measure_moments", "record"]
