"""Policies of one's own: orders of nodes, queues and applications, and a choice of device, as a few lines of Python.

interface   what somebody writes: the class `Policy`, and what its methods are given
views       the objects that they are given, which are read from the scheduler
loading     find a policy by its name, and the digest of its source
calls       call a policy: check its answers, and say what is wrong with them
watch       end a call that takes too long
orders      connect policies with the scheduler and the book of devices

docs/understand/own-policies.md says why they are hooks of the core and not predicates of the resource manager. The names in
`__all__` are public (docs/reference/versions.md).
"""

from __future__ import annotations

from licorne.sim.policies.interface import Key, Policy, PolicyError
from licorne.sim.policies.views import Application, Node, PlannedPod, Pod, Queue

__all__ = ["Application", "Key", "Node", "PlannedPod", "Pod", "Policy", "PolicyError", "Queue"]
