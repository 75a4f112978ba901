"""Which nodes running pods keep others off by their required anti-affinity, as kube-scheduler 1.37 says it. Pure.

What else a pod asks of a node reaches the scheduler as node constraints and amounts (`licorne.kube.pods`), which it
compares node by node and wakes pods by.

- `anti_affinity`: which nodes the required anti-affinity of running pods keeps other pods off, followed change by change;
  `terms`: one term, and which pods it matches; `selectors`: which labels a selector means.
"""

from __future__ import annotations

from .anti_affinity import ExistingAntiAffinity
from .selectors import selects

__all__ = ["ExistingAntiAffinity", "selects"]
