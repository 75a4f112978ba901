"""Renews the baseline of the guard: `PYTHONPATH=tests:. python -m guard.renew`. Prints what changed.

The commit must say why: the baseline is the record of how much work is right. Plain Python counts, never the compiled
modules, which may be older than their text. Lines are renewed for the version of Python that runs this; for others,
renew with each of them. With LICORNE_GUARD_CALLGRIND=1 the instructions of the compiled modules are renewed as well.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from guard import callgrind
from guard.baseline import FILE, INSTRUCTIONS, LINES, PYTHON, WORK, load, save
from guard.worker import count


def changes(old: Any, new: Any, name: str = "") -> list[str]:
    """Lines that name the numbers that differ."""
    if isinstance(new, dict) or isinstance(old, dict):
        olds, news = (each if isinstance(each, dict) else {} for each in (old, new))
        keys = sorted(olds.keys() | news.keys())
        return [line for key in keys for line in changes(olds.get(key), news.get(key), f"{name}, {key}".lstrip(", "))]
    if old == new:
        return []
    share = f" ({(new - old) / old:+.1%})" if old and new is not None else ""
    was, now = ("none" if number is None else f"{number:,}" for number in (old, new))
    return [f"{name}: {was} -> {now}{share}"]


def main() -> None:
    """Count anew and write the baseline."""
    counted = count()
    old, new = load(), load()
    new[WORK] = {case: work for case, (work, _) in counted.items()}
    new.setdefault(LINES, {})[PYTHON] = {case: lines for case, (_, lines) in counted.items()}
    if os.environ.get(callgrind.VARIABLE) == "1":
        new.setdefault(INSTRUCTIONS, {})[callgrind.toolchain()] = callgrind.instructions()
    save(new)
    lines = changes(old, new) or ["no number changed"]
    others = sorted(new[LINES].keys() - {PYTHON})
    if others:
        lines.append(f"lines are those of Python {PYTHON}; renew with these too: {', '.join(others)}")
    sys.stdout.write("\n".join([*lines, f"written: {FILE.name}"]) + "\n")


if __name__ == "__main__":
    main()
