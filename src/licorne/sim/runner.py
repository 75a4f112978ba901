"""Drive the scheduler through a workload, under a virtual clock.

Time is an argument of the core, so simulating a week takes as long as its decisions: the clock jumps from one moment at
which something happens to the next. Such moments are the times of lines, the ends of pods, and the deadlines that the core
names (`next_deadline_ns`). At each moment three things happen in this order: pods end, whether by themselves or because the
grace period of their eviction is over; the lines of that moment are submitted; the scheduler decides. So a pod can take the
room of one that ends at the moment of its arrival, and the result does not depend on how the file orders the two.

Where a queue has a strict order of jobs (`licorne.sim.jobs`), one thing happens at a time, and the scheduler decides after
each: the arrival of an application with its asks, or the end of a job. At equal times arrivals come first, and of jobs that
end at the same time the one that started first (docs/spec/experiments.md, A.3).

When no more lines or ends remain, only deadlines do: a back-off may let an ask through, a timeout may free room. They are
followed until a day has passed, or ten thousand of them, without any effect.

Where time stands still (version 1, scripts), nothing happens except through the lines themselves.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from math import inf
from pathlib import Path
from typing import IO

import msgspec

from licorne.core.input_log import InputLog
from licorne.si.messages import NewAllocation, Output
from licorne.sim.collector import quiet_collector
from licorne.sim.configuration import configuration
from licorne.sim.observer import Observer
from licorne.sim.pods import PodRecord
from licorne.sim.policies.loading import Given, load_policies
from licorne.sim.policies.watch import POLICY_TIMEOUT_S, watch_calls
from licorne.sim.report import Result, summarise
from licorne.sim.series import Series, SeriesRow, rows_now
from licorne.sim.simulation import SimulatedCluster
from licorne.sim.unplaced import unplaced
from licorne.workload.escaping import decision_lines
from licorne.workload.finished import finished_file, opened
from licorne.workload.lines import App, Ask, Line, Reload, Run, to_ns
from licorne.workload.measure import seconds
from licorne.workload.reading import Source, load_workload
from licorne.workload.row_tables import Table
from licorne.workload.workload import LineStream, Mode, Progress

HOUR_NS = 3_600 * 1_000_000_000
QUIET_NS = 24 * HOUR_NS
IDLE_DEADLINES = 10_000
_BATCH = 1_000
_SLICE = 20_000
# The inspection of outstanding requests only informs autoscalers, and would tick once a second of virtual time.
TIMED_SETTINGS = {"outstanding.inspection": "false", "application.state.starting": "false"}
STILL_SETTINGS = {**TIMED_SETTINGS, "reservation.enabled": "false"}


class Decisions(Observer):
    """An observer that computes the digest of all decisions (`ask<TAB>node`, in order), and writes them if wanted.

    `licorne.workload.escaping` says how names with tabs or line ends are written.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._sha = hashlib.sha256()
        self.stream = stream
        self.count = 0

    def on_outputs(self, now_ns: int, outputs: Sequence[Output], *, deciding: bool) -> None:
        """Record the allocations that the scheduler decided; those that were reported to it are not decisions."""
        if not deciding:
            return
        made = [(output.key, output.node_id) for output in outputs if type(output) is NewAllocation]
        if made:
            self.count += len(made)
            text = decision_lines(made)
            self._sha.update(text.encode())
            if self.stream is not None:
                self.stream.write(text)

    def digest(self) -> str:
        """Return SHA-256 over the lines so far, in hexadecimal digits."""
        return self._sha.hexdigest()


class _Collected(Observer):
    """An observer that keeps the records of all pods."""

    def __init__(self) -> None:
        self.records: list[PodRecord] = []

    def on_pod(self, record: PodRecord) -> None:
        self.records.append(record)


