"""A simulated cluster to try the service with: `licorne serve --demo` runs it beside the service.

run            the thread that drives the demonstration against a real service, and the list of commands to look at it
manager        the resource manager: lines and answers in, requests out
books          its state: nodes, applications, pods, and their next events
requests       makes requests of the 1.9 interface from lines
scenario       the cluster and its workload: an endless stream of lines, made from a seed
configuration  the queues

The lines, and a resource manager's work for gangs, are those of `licorne.sim`. The simulator's own resource manager
cannot be used: it owns the scheduler and its clock, and keeps all it has seen for its report. This one gets decisions
whenever they come, and drops what has ended.
"""

from __future__ import annotations

from licorne.demo.run import Demonstration, sights

__all__ = ["Demonstration", "sights"]
