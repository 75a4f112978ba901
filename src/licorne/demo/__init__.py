"""A cluster to look at: what `licorne serve --demo` runs beside the service.

scenario    the cluster, its queues, and who asks for what when: an endless stream of lines, made from a seed
books       a resource manager's books: nodes, applications, pods, and what is to happen to them next
manager     the resource manager: lines and answers in, requests out
requests    lines as requests of the 1.9 interface
run         the thread that drives it against a real service, and the list of what to look at

The lines are those of `licorne.sim`, and so is what a resource manager does for gangs. The resource manager is another one
than the simulator's: that one owns the scheduler and its clock, and keeps all it has seen for its report; this one is
told of decisions when they come, and forgets what is over.
"""

from __future__ import annotations

from licorne.demo.run import Demonstration, sights

__all__ = ["Demonstration", "sights"]
