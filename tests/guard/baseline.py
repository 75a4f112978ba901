"""The committed counts, `baseline.json`, and what it means to exceed them.

A count may exceed its baseline by 2 %, or by 5 where that is more: many a count is so small that 2 % of it is nothing.
A count that the baseline does not have, or that no longer exists, is a fault too, or else the guard would quietly watch less
and less. A count that has fallen far is no fault, but worth a hint: up to the old number it could grow again unseen.

Only the scheduler's own counters fail a test by this measure. Calls and lines of plain Python also grow when a helper is
extracted and nothing else is done than before, so what is a fault by this measure is advice there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guard.cases import Counts

FILE = Path(__file__).with_name("baseline.json")
GROWTH = 0.02
GROWTH_OF_SMALL = 5
FALL = 0.10
SHOWN = 40
"""So many lines of a kind are shown; a slip in a hot place makes nearly every count grow."""
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
WORK, LINES, INSTRUCTIONS = "work", "plain python", "instructions"
"""The parts of the baseline. The first has the same counts everywhere; the second, one set for each minor version of
Python; the third, one set for each combination of compiler and Python."""
COMMAND = "PYTHONPATH=tests:. python -m guard.renew"


@dataclass
class Verdict:
    """Differences from the baseline: faults, and counts that have fallen."""

    faults: list[str] = field(default_factory=list)
    fallen: list[str] = field(default_factory=list)

    def complaint(self) -> str:
        """Why the test fails, and what to do."""
        return (
            f"more work than the baseline allows:\n{_some(self.faults)}\n"
            f"If that is as it must be, renew the baseline, and say why in the commit: {COMMAND}"
        )

    def advice(self) -> str:
        """Why one should look at what plain Python does, though the test does not fail."""
        return (
            f"plain Python runs more than the baseline has; an extracted helper does that, and so does work that no "
            f"counter of the scheduler sees:\n{_some(self.faults)}\n"
            f"If it is as it must be, renew the baseline, and say why in the commit: {COMMAND}"
        )

    def hint(self) -> str:
        """That the baseline could be lower."""
        return f"nothing grew; far below the baseline, so renew it ({COMMAND}):\n{_some(self.fallen)}"


def _some(lines: list[str]) -> str:
    more = [f"  ... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join([f"  {line}" for line in lines[:SHOWN]] + more)


def compare(case: str, baseline: Mapping[str, int] | None, measured: Mapping[str, int]) -> Verdict:
    """Hold what a case counted against its baseline."""
    verdict = Verdict()
    if baseline is None:
        verdict.faults.append(f"{case}: the baseline has no such case")
        return verdict
    for name in sorted(baseline.keys() | measured.keys()):
        if name not in baseline:
            verdict.faults.append(f"{case}, {name}: {measured[name]:,}, of which the baseline knows nothing")
        elif name not in measured:
            verdict.faults.append(f"{case}, {name}: in the baseline, but no longer counted")
        else:
            _compare(verdict, f"{case}, {name}", baseline[name], measured[name])
    return verdict


def _compare(verdict: Verdict, what: str, was: int, now: int) -> None:
    share = f" ({(now - was) / was:+.1%})" if was else ""
    text = f"{what}: {was:,} -> {now:,}{share}"
    if now > max(was * (1 + GROWTH), was + GROWTH_OF_SMALL):
        verdict.faults.append(text)
    elif now < min(was * (1 - FALL), was - GROWTH_OF_SMALL):
        verdict.fallen.append(text)


def load() -> dict[str, Any]:
    """The baseline, empty if there is none."""
    baseline: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return baseline


def work_of(baseline: Mapping[str, Any], case: str) -> Counts | None:
    """The scheduler's own counters for a case."""
    counts: Counts | None = baseline.get(WORK, {}).get(case)
    return counts


def lines_of(baseline: Mapping[str, Any], case: str) -> Counts | None:
    """Calls and lines of plain Python for a case, under this version of Python."""
    counts: Counts | None = baseline.get(LINES, {}).get(PYTHON, {}).get(case)
    return counts


def save(baseline: Mapping[str, Any]) -> None:
    """Write it so that a difference shows what changed: sorted, a number a line."""
    FILE.write_text(json.dumps(baseline, indent=1, sort_keys=True) + "\n", encoding="utf-8")
