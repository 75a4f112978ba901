"""Drives the scheduler through a workload, under a virtual clock.

Time is an argument of the core, so a week takes as long as its decisions: the clock jumps from one moment at which
something happens to the next. Such moments are the lines' own times, the ends of pods, and the deadlines that the
core names (`next_deadline_ns`). At each moment pods that are over end first, evicted ones too when their grace is over,
then the lines of that moment are handed in, then the scheduler decides; so a pod that ends and one that arrives at the same moment can share a place, and the
order does not depend on how the file was written.

When nothing is left to hand in or to end, deadlines alone go on: a back-off may let an ask through, a timeout may
free a place. They are followed until a day has passed, or ten thousand of them, without any effect.

Where time stands still (version 1, scripts) nothing but the lines themselves makes anything happen.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from licorne.si.messages import NewAllocation, Output
from licorne.sim.collector import quiet_collector
from licorne.sim.escaping import decision_lines
from licorne.sim.lines import App, Ask, Line, Reload, Run, to_ns
from licorne.sim.model import ResourceManager
from licorne.sim.report import Result, summarise
from licorne.sim.script import ScriptTrace
from licorne.sim.workload import Mode, Progress, Workload

HOUR_NS = 3_600 * 1_000_000_000
QUIET_NS = 24 * HOUR_NS
IDLE_DEADLINES = 10_000
_BATCH = 1_000
_SLICE = 20_000
# An outstanding-request inspection only informs autoscalers, and would tick once a second of virtual time.
TIMED_SETTINGS = {"outstanding.inspection": "false", "application.state.starting": "false"}
STILL_SETTINGS = {**TIMED_SETTINGS, "reservation.enabled": "false"}


class Decisions:
    """An observer that keeps the digest of all decisions (`ask<TAB>node`, in order), and writes them if wanted.

    How names are written that hold a tab or a line end is in `licorne.sim.escaping`.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._sha = hashlib.sha256()
        self._stream = stream
        self.count = 0

    def take(self, outputs: Sequence[Output], *, deciding: bool) -> None:
        """Take the allocations that the scheduler decided; those that were reported to it are no decisions."""
        if not deciding:
            return
        made = [(output.key, output.node_id) for output in outputs if type(output) is NewAllocation]
        if made:
            self.count += len(made)
            text = decision_lines(made)
            self._sha.update(text.encode())
            if self._stream is not None:
                self._stream.write(text)

    def digest(self) -> str:
        """SHA-256 over the lines so far, in hexadecimal digits."""
        return self._sha.hexdigest()


