"""What follows from each change of the cluster and from each decision, as commands. It does nothing itself.

From the top down, as the imports point:

- `manager`: namespaces, priority classes and nodes; `decisions`: what the scheduler says; `diagnostics`: what a state dump shows.
- `lifecycle`: the way of each pod; `applications`: their beginning and end; `gangs`: gangs with placeholder pods;
  `pod_groups`: native pod groups.
- `holding`: takes pods back from the scheduler; `waiting`: what pods that wait are told.
- `volumes`: claims and volumes, and the pods that these concern; `binding_volumes`: how claims of a pod with a node are bound;
  `turns`: pods that are asked for one after the other.
- `claims`: attempts to have the claims of a pod with a node get volumes and devices.
- `devices`: claims of devices, the pods that these concern, and what is written for a pod with a node.
- `budgets`: disruption budgets. `foreign`: pods of other schedulers.
- `outbox`: what is told to the scheduler and the API server; `commands`: what is to be done there.
- `records`: what is remembered; `stages`: the stages of a pod, as a table.
"""

from __future__ import annotations

from .manager import Manager
from .outbox import Outbox

__all__ = ["Manager", "Outbox"]
