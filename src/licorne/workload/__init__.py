"""Workloads: what a simulation runs, or what another scheduler ran, as lines of JSON.

    load_workload           read a workload, a scenario or a recording; a scenario with a choice of seed and load
    Workload, WorkloadError what that returns, and what it raises
    Table                   rows that polars, pandas and others read
    Outline, ClassOutline   what `licorne.Scenario.outline` returns: what a scenario comes to
    ScenarioError           what `licorne.Scenario` raises

Modules: `lines` defines the lines of a workload file, with `devices` and `device_models`; `workload` reads and checks such
files; `reading` reads whatever can be simulated. `joborders` are the orders of a strict queue, `quantities` and `escaping` what
files of people need, `measure` seconds and percentiles. `row_tables` hands rows to programs as tables,
`row_files` writes them as files, `finished` gives a file its name when it is complete.

scenarios/      makes lines from a description in YAML and a seed
traces/         turns what others have recorded into the same lines
capture/        a workload from a running YuniKorn or licorne
yaml_files/     reads the YAML files that people write, and says what is wrong with them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.workload.reading import load_workload
    from licorne.workload.row_tables import Table
    from licorne.workload.scenarios.outline import ClassOutline, Outline
    from licorne.workload.scenarios.scenario import ScenarioError
    from licorne.workload.workload import Workload, WorkloadError

__all__ = ["ClassOutline", "Outline", "ScenarioError", "Table", "Workload", "WorkloadError", "load_workload"]

_WHERE = {
    "ClassOutline": "licorne.workload.scenarios.outline",
    "Outline": "licorne.workload.scenarios.outline",
    "ScenarioError": "licorne.workload.scenarios.scenario",
    "Table": "licorne.workload.row_tables",
    "Workload": "licorne.workload.workload",
    "WorkloadError": "licorne.workload.workload",
    "load_workload": "licorne.workload.reading",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
