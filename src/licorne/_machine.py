"""The resident memory of this process. Nothing here raises."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def rss_bytes() -> int:
    """Return the resident memory of this process, in bytes."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_rss_bytes()


def peak_rss_bytes() -> int:
    """Return the peak of this process's resident memory since `forget_peak` or its start, in bytes; 0 if not known."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
