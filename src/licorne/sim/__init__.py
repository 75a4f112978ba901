"""The simulator: the core under a virtual clock, with a model of a resource manager.

`licorne.simulate` runs a workload. The names in `__all__` belong to it, and are public as it is (docs/reference/versions.md):

    load_workload           read a workload, a scenario or a recording; a scenario with a choice of seed and load
    Workload, WorkloadError what that returns, and what it raises
    Result, PodRecord       what a simulation returns
    Table                   rows of a result as a table that polars, pandas and others read
    Observer                base of objects that hear what happens during a simulation
    Outline, ClassOutline   what `licorne.Scenario.outline` returns: what a scenario comes to
    ScenarioError           what `licorne.Scenario` raises
    Series, SeriesRow       an observer that samples the usage of queues at equal intervals

Modules, by responsibility: `lines` defines the lines of a workload file; `workload` reads and checks such files; `traces` turns
what others have recorded into the same lines; `reading` reads what can be simulated; `scenarios` makes lines
from a description in YAML and a seed; `inputs` makes the core's messages of them. `model` is the resource manager, `jobs` holds jobs back in a strict
order, by the keys of `joborders`; `simulation` connects it to a scheduler, `runner` is the clock, `devices` the book of the
nodes' devices, such as GPUs. `gauges`, `use`, `pods`, `times` and `series` are the observations (`measure` has
seconds and percentiles), `report` the result, `comparison` two
of them side by side; `row_tables` hands observations to programs as tables, `row_files` writes them as files, `finished` gives a file its name when it is complete, `script` the trace that is compared with recordings.
`policies` lets users decide in place of the scheduler. `papers` makes published tables again.

Nothing here decides where a pod runs: that is the core's task, and it is the same core as in a live cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.sim.observer import Observer
    from licorne.sim.pods import PodRecord
    from licorne.sim.reading import load_workload
    from licorne.sim.report import Result
    from licorne.sim.row_tables import Table
    from licorne.sim.scenarios.faults import ScenarioError
    from licorne.sim.scenarios.outline import ClassOutline, Outline
    from licorne.sim.series import Series, SeriesRow
    from licorne.sim.workload import Workload, WorkloadError

__all__ = [
    "ClassOutline",
    "Observer",
    "Outline",
    "PodRecord",
    "Result",
    "ScenarioError",
    "Series",
    "SeriesRow",
    "Table",
    "Workload",
    "WorkloadError",
    "load_workload",
]

_WHERE = {
    "ClassOutline": "licorne.sim.scenarios.outline",
    "Observer": "licorne.sim.observer",
    "Outline": "licorne.sim.scenarios.outline",
    "PodRecord": "licorne.sim.pods",
    "Result": "licorne.sim.report",
    "ScenarioError": "licorne.sim.scenarios.faults",
    "Series": "licorne.sim.series",
    "SeriesRow": "licorne.sim.series",
    "Table": "licorne.sim.row_tables",
    "Workload": "licorne.sim.workload",
    "WorkloadError": "licorne.sim.workload",
    "load_workload": "licorne.sim.reading",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
