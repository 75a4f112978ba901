"""Processor time of this process, the load that other processes put on the machine, and its memory before a measurement.

Linux shows all of these in `/proc`. On other systems a value that is not known is 0 or None; nothing here raises.
"""

from __future__ import annotations

import mmap
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)
"""The columns of `/proc/stat` that count as work: user, nice, system, irq, softirq, steal."""


class MachineUse(NamedTuple):
    """Wall-clock and processor seconds between two times.

    `kernel_s` is the kernel's part of `cpu_s`, most of it for first touches of memory. `other_cores`: the number of
    processors that other processes kept busy, None if it is not known.
    """

    wall_s: float
    cpu_s: float
    kernel_s: float
    other_cores: float | None


class Meter:
    """Measures what this process uses from the construction of the meter on."""

    def __init__(self) -> None:
        self._busy_s = _machine_busy_s()
        self._cpu_s = time.process_time()
        self._kernel_s = os.times().system
        self._started_s = time.perf_counter()

    def read(self) -> MachineUse:
        """Return what was used since the meter was made."""
        wall_s = time.perf_counter() - self._started_s
        cpu_s = time.process_time() - self._cpu_s
        kernel_s = os.times().system - self._kernel_s
        busy_s = _machine_busy_s()
        others = None
        if self._busy_s is not None and busy_s is not None and wall_s > 0:
            # `/proc/stat` counts ticks of 10 ms, so over a short time the difference may be slightly negative.
            others = max(0.0, busy_s - self._busy_s - cpu_s) / wall_s
        return MachineUse(wall_s, cpu_s, kernel_s, others)


def _machine_busy_s() -> float | None:
    try:
        columns = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return sum(int(columns[i]) for i in BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def forget_peak() -> None:
    """Reset the peak of resident memory, where the system can; elsewhere it stays that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def warm_memory(size_bytes: int) -> None:
    """Touch `size_bytes` of memory, at most half of what is free, and release it, so that later first touches are fast.

    The host of a virtual machine may take back memory that its guest does not use, and then the first touch of a page
    takes several times as long. A first run would be charged for that and a second one not, though it is not the
    scheduler's time.
    """
    with suppress(OSError, ValueError):
        size_bytes = min(size_bytes, os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE // 2)
        with mmap.mmap(-1, size_bytes) as memory:
            for start in range(0, size_bytes, mmap.PAGESIZE):
                memory[start] = 1


def cpu_model() -> str:
    """Return the model name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
