"""Sweeps: many simulations, of each combination of workloads, configurations, loads, seeds and policies.

    run_point       simulate one point; a plain function, which an engine for many machines can call
    Point, Outcome  what that takes and returns
    read_sweep      read a sweep file, which says what is to be combined
    run_sweep       run what is missing of a sweep in a folder
    Engine          where points run; Processes: on this machine

Modules, from the top down: `page` and `table` show what came out, `intervals` computes confidence intervals, `running` runs
what a folder does not have yet, `on_ray` and `engines` points on a Ray cluster and on this machine, `inputs` takes their files to
other machines, `point` runs one of them, `plan` says which points there are, `document` reads sweep files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.lab.sweep.document import read_sweep
    from licorne.lab.sweep.engines import Engine, EngineError, Processes
    from licorne.lab.sweep.plan import Point, Sweep
    from licorne.lab.sweep.point import Outcome, run_point
    from licorne.lab.sweep.running import run_sweep

__all__ = ["Engine", "EngineError", "Outcome", "Point", "Processes", "Sweep", "read_sweep", "run_point", "run_sweep"]

_WHERE = {
    "Engine": "licorne.lab.sweep.engines",
    "EngineError": "licorne.lab.sweep.engines",
    "Processes": "licorne.lab.sweep.engines",
    "Outcome": "licorne.lab.sweep.point",
    "Point": "licorne.lab.sweep.plan",
    "Sweep": "licorne.lab.sweep.plan",
    "read_sweep": "licorne.lab.sweep.document",
    "run_point": "licorne.lab.sweep.point",
    "run_sweep": "licorne.lab.sweep.running",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
