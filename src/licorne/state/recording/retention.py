"""Which files of a recording are removed when it becomes too large or too old.

Whole runs go first, the oldest before the others, since each can be repeated without those before it. The run that is being
recorded loses its beginning: its oldest segments, as long as a checkpoint that can be read lies in a later one. What is left
of it begins at its oldest checkpoint. The checkpoints of a segment are removed before the segment itself, so that a crash
between any two removals leaves a run that can be repeated.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from .bounds import Bounds
from .checkpoints import place_of
from .checkpoints import read as read_saved
from .folder import RecordingError, checkpoints_in, runs_in, segment_number, segments_in

RUNS_MAX: Final = 1_000
"""Most runs that a recording keeps, however small they are; the oldest go first."""


def make_room(folder: Path, current: Path, bounds: Bounds, room: int) -> int:
    """Remove runs and segments of a recording until it obeys its bounds with `room` bytes more, which are to be written next.

    Args:
        folder: the recording.
        current: the run that is being recorded, of which only the beginning may be removed.
        bounds: how large and how old the recording may be.
        room: bytes.

    Returns:
        The bytes of what is left; with `room` they are more than the bound if nothing else can be removed.
    """
    sizes = {run: sum(file.stat().st_size for file in files_in(run)) for run in runs_in(folder)}
    left = sum(sizes.values())
    oldest_s = time.time() - bounds.age_max_s
    runs = len(sizes)
    for run, size in sizes.items():
        segments = segments_in(run)
        ended_s = max((segment.stat().st_mtime for segment in segments), default=0.0)
        if run != current and (runs > RUNS_MAX or left + room > bounds.bytes_max or ended_s < oldest_s):
            shutil.rmtree(run)
            runs -= 1
            left -= size

    def is_kept(segment: Path) -> bool:
        return left + room <= bounds.bytes_max and segment.stat().st_mtime >= oldest_s

    if all(map(is_kept, segments_in(current)[:1])):  # so that no checkpoint is read, as is usual
        return left
    for segment in _expendable(current):
        if is_kept(segment):
            break
        left -= _remove(segment)
    return left


def files_in(run: Path) -> list[Path]:
    """Return all files of a run that were completed: its segments and its checkpoints."""
    return [*segments_in(run), *checkpoints_in(run)]


def _expendable(run: Path) -> list[Path]:
    """Return the segments before the one in which the newest checkpoint that can be read begins, the oldest first."""
    for path in reversed(checkpoints_in(run)):
        try:
            needed = read_saved(path).place.segment
        except RecordingError:
            continue  # one that is damaged serves nobody
        return [segment for segment in segments_in(run) if segment_number(segment) < needed]
    return []


def _remove(segment: Path) -> int:
    """Remove the oldest segment of a run, and before it the checkpoints in it; returns how many bytes that were."""
    number, removed = segment_number(segment), 0
    for file in [*(path for path in checkpoints_in(segment.parent) if place_of(path).segment <= number), segment]:
        removed += file.stat().st_size
        file.unlink()
    return removed
