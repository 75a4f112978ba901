"""Functions that stand for the simulation of a point: the processes of a sweep import them by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from licorne.lab.sweep import Outcome, Point, run_point


def noted(point: Point) -> Outcome:
    """Leave a file for each call beside the workload, and simulate."""
    beside = Path(point.workload).parent
    (beside / f"called-{time.monotonic_ns()}-{os.getpid()}").touch()
    return run_point(point)


def fragile(point: Point) -> Outcome:
    """Raise for load 2, be killed at load 3, leave without a word at load 4."""
    if point.load == 2:
        raise RuntimeError("a fault of the simulator")
    if point.load == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if point.load == 4:
        os._exit(7)
    return Outcome(asks=1)


def endless(point: Point) -> Outcome:
    """Write down the process, and never come back."""
    Path(point.workload).with_name(f"pid-{os.getpid()}").touch()
    time.sleep(3600)
    return Outcome()


def slow(point: Point) -> Outcome:
    """Simulate, and take a while."""
    time.sleep(0.5)
    return run_point(point)


def nothing(point: Point) -> Outcome:
    """Return at once."""
    return Outcome(asks=int(point.load or 0))
