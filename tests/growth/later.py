"""Counts the lines of the core that an event runs, early and late: as good as its time, and the same on a busy machine.

Run as a program, with the hot modules as plain Python, whose lines can be counted: it prints a line for each kind of
objects, with the lines that some first events ran, and those that as many later ones did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from bench.soak.kinds import KINDS, events
from bench.soak.world import World

from licorne import core

CORE = str(Path(core.__file__).parent)
COUNTED_KINDS = tuple(name for name in KINDS if name != "types")
"""All but resource types: of these there are more later, so more work is right."""
EVENTS = 360
"""So many come and go between the first events that are counted and the last."""
COUNTED = 20
"""The work of so many is counted."""
CLEANED_S = 45
"""In so much time applications have completed, and the cleaner has removed their queues."""


def early_and_late(name: str) -> tuple[int, int]:
    """Return how many lines of the core the first events of a kind run, and how many as many later ones."""
    kind = msgspec.structs.replace(KINDS[name], alive=min(KINDS[name].alive, 20))
    later = 20 + int(EVENTS * min(1, 5 * kind.share))
    world = World()
    events(world, kind, 0, 20)
    world.rest(CLEANED_S)
    early = lines(lambda: events(world, kind, 20, COUNTED))
    events(world, kind, 20 + COUNTED, later)
    world.rest(CLEANED_S)
    return early, lines(lambda: events(world, kind, 20 + COUNTED + later, COUNTED))


def lines(act: Callable[[], None]) -> int:
    """Return how many lines of the core it runs."""
    counted = 0

    def count(_frame: FrameType, what: str, _: object) -> Any:
        nonlocal counted
        counted += what == "line"
        return count

    def enter(frame: FrameType, _what: str, _: object) -> Any:
        return count if frame.f_code.co_filename.startswith(CORE) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        act()
    finally:
        sys.settrace(before)
    return counted


if __name__ == "__main__":
    for name in COUNTED_KINDS:
        early, late = early_and_late(name)
        sys.stdout.write(f"{name} {early} {late}\n")
