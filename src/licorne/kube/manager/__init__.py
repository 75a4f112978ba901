"""What follows from each change of the cluster and from each decision, as commands. It does nothing itself.

- `manager`: nodes, pods and applications; `decisions`: the callbacks of the scheduler; `gangs`: gangs with placeholder pods.
- `anti_affinity`: tells the scheduler what running pods keep off; `waiting`: what pods that wait are told.
- `diagnostics`: what a state dump shows of them.
- `records`: what is remembered of each pod and application; `stages`: the stages of a pod, as a table.
- `commands`: what is to be done at the API server.
"""

from __future__ import annotations

from .manager import Manager

__all__ = ["Manager"]
