# ruff: noqa: T201  # a command prints
"""`python -m bench.month`: simulates a month of 1,000 nodes and a million pods, and prints time and memory.

The scenario is `bench/month.yaml`. Its lines are made while it is simulated, and no record of a pod is kept, so memory is that
of the pods that are alive, of one number for each waiting time (percentiles need them all), and of what the scheduler keeps of
applications that have ended. The time is that of one process; making the lines is part of it.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import licorne
from licorne.sim import Result

SCENARIO = Path(__file__).with_name("month.yaml")


def month(load: float | None = None) -> tuple[Result, float, float, int]:
    """Return the result, wall-clock and processor seconds, and the largest memory of this process in MiB."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    workload = licorne.Scenario.read(SCENARIO).workload(load=load)
    result = licorne.simulate(workload, pods=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mib = peak >> (20 if sys.platform == "darwin" else 10)
    return result, time.perf_counter() - began_s, time.process_time() - began_cpu_s, peak_mib


if __name__ == "__main__":
    given = float(sys.argv[1]) if len(sys.argv) > 1 else None
    found, wall_s, cpu_s, memory_mib = month(given)
    print(f"{found.asks:,} pods, {found.placed:,} placed, {found.simulated_s / 86400:.1f} days")
    print(f"{wall_s:.1f} s ({cpu_s:.1f} s of processor time), {memory_mib:,} MiB at most")
    print(f"digest {found.digest}")
