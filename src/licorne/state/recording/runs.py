"""The runs of a recording, which of them holds a moment, and which applications came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from licorne.core.checkpoint import CheckpointError
from licorne.core.checkpoint.restore import read as read_checkpoint
from licorne.si.messages import AddApplication

from . import entries
from .blocks import Rest, read_blocks
from .checkpoints import Saved
from .checkpoints import read as read_saved
from .folder import UNREADABLE, RecordingError, checkpoints_in, read_manifest, runs_in, segment_number, segments_in


class Run(msgspec.Struct, frozen=True):
    """A run of a recording.

    `number`: of the run in the recording, from 1. `begins_ns`: the time from which on it can be repeated (ns); None if it
    has no complete entry yet, or if none of what is left can be used. `trimmed`: its beginning was removed, to make room or
    as it was too old, so it can be repeated from its oldest checkpoint on. `damage`: why nothing of its first segment counts;
    `torn`: as this block is only cut off, which may be one that is being written.
    """

    number: int
    folder: Path
    begins_ns: int | None
    trimmed: bool = False
    damage: str = ""
    torn: bool = False


def read_run(folder: Path) -> Run:
    """Return the run with a folder."""
    segments = segments_in(folder)
    number = int(folder.name.removeprefix("run-"))
    if segments and segment_number(segments[0]) > 1:
        saved = first_usable(folder)
        return Run(number, folder, saved.now_ns if saved is not None else None, trimmed=True)
    if not segments:
        return Run(number, folder, None)
    try:
        block = next(blocks := read_blocks(segments[0]))
    except StopIteration as end:
        rest: Rest = end.value
        torn = bool(rest.bytes) and not rest.damage
        damage = "its first block is cut off" if torn else rest.damage
        place = f"{folder.name}/{segments[0].name} is damaged at byte {rest.at:,}: {damage}; nothing of this run can be repeated"
        return Run(number, folder, None, damage=place if damage else "", torn=torn)
    except OSError as error:
        return Run(number, folder, None, damage=f"{folder.name}/{segments[0].name}: cannot be read: {error.strerror}")
    blocks.close()
    return Run(number, folder, next((entry[1] for entry in block if entry[0] == entries.TIME), 0))


def first_usable(folder: Path) -> Saved | None:
    """Return the oldest checkpoint of a run that can be read, and whose state is one of this version; None if none is."""
    for path in checkpoints_in(folder):
        try:
            saved = read_saved(path)
            read_checkpoint(saved.state)
        except (CheckpointError, RecordingError):
            continue
        return saved
    return None


def list_runs(folder: Path) -> list[Run]:
    """Return the runs of a recording, the oldest first.

    Raises:
        RecordingError: the folder is no recording.
    """
    read_manifest(folder)
    return [read_run(path) for path in runs_in(folder)]


def choose_run(folder: Path, number: int | None = None, at_ns: int | None = None) -> Run:
    """Return the run with a number, or else the last one that had begun at a time, or else the last one.

    Raises:
        RecordingError: there is no such run, or nothing of it can be repeated.
    """
    runs = list_runs(folder)
    begun = [each for each in runs if each.begins_ns is not None]
    if number is not None:
        fit = [each for each in runs if each.number == number]
        if not fit:
            known = ", ".join(str(each.number) for each in runs) or "none"
            raise RecordingError(f"{folder}: has no run {number}; there are: {known}")
    else:
        fit = [each for each in begun if at_ns is None or (each.begins_ns or 0) <= at_ns]
    if number is None and at_ns is None and runs and runs[-1].damage and not runs[-1].torn:
        raise RecordingError(f"{folder}: {runs[-1].damage}")
    if not fit or fit[-1].begins_ns is None:
        raise RecordingError(f"{folder}: {_why_none(runs, begun) if number is None else _why_none(fit, [])}")
    return fit[-1]


def _why_none(runs: list[Run], begun: list[Run]) -> str:
    if begun and begun[0].trimmed:
        return "holds nothing of this time any more: its bounds have had it removed"
    if begun:
        return "holds no run that had begun at this time"
    if any(each.trimmed for each in runs):
        return "the beginning of the run was removed, and no checkpoint of it can be used: use the licorne that recorded it"
    if runs and runs[-1].damage:
        return runs[-1].damage
    return "holds no run yet: no resource manager has registered"


def submitted_applications(run: Run) -> Iterator[AddApplication]:
    """Yield the applications of a run in the order in which they came, those that were refused too; nothing is repeated.

    Raises:
        RecordingError: the run cannot be read.
    """
    for segment in segments_in(run.folder):
        try:
            for block in read_blocks(segment):
                for entry in block:
                    if entry[0] == entries.INPUTS:
                        found = entries.decode_messages(entry[2])
                        yield from (each for each in found if isinstance(each, AddApplication))
        except (OSError, *UNREADABLE) as error:
            raise RecordingError(f"{segment}: is damaged: {error}") from None