class Simulation:
    """A simulation of a workload, which is driven in one go (`run`) or up to one time after the other (`advance`).

    Between two calls of `advance` its state can be looked at: `now_s`, `queues`, `waiting`. `licorne.simulate` is the short form.
    """

    def __init__(
        self,
        workload: Source,
        *,
        config: str | None = None,
        settings: Mapping[str, str] | None = None,
        observers: Sequence[Observer] = (),
        since_s: float = 0,
        until_s: float | None = None,
        pods: bool = True,
        every_s: float | None = None,
        input_log: InputLog | None = None,
        policies: Sequence[Given] = (),
        policy_timeout_s: float | None = POLICY_TIMEOUT_S,
    ) -> None:
        """Read the workload and make its cluster; nothing has happened then. The arguments are those of `licorne.simulate`.

        Raises: as `licorne.simulate` before anything is written.
        """
        loaded = load_policies(policies, policy_timeout_s)
        workload = load_workload(workload)
        if not 0 <= since_s < (inf if until_s is None else until_s):
            fault = (
                f"since_s: {since_s}" if until_s is None else f"the window from {since_s:g} s to {until_s:g} s is empty"
            )
            raise ValueError(fault)
        if input_log is not None and loaded:
            raise ValueError(
                "orders of policies are no inputs of the scheduler, so a recording of them cannot be replayed"
            )
        self._watch = watch_calls(policy_timeout_s if loaded else None)
        self._given = config is not None
        self._workload = workload
        self._kept = _Collected()
        self._series: list[SeriesRow] = []
        still = workload.mode is not Mode.TIMED
        started = time.perf_counter()
        with quiet_collector():
            self._cluster = SimulatedCluster(
                workload,
                config=config,
                settings=settings,
                defaults=STILL_SETTINGS if still else TIMED_SETTINGS,
                follows=not still,
                window_ns=(to_ns(since_s), None if until_s is None else to_ns(until_s)),
                input_log=input_log,
                policies=loaded,
                watch=self._watch,
            )
        self._decisions = Decisions()
        sampled = (Series(to_ns(every_s), self._series.append),) if every_s is not None else ()
        own = (self._decisions, *((self._kept,) if pods else ()))
        self._cluster.watch((*own, *sampled, *observers))
        self._clock = None if still else _Clock(self._cluster, workload.lines)
        self._result: Result | None = None
        self._real_s = time.perf_counter() - started

    def write_decisions(self, stream: IO[str]) -> None:
        """Write the decision lines to a stream from now on."""
        self._decisions.stream = stream

    # -- driving ---------------------------------------------------------------------------------------------------

    def advance(self, until_s: float, progress: Progress | None = None) -> bool:
        """Let happen all that happens up to a time, in seconds, and at it; return whether anything is left.

        Raises:
            ValueError: the workload has no times.
            PolicyError: a policy raised, answered nonsense or took too long.
        """
        if self._clock is None:
            raise ValueError("time stands still in this workload, so it is simulated as a whole: run()")
        self._drive(progress, to_ns(until_s))
        return not self._clock.over

    def run(self, progress: Progress | None = None) -> Result:
        """Simulate to the end and return the result; `progress` is called from time to time with the steps done and their total.

        Raises:
            PolicyError: a policy raised, answered nonsense or took too long.
        """
        if self._result is None:
            self._drive(progress, None)
            self._cluster.finish()
            self._result = summarise(
                self._workload,
                self._cluster,
                configuration=configuration(self._workload, self._cluster, given=self._given),
                digest=self._decisions.digest(),
                real_s=self._real_s,
                pods=self._kept.records,
                series=self._series,
            )
        return self._result

    def _drive(self, progress: Progress | None, until_ns: int | None) -> None:
        """Go on up to a time; None: to the end."""
        started = time.perf_counter()
        with quiet_collector(), self._watch:
            self._cluster.begin()
            if self._clock is not None:
                self._clock.run(progress, until_ns)
            elif self._workload.mode is Mode.SCRIPT:
                _run_script(self._cluster, list(self._workload.lines), progress)
            else:
                _run_batch(self._cluster, list(self._workload.lines), progress)
        self._real_s += time.perf_counter() - started

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """The virtual time of what happened last, in seconds."""
        return seconds(self._cluster.now_ns)

    def queues(self) -> Table[SeriesRow]:
        """Return what the cluster and each queue use now, and what waits in it."""
        return Table(SeriesRow, list(rows_now(self.now_s, self._cluster.partition)))

    def waiting(self) -> Table[WaitingRow]:
        """Return the asks that are not placed now, with the reason."""
        rows = [
            WaitingRow(each.key, each.application, self._cluster.path(each.application), each.reason, each.number)
            for each in unplaced(self._cluster)
        ]
        return Table(WaitingRow, rows)


