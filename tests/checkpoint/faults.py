"""Faults to plant: an attribute that is left out of checkpoints, so that a restored scheduler begins with another value.

Run as a program, `faults.py NAME`, this plants one fault and prints after how many histories it was noticed. It runs on plain
Python, where an object whose attribute was forgotten raises an error; compiled code would take it for 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from checkpoint import histories
from common.planting import raised_by_a_law
from licorne.core.checkpoint.tables import table_of

SOUND: Final = "nothing"
TRIES: Final = 8
STEPS: Final = 130
FAULTS: Final[dict[str, Callable[[], Any]]] = {
    "Application.backoff_until": int,
    "Application.timer": lambda: None,
    "Ask.attempted": bool,
    "Ask.deadline": lambda: None,
    "Parking.failed": dict,
    "Partition._last_moment": int,
    "Timers._heap": list,
    "Tracker.blocked": dict,
    "Uuids.count": int,
}
"""Attributes, and what makes the value that a restored object has instead."""


def main(name: str) -> None:
    """Plant the fault, and print what was noticed."""
    cls, _, attribute = name.partition(".")
    if name != SOUND:
        table = table_of(cls)
        del table.fields[attribute]  # type: ignore[attr-defined]
        table.transient[attribute] = FAULTS[name]  # type: ignore[attr-defined]
    for seed in range(1 if name == SOUND else TRIES):
        for first_interface in (False, True):
            try:
                histories.compare(STEPS, seed, first_interface=first_interface, often=0.15)
            except Exception as error:
                # The product crashes where it looks at what was left out, or refuses the state when it restores it.
                if not raised_by_a_law(error, histories, crashes=Exception):
                    raise
                sys.stdout.write(f"{name}: caught after {seed + 1} histories: {str(error).splitlines()[0][:80]}\n")
                return
    sys.stdout.write(f"{name}: not caught\n")


if __name__ == "__main__":
    main(sys.argv[1])
