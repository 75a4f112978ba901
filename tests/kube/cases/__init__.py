"""What can be seen of licorne from outside, on a real control plane, as cases: given, when, then.

Each module has the cases of some sections of docs/spec/k8shim.md, as tables where cases are alike. A case has a namespace
of its own and, where it needs more than the queues and nodes that all share, nodes and a licorne of its own; so cases run
at the same time, and `kube/test_end_to_end.py` reports each as a test.

- `place`: what a case works with.
- `applications`, `amounts`, `gangs`, `placing`, `refreshed`, `restarted`, `running`, `strange`, `together`, `told`, `workloads`: the cases; each says of which sections.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .place import Place

Run = Callable[[Place], None]


class Case(NamedTuple):
    """A case: the section of the specification, its three sentences, and what does and checks it."""

    section: str
    given: str
    when: str
    then: str
    run: Run

    def __str__(self) -> str:
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.given} {self.then}".lower())
        return f"{self.section}-{words[:70].strip('-')}"


class Cases(list[Case]):
    """The cases of a module. Called with the sentences of a case, it adds the function below it."""

    def __call__(self, section: str, given: str, when: str, then: str) -> Callable[[Run], Run]:
        """Return a decorator that adds a case."""

        def add(run: Run) -> Run:
            self.append(Case(section, given, when, then, run))
            return run

        return add


__all__ = ["Case", "Cases", "Place"]
