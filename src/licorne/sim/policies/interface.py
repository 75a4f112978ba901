"""What somebody writes who wants to try a policy: a subclass of `Policy` with the methods that are wanted.

```python
class MostUsedFirst(Policy):
    def node_key(self, pod, node):
        return node.free.get("vcore", 0)
```

A key works like that of `sorted`: what has the smallest comes first, and equal keys are settled by the scheduler's own order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.sim.policies.views import Application, Node, PlannedPod, Pod, Queue

Key = float | str | tuple[float | str, ...]
"""What a key may be: a number that is not NaN, a text, or a tuple of these; the same kind of key from each call of a method."""

METHODS = ("node_key", "choose_node", "queue_key", "application_key", "choose_device")
"""What a policy may decide, by the method that it overrides."""


class PolicyError(ValueError):
    """A policy that cannot be used: not found, or it raised, answered nonsense, or took too long.

    The text names the policy, the call, what is wrong with it, and what was expected.
    """


class Policy:
    """Base of policies: override at least one method besides `begin`. What is not overridden stays as the scheduler does it.

    Each simulation makes an object of its own, without arguments, if it is given the class or its name. `now_s` is the virtual
    time in seconds, set before each call. What the methods are given is there to be read, during the call.

    What a policy cannot change is what fits where: quotas, limits, constraints and room are the scheduler's business.
    """

    now_s: float = 0.0

    def begin(self, pods: Iterable[PlannedPod]) -> None:
        """Get ready for a simulation; called once, before anything happens in it, and before any other method.

        `pods` are those of the workload, in order of its lines, and can be iterated over more than once; where the workload
        changes an ask, it is there once more. The time of a call begins anew with each pod that is handed out.
        """

    def node_key(self, pod: Pod, node: Node) -> Key:
        """Return the key of a node for a pod, called for each node on which the pod fits; the pod takes the smallest."""
        raise NotImplementedError

    def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> Node | str | None:
        """Return which of the nodes on which a pod fits it takes, or its id, instead of giving keys to all of them.

        `nodes` come in the scheduler's order, and are looked up as they are iterated over, which is possible once. None: the
        pod waits, and is asked about again at the next moment at which something happens. With such a policy the scheduler
        reserves no nodes for pods that wait, unless the setting `reservation.enabled` says so.
        """
        raise NotImplementedError

    def queue_key(self, queue: Queue) -> Key:
        """Return the key of a queue, compared with those of its siblings that have something to try; the smallest is next."""
        raise NotImplementedError

    def application_key(self, application: Application) -> Key:
        """Return the key of an application, compared with those of the same queue that have something to try."""
        raise NotImplementedError

    def choose_device(self, pod: Pod, node: Node, share: int) -> int:
        """Return the index of the device of a node that a pod's share of one is placed on, in `node.devices`.

        The device must have `share` thousandths left, which is `pod.devices.each`. The node is shown as it is without the pod.
        Whole devices are not asked about: those of lowest index are taken, as nothing tells untouched ones apart.
        """
        raise NotImplementedError


def decided_by(policy: type[Policy]) -> tuple[str, ...]:
    """Return the names of the methods that a policy overrides."""
    return tuple(name for name in METHODS if getattr(policy, name) is not getattr(Policy, name))
