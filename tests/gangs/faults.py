"""Faults planted in gangs with placeholders: the laws must notice each of them within some hundred gangs.

Run as a program this plants one after the other, and prints a line for each: how many gangs it took, and what was wrong.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from common.planting import raised_by_a_law
from gangs import laws
from licorne.core.base.states import ApplicationState
from licorne.core.gangs import placeholders, replacement, timeout

ENOUGH = 400
"""A fault that is not caught in so many gangs is not caught."""


def _twice(sound: Callable[..., Any]) -> Callable[..., Any]:
    def twice(self: Any, *arguments: Any) -> Any:
        sound(self, *arguments)
        return sound(self, *arguments)

    return twice


def _nothing(_sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_, **__: None


def _no(_sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: False


def _uncounted(sound: Callable[..., Any]) -> Callable[..., Any]:
    def ended(self: Any, app: Any, alloc: Any, timed_out: bool) -> None:
        app.gang.groups[alloc.task_group].released -= 1
        sound(self, app, alloc, timed_out)

    return ended


def _while_accepted(sound: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: Any, app: Any, gang: Any) -> None:
        if app.state is ApplicationState.ACCEPTED:
            sound(self, app, gang)

    return start


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an ended placeholder is not counted": (placeholders.Gangs, "ended", _uncounted),
    "real asks are not woken": (placeholders.Gangs, "settle", _nothing),
    "a dropped placeholder is not counted": (placeholders.Gangs, "dropped", _nothing),
    "the clock never runs": (placeholders.Gangs, "_start_clock", _nothing),
    "late placeholders have no clock": (placeholders.Gangs, "_start_clock", _while_accepted),
    "a hard gang is left alone": (timeout, "_fail", _nothing),
    "pending placeholders stay": (timeout, "_drop_pending", _nothing),
    "one in flight stays on a node": (replacement.Replacement, "_off_node", _nothing),
    "one in flight is forgotten": (replacement.Replacement, "_unlink", _nothing),
    "a placeholder is taken for gone": (placeholders.TaskGroup, "has_placeholder", _no),
    "those in flight survive a failure": (replacement.Replacement, "abandon", lambda _: lambda *_: []),
    "a release of one in flight is ignored": (replacement.Replacement, "withdraw", _nothing),
    "one that was resized comes again": (replacement.Replacement, "resize", _no),
}


FIRST: dict[str, list[tuple[Any, ...]]] = {
    "pending placeholders stay": [*[("place", 0, 2, "h")] * 6, ("run", None), ("time", 61)],
    "one that was resized comes again": [("run", None), ("resize", 3, 2)],
}
"""What comes first, so that faults that need a rare situation are met soon."""


def caught(name: str) -> str:
    """Plant the fault and return what shows it, empty if nothing does. An error that is no broken law is raised."""
    where, method, broken = FAULTS[name]
    rng = random.Random(name)
    with patch.object(where, method, broken(getattr(where, method))):
        for number in range(1, ENOUGH + 1):
            try:
                laws.lived(rng, *FIRST.get(name, []))
            except AssertionError as error:
                if not raised_by_a_law(error, laws):
                    raise
                return f"caught after {number} gangs: {str(error).splitlines()[0]}"
    return ""


if __name__ == "__main__":
    for name in sys.argv[1:] or FAULTS:
        sys.stdout.write(f"{name}: {caught(name) or 'not caught'}\n")