def simulate(
    workload: Workload,
    *,
    config: str | None = None,
    settings: Mapping[str, str] | None = None,
    decisions: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulate a workload and report what became of it.

    `config` replaces the workload's queue configuration; `settings` go before the workload's, and those before the
    simulator's own. `decisions` is a file for the decision lines, or for a script its trace.

    Raises, before anything is written:
        WorkloadError: what the workload says of configuration and settings cannot be used.
        RegistrationError: `config` cannot.
        SettingsError: one of `settings` cannot.
    """
    started = time.perf_counter()
    still = workload.mode is not Mode.TIMED
    with ExitStack() as stack:
        stack.enter_context(quiet_collector())
        manager = ResourceManager(
            workload,
            config=config,
            settings=settings,
            defaults=STILL_SETTINGS if still else TIMED_SETTINGS,
            follows=not still,
        )
        stream = stack.enter_context(decisions.open("w", encoding="utf-8")) if decisions is not None else None
        trace = ScriptTrace(_writer(stream), manager.partition) if workload.mode is Mode.SCRIPT else None
        made = Decisions(None if trace is not None else stream)
        manager.observers = (made,) if trace is None else (made, trace)
        if workload.mode is Mode.BATCH:
            _run_batch(manager, workload.lines, progress)
        elif trace is not None:
            _run_script(manager, workload.lines, trace, progress)
        else:
            _Clock(manager, workload.lines, progress).run()
    return summarise(workload, manager, digest=made.digest(), real_s=time.perf_counter() - started)


def _writer(stream: IO[str] | None) -> Callable[[str], object]:
    """What writes a line of a trace."""
    if stream is None:
        return len
    return lambda line: stream.write(line + "\n")


def _run_batch(manager: ResourceManager, lines: Sequence[Line], progress: Progress | None) -> None:
    """Version 1: everything in, then decisions until nothing more is possible."""
    total = 2 * len(lines)
    for start in range(0, len(lines), _BATCH):
        manager.hand_in(lines[start : start + _BATCH], start)
        if progress is not None:
            progress(start, total)
    decided = 0
    while made := manager.decide(_SLICE):
        decided += made
        if progress is not None:
            progress(len(lines) + decided, total)
    manager.observe()


def _run_script(manager: ResourceManager, lines: Sequence[Line], trace: ScriptTrace, progress: Progress | None) -> None:
    """Version 2 without times: each line fully processed before the next."""
    for number, line in enumerate(lines):
        if type(line) is Run:
            while manager.decide():
                pass
            trace.sums()
        elif type(line) is Reload:
            if manager.reload(line.yaml, manager.workload.place(number)) is not None:
                trace.refused()
        else:
            manager.hand_in((line,), number)
        if progress is not None and number % _BATCH == 0:
            progress(number, len(lines))
    manager.observe()


class _Clock:
    """The virtual clock of a timed simulation."""

    def __init__(self, manager: ResourceManager, lines: Sequence[Line], progress: Progress | None) -> None:
        self.manager = manager
        self.lines = lines
        self.progress = progress
        self.next = 0
        self.done = 0
        self.total = len(lines) + sum(type(line) is Ask and line.duration_s is not None for line in lines)
        longest_ms = max((line.timeout_ms for line in lines if isinstance(line, App | Ask)), default=0)
        longest_ms = max(longest_ms, max((line.ph_timeout_ms for line in lines if isinstance(line, App)), default=0))
        self.quiet_ns = QUIET_NS + longest_ms * 1_000_000

    def run(self) -> None:
        """Go from moment to moment until nothing more will happen."""
        manager = self.manager
        idle = steps = 0
        while True:
            own_ns = self._own_moment()
            deadline_ns = self._deadline()
            if own_ns is None:
                if deadline_ns is None or idle >= IDLE_DEADLINES:
                    break
                if deadline_ns > manager.changed_ns + self.quiet_ns or not manager.unsettled():
                    break
            moments = [moment for moment in (own_ns, deadline_ns) if moment is not None]
            manager.now_ns = min(moments)
            ended = manager.end_due() + manager.end_evicted()
            handed_in = self._hand_in()
            made = manager.decide()
            manager.observe()
            self.done += ended + handed_in
            changed = bool(made) or manager.changed_ns == manager.now_ns
            idle = 0 if changed else idle + 1
            steps += 1
            if self.progress is not None and steps % 64 == 0:
                self.progress(self.done, self.total)

    def _own_moment(self) -> int | None:
        """When the next line is to be handed in or the next pod ends."""
        moments: list[int] = []
        if self.next < len(self.lines):
            at = self.lines[self.next].at
            moments.append(self.manager.now_ns if at is None else to_ns(at))
        end_ns = self.manager.next_end_ns()
        if end_ns is not None:
            moments.append(end_ns)
        return min(moments) if moments else None

    def _deadline(self) -> int | None:
        """The core's next deadline; one that has passed without being served would not be served again either."""
        deadline_ns = self.manager.api.next_deadline_ns()
        return deadline_ns if deadline_ns is not None and deadline_ns > self.manager.now_ns else None

    def _hand_in(self) -> int:
        """Hand in the lines of this moment; how many there were."""
        first = self.next
        while self.next < len(self.lines):
            at = self.lines[self.next].at
            if at is not None and to_ns(at) > self.manager.now_ns:
                break
            self.next += 1
        if self.next > first:
            self.manager.hand_in(self.lines[first : self.next], first)
        return self.next - first
