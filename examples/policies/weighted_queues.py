"""A queue order: weighted fair sharing. The queue is next that uses the least for its weight, a property of the queue."""

from __future__ import annotations

from licorne import Policy
from licorne.sim.policies import Queue


class WeightedQueues(Policy):
    """A queue without the property `weight` has the weight 1."""

    def queue_key(self, queue: Queue) -> float:
        """Return the cores that a queue uses, divided by its weight."""
        return queue.used.get("vcore", 0) / float(queue.properties.get("weight", "1"))