class WaitingRow(msgspec.Struct, frozen=True):
    """An ask that is not placed now: its key, application and queue (empty if unknown), why, and for how many pods it stands."""

    key: str
    application: str
    queue: str
    reason: str
    pods: int


def simulate(
    workload: Source,
    *,
    config: str | None = None,
    settings: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
    since_s: float = 0,
    until_s: float | None = None,
    pods: bool = True,
    every_s: float | None = None,
    decisions: Path | None = None,
    input_log: InputLog | None = None,
    policies: Sequence[Given] = (),
    policy_timeout_s: float | None = POLICY_TIMEOUT_S,
    progress: Progress | None = None,
) -> Result:
    """Simulate a workload and return its result.

    `workload` is the path of a workload file, a scenario or a recording, or the lines of a workload as objects for JSON, or what
    `licorne.workload.load_workload` returns. `config` is the text of a queue configuration in place of the workload's; `settings` take precedence over the workload's, and those over the simulator's own.

    Each of `observers` hears what happens (`licorne.sim.Observer`); what one of them raises ends the simulation. Figures over
    time and times of pods are for the part of the virtual time from `since_s` and up to `until_s`, in seconds (None: the end).
    With `pods` the result has a record of each pod, and with `every_s` the use of queues every so many seconds of virtual time
    (`series`). `decisions` is a file for the decision lines.
    `input_log` is told of all inputs of the scheduler, as a `licorne.state.recording.Recorder` is. Not with policies:
    their orders are no inputs, so what was recorded could not be replayed.

    `policies` (`licorne.Policy`: classes, their names as for `licorne simulate --policy`, or objects) decide in place of the
    scheduler what they have methods for. A single call of one, loading its code and making its object that takes longer than
    `policy_timeout_s` is ended; None: none is.

    `progress` is called from time to time with the steps done and their total.

    Raises, before anything is written:
        WorkloadError: the workload, or its configuration or settings, is not usable; the text has file, line and field.
        OSError: a file cannot be read, or `decisions` not be written.
        RegistrationError: `config` is not usable; the text has its faults, each with line and column.
        SettingsError: one of `settings` is not usable.
        ValueError: `since_s` is negative, or not before `until_s`; `every_s` is not above 0; `input_log` with policies.
        PolicyError: a policy cannot be used, or calls cannot be watched here: they can be in the main thread only.
    And later:
        PolicyError: a policy raised, answered nonsense or took too long; the text names it, the call and what was expected.
    """
    simulation = Simulation(
        workload,
        config=config,
        settings=settings,
        observers=observers,
        since_s=since_s,
        until_s=until_s,
        pods=pods,
        every_s=every_s,
        input_log=input_log,
        policies=policies,
        policy_timeout_s=policy_timeout_s,
    )
    with ExitStack() as files:
        if decisions is not None:
            stream = files.enter_context(opened(files.enter_context(finished_file(decisions)), decisions))
            simulation.write_decisions(files.enter_context(TextIOWrapper(stream, encoding="utf-8")))
        return simulation.run(progress)


def _run_batch(simulation: SimulatedCluster, lines: Sequence[Line], progress: Progress | None) -> None:
    """Run version 1: submit everything, then decide until nothing more is possible."""
    total = 2 * len(lines)
    for start in range(0, len(lines), _BATCH):
        simulation.hand_in(lines[start : start + _BATCH], start)
        if progress is not None:
            progress(start, total)
    decided = 0
    while made := simulation.decide(_SLICE):
        decided += made
        if progress is not None:
            progress(len(lines) + decided, total)
    simulation.use.observe(simulation.now_ns)


def _run_script(simulation: SimulatedCluster, lines: Sequence[Line], progress: Progress | None) -> None:
    """Run version 2 without times: process each line completely before the next."""
    for number, line in enumerate(lines):
        if type(line) is Run:
            while simulation.decide():
                pass
        elif type(line) is Reload:
            simulation.reload(line.yaml, simulation.workload.place(number))
        else:
            simulation.hand_in((line,), number)
        if progress is not None and number % _BATCH == 0:
            progress(number, len(lines))
    simulation.use.observe(simulation.now_ns)


