"""Whether a node takes a pod, and why not, as the filter plugins of kube-scheduler 1.37 say it. Pure.

Decisions are not made here: what a pod asks of a node reaches the scheduler as node constraints and amounts
(`licorne.kube.pods`), which it compares node by node and wakes pods by. This package says what a node and a pod mean to
each other in the words of Kubernetes, from the same constraints and amounts: for people who ask why a pod waits, for the
comparison with recorded verdicts of kube-scheduler, and for tests that look for a pod that some node would have taken.
Being apart from `pods`, which knows one object at a time, and from `manager`, which knows what was decided, it knows a
whole cluster at one moment and nothing of how that came about.

- `verdicts`: what each plugin says of a pod and a node; `snapshot`: the cluster that it says it of.
- `repulsion`: which nodes the required anti-affinity of running pods keeps other pods off, followed change by change;
  `terms`: one such demand, and which pods it means; `selectors`: which labels a selector means.
"""

from __future__ import annotations

from .repulsion import Repulsion
from .selectors import selects
from .snapshot import NodeState, Snapshot
from .verdicts import Code, Refusal, refused_at_once, verdict

__all__ = ["Code", "NodeState", "Refusal", "Repulsion", "Snapshot", "refused_at_once", "selects", "verdict"]
