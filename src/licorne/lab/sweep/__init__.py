"""Sweeps: many simulations, of each combination of workloads, configurations, loads, seeds and policies.

    run_point       simulate one point; a plain function, which an engine for many machines can call
    Point, Outcome  what that takes and returns
    read_sweep      read a sweep file, which says what is to be combined
    run_sweep       run what is missing of a sweep in a folder, by processes on this machine

Modules, from the top down: `page` and `table` show what came out, `intervals` computes confidence intervals, `running` runs
points by processes, `point` one of them, `plan` says which points there are, `document` reads sweep files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.lab.sweep.document import read_sweep
    from licorne.lab.sweep.plan import Point, Sweep
    from licorne.lab.sweep.point import Outcome, run_point
    from licorne.lab.sweep.running import run_sweep

__all__ = ["Outcome", "Point", "Sweep", "read_sweep", "run_point", "run_sweep"]

_WHERE = {
    "Outcome": "licorne.lab.sweep.point",
    "Point": "licorne.lab.sweep.plan",
    "Sweep": "licorne.lab.sweep.plan",
    "read_sweep": "licorne.lab.sweep.document",
    "run_point": "licorne.lab.sweep.point",
    "run_sweep": "licorne.lab.sweep.running",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
