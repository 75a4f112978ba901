"""What the machine says of this process and of others: memory, processor time, and how busy everybody else was.

Linux tells all of it in `/proc`. Elsewhere what is not known is 0 or None; nothing here raises.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)
"""user, nice, system, irq, softirq, steal: what `/proc/stat` counts as work."""


class MachineUse(NamedTuple):
    """What was used between two moments. `kernel_s` is the kernel's part of `cpu_s`, mostly for memory that is touched first.

    `other_cores`: how many processors others kept busy; None: not known.
    """

    wall_s: float
    cpu_s: float
    kernel_s: float
    other_cores: float | None


class Meter:
    """Counts from its making on."""

    def __init__(self) -> None:
        self._busy_s = _machine_busy_s()
        self._cpu_s = time.process_time()
        self._kernel_s = os.times().system
        self._started_s = time.perf_counter()

    def read(self) -> MachineUse:
        """What was used so far."""
        wall_s = time.perf_counter() - self._started_s
        cpu_s = time.process_time() - self._cpu_s
        kernel_s = os.times().system - self._kernel_s
        busy_s = _machine_busy_s()
        others = None
        if self._busy_s is not None and busy_s is not None and wall_s > 0:
            # Ticks of a hundredth of a second: a short time may come out a little below nothing.
            others = max(0.0, busy_s - self._busy_s - cpu_s) / wall_s
        return MachineUse(wall_s, cpu_s, kernel_s, others)


def _machine_busy_s() -> float | None:
    try:
        columns = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return sum(int(columns[i]) for i in BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def rss_bytes() -> int:
    """The memory that this process has now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_rss_bytes()


def peak_rss_bytes() -> int:
    """The most memory that this process has had, or has had since `forget_peak`; 0 where the system doesn't say."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Let the peak begin anew, where that can be had; elsewhere it stays that of the whole life of the process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def warm_memory(size_bytes: int) -> None:
    """Touch so much memory, at most half of what is free, and give it back: then it was in use a moment ago.

    The host of a virtual machine may take back what its guest has free, and then the first touch of a page takes several
    times as long. That would be measured in a first run and not in a second one, and it is not the scheduler's.
    """
    with suppress(OSError, ValueError):
        size_bytes = min(size_bytes, os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE // 2)
        with mmap.mmap(-1, size_bytes) as memory:
            for start in range(0, size_bytes, mmap.PAGESIZE):
                memory[start] = 1


def cpu_model() -> str:
    """What the processor calls itself."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
