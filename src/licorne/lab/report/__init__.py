"""Reports: figures of a simulation as pictures, tables and files, on one page that needs no network.

    Collector               an observer that collects the figures of a simulation
    Figures                 what it has collected
    write_report            write the figures of one or several simulations into a folder

Modules, from the top down: `folder` writes the files of a report, `page` the HTML, with `sections`, which says what is
shown; `plots` and `drawing` draw, `tables` has the rows that stand behind the pictures and in the files. `collector` collects
while a simulation runs, in bounded memory: `grid` divides the time, `fairness` and `fragments` say what is computed from a state,
`spreads` what from the times of pods. `figures` declares the result.

Figures can be collected, and read as JSON, without other packages. Pages and files need those of the extra `report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.lab.report.collector import Collector
    from licorne.lab.report.figures import Figures
    from licorne.lab.report.folder import write_report

__all__ = ["Collector", "Figures", "write_report"]

_WHERE = {
    "Collector": "licorne.lab.report.collector",
    "Figures": "licorne.lab.report.figures",
    "write_report": "licorne.lab.report.folder",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
