"""A simulated cluster to try the service with: `licorne serve --demo` runs it beside the service.

run       the thread that drives the demonstration against a real service, and the list of commands to look at it
manager   the resource manager: lines and answers in, requests out
scenario  an endless stream of lines, made from a seed and `cluster.yaml`: the cluster, its queues and its workload

The model of a resource manager is that of `licorne.sim`.
"""

from __future__ import annotations

from licorne._extras import require

require("service")

from licorne.grpc.demo.run import Demonstration, sights

__all__ = ["Demonstration", "sights"]
