"""A simulated cluster to try the service with: `licorne serve --demo` runs it beside the service.

run            the thread that drives the demonstration against a real service, and the list of commands to look at it
manager        the resource manager: lines and answers in, requests out
scenario       the cluster and its workload: an endless stream of lines, made from a seed
configuration  the queues

The lines, and the model of a resource manager, are those of `licorne.sim`.
"""

from __future__ import annotations

from licorne._extras import require

require("service")

from licorne.grpc.demo.run import Demonstration, sights

__all__ = ["Demonstration", "sights"]
