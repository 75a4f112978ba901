"""Lost wake-ups that a test of its own must notice, as parking makes no difference to them.

Run as a program, `elsewhere.py EVENT`, this runs the test that `CAUGHT_ELSEWHERE` names, drops the event, runs the test
again, which must fail now, and prints the assertion that failed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from traceback import extract_tb

from common.planting import raised_by_a_law, replace
from licorne.core.waiting.wakeups import WakeUps
from parking import compare
from parking.faults import CAUGHT_ELSEWHERE


def caught(event: str) -> str:
    """Return how the test notices that the event is dropped; empty if it does not. Errors that are no failure are raised."""
    file, _, name = CAUGHT_ELSEWHERE[event].partition("::")
    module = import_module(file.removesuffix(".py").replace("/", "."))
    test = getattr(module, name)
    test()
    replace(WakeUps, event, lambda *_arguments: None)
    try:
        test()
    except AssertionError as error:
        if not raised_by_a_law(error, module, compare):
            raise
        return f"caught after 1 example: {extract_tb(error.__traceback__)[-1].line}"
    return ""


if __name__ == "__main__":
    sys.stdout.write(f"{caught(sys.argv[1]) or 'not caught'}\n")
