"""Reports: figures of a simulation as pictures, tables and files, on one page that needs no network.

    Collector               an observer that collects the figures of a simulation
    Figures                 what it has collected
    write_report            write the figures of one or several simulations into a folder

Modules, from the top down: `folder` writes the files of a report, `page` the HTML, with `sections`, which says what is shown;
`plots` draws, `tables` has the rows that stand behind the pictures and in the files. `collector` collects while a simulation
runs, in bounded memory: `grid` divides the time, `fairness` and `fragments` say what is computed from a state, `spreads` what
from the times of pods. `figures` declares the result.

Figures can be collected, and read as JSON, without other packages. Pages and files need those of the extra `report`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.report.collector import Collector
    from licorne.report.figures import Figures
    from licorne.report.folder import write_report

__all__ = ["Collector", "Figures", "write_report"]

_WHERE = {
    "Collector": "licorne.report.collector",
    "Figures": "licorne.report.figures",
    "write_report": "licorne.report.folder",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module

    def __getattr__(name: str) -> object:
        """Return a public name from the module that defines it, imported at first use."""
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