class _Clock:
    """The virtual clock of a timed simulation. `over`: nothing more will happen."""

    def __init__(self, simulation: SimulatedCluster, lines: Sequence[Line] | LineStream) -> None:
        self.simulation = simulation
        self.rest = iter(lines)
        self.coming = next(self.rest, None)
        self.coming_ns = 0 if self.coming is None or self.coming.at is None else to_ns(self.coming.at)
        self.number = 0
        self.over = False
        self.idle = 0
        self.done = 0
        if isinstance(lines, LineStream):
            self.total, longest_ms = lines.steps, lines.longest_ms
        else:
            self.total = len(lines) + sum(type(line) is Ask and line.duration_s is not None for line in lines)
            timeouts_ms = [line.timeout_ms for line in lines if isinstance(line, App | Ask)]
            timeouts_ms += [line.ph_timeout_ms for line in lines if isinstance(line, App)]
            longest_ms = max(timeouts_ms, default=0)
        self.quiet_ns = QUIET_NS + longest_ms * 1_000_000

    def run(self, progress: Progress | None, until_ns: int | None) -> None:
        """Go from moment to moment until nothing more will happen, or not beyond `until_ns`."""
        simulation = self.simulation
        steps = 0
        next_end_ns, next_deadline_ns = simulation.model.next_ns, simulation.api.next_deadline_ns
        observe = simulation.use.observe
        while not self.over:
            now_ns = simulation.now_ns
            own_ns = next_end_ns()
            if self.coming is not None:
                arrival_ns = max(now_ns, self.coming_ns)
                if own_ns is None or arrival_ns < own_ns:
                    own_ns = arrival_ns
            # A deadline that was not served when it passed never will be.
            deadline_ns = next_deadline_ns()
            if deadline_ns is not None and deadline_ns <= now_ns:
                deadline_ns = None
            if own_ns is None and (deadline_ns is None or not self._worth(deadline_ns)):
                self.over = True
                break
            next_ns = own_ns if deadline_ns is None or (own_ns is not None and own_ns <= deadline_ns) else deadline_ns
            assert next_ns is not None
            if until_ns is not None and next_ns > until_ns:
                break
            if simulation.hearing_moments:
                simulation.span(next_ns)
            simulation.now_ns = next_ns
            self.done += self._happen()
            made = simulation.decide()
            observe(next_ns)
            changed = bool(made) or simulation.changed_ns == next_ns
            self.idle = 0 if changed else self.idle + 1
            steps += 1
            if progress is not None and steps % 64 == 0:
                progress(self.done, self.total)

    def _worth(self, deadline_ns: int) -> bool:
        """Return whether to go on to a deadline of the scheduler when nothing else is to come: not if deadlines had no effect for long."""
        if self.idle >= IDLE_DEADLINES or deadline_ns > self.simulation.changed_ns + self.quiet_ns:
            return False
        return self.simulation.unsettled()

    def _happen(self) -> int:
        """Let happen what is due; return the number of pods that ended and of lines that were submitted."""
        if self.simulation.jobs is None:
            ended = self.simulation.end_due()
            return ended + self._hand_in() if self.coming_ns <= self.simulation.now_ns else ended
        return self._hand_in(one=True) or self.simulation.end_due(one=True)

    def _hand_in(self, *, one: bool = False) -> int:
        """Submit the lines of this moment, or `one` arrival: up to the last of an application; return their number."""
        now_ns = self.simulation.now_ns
        arriving = ""
        found: list[Line] = []
        while self.coming is not None and self.coming_ns <= now_ns:
            line = self.coming
            if one:
                app = line.id if type(line) is App else line.app if type(line) is Ask else ""
                if arriving and app != arriving:
                    break
                arriving = app
            found.append(line)
            self.coming = next(self.rest, None)
            if self.coming is not None and self.coming.at is not None:
                self.coming_ns = to_ns(self.coming.at)
        if found:
            self.simulation.hand_in(found, self.number)
            self.number += len(found)
        return len(found)
