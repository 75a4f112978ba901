"""The simulator: the core under a virtual clock, with a model of a resource manager.

`licorne.simulate` runs a workload. The names in `__all__` belong to it, and are public as it is (docs/reference/versions.md):

    Result, PodRecord       what a simulation returns
    Observer                base of objects that hear what happens during a simulation
    Series, SeriesRow       an observer that samples the usage of queues at equal intervals

Modules, by responsibility: `inputs` makes the core's messages of the lines of a workload (`licorne.workload`). `model` is the
resource manager, `jobs` holds jobs back in a strict order; `registration` registers it, `simulation` connects it to a scheduler,
`runner` is the clock, and `collector` keeps garbage collection out of the way. `gauges`, `use`, `pods`, `times`, `series`,
`gangs`, `evictions`, `refusals`, `unplaced` and `reasons` are the observations, `observer` what a program may watch, `configuration`
and `report` the result, `comparison` two of them side by side, `verification` a second run, `swf_log` the outcome as a log of a
batch system. `policies` lets users decide in place of the scheduler.

Nothing here decides where a pod runs: that is the core's task, and it is the same core as in a live cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.sim.observer import Observer
    from licorne.sim.pods import PodRecord
    from licorne.sim.report import Result
    from licorne.sim.series import Series, SeriesRow

__all__ = [
    "Observer",
    "PodRecord",
    "Result",
    "Series",
    "SeriesRow",
]

_WHERE = {
    "Observer": "licorne.sim.observer",
    "PodRecord": "licorne.sim.pods",
    "Result": "licorne.sim.report",
    "Series": "licorne.sim.series",
    "SeriesRow": "licorne.sim.series",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
