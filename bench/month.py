# ruff: noqa: T201  # a command prints
"""`python -m bench.month [--report] [--swf] [--load LOAD]`: simulates a month of 1,000 nodes and a million pods, and prints time and memory.

The scenario is `bench/month.yaml`. Its lines are made while it is simulated, and no record of a pod is kept, so memory is that
of the pods that are alive, of one number for each waiting time (percentiles need them all), and of what the scheduler keeps of
applications that have ended. Making the lines is part of the time. With `--report` the figures of a report are collected and the report is
drawn as well, into a folder that is removed; two digests are then printed, of the decisions and of the report, so that two states of
the program can be compared. With `--swf` a log in the Standard Workload Format is written into a folder that is removed.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import licorne
from licorne.lab.report import Collector, write_report
from licorne.sim import Observer, Result
from licorne.sim.swf_log import SwfOutcome, swf_file

SCENARIO = Path(__file__).with_name("month.yaml")


class Measured:
    """Times of the parts of a measurement, as they end: wall-clock and processor seconds of this process."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    def tell(self, what: str) -> None:
        """Print what the part that ends now took, and the largest memory of this process so far."""
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak_mib = peak >> (20 if sys.platform == "darwin" else 10)
        spent = f"{wall_s - self._wall_s:.1f} s ({cpu_s - self._cpu_s:.1f} s of processor time)"
        print(f"{what}: {spent}, {peak_mib:,} MiB at most")
        self._wall_s, self._cpu_s = wall_s, cpu_s


def month(load: float | None, *, report: bool, swf: bool = False) -> tuple[Result, str]:
    """Simulate the month, and print the times; return the result and the digest of the report, "" without one."""
    measured = Measured()
    workload = licorne.Scenario.read(SCENARIO).workload(load=load)
    collector = Collector()
    observers: list[Observer] = [collector] if report else []
    with ExitStack() as files:
        if swf:
            outcome = SwfOutcome(workload)
            observers.append(outcome)
            folder = Path(files.enter_context(tempfile.TemporaryDirectory()))
            files.enter_context(swf_file(folder / "month.swf", outcome))
        result = licorne.simulate(workload, pods=False, observers=observers)
    measured.tell("simulated with figures" if report else "simulated")
    if not report:
        return result, ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_report(folder, [collector.figures(result)], made="a day")
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir()))).hexdigest()
    measured.tell("reported")
    return result, digest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.month", description="Simulate a month of a million pods.")
    parser.add_argument("--load", type=float, help="the factor of all arrivals; 1 by default")
    parser.add_argument("--report", action="store_true", help="collect the figures of a report and draw it")
    parser.add_argument("--swf", action="store_true", help="write a log in the Standard Workload Format")
    given = parser.parse_args()
    whole = Measured()
    found, drawn = month(given.load, report=given.report, swf=given.swf)
    whole.tell("all")
    print(f"{found.asks:,} pods, {found.placed:,} placed, {found.simulated_s / 86400:.1f} days")
    print(f"digest of the decisions {found.digest}")
    if drawn:
        print(f"digest of the report {drawn}")
