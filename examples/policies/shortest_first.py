"""An application order: the one with the least work left to start first, by the times that users expect."""

from __future__ import annotations

from licorne import Policy
from licorne.sim.policies import Application


class ShortestFirst(Policy):
    """A pod whose time nobody knows counts as an hour."""

    def application_key(self, application: Application) -> float:
        """Return the core-seconds that the waiting pods of an application want."""
        return sum(pod.resources.get("vcore", 0) * (pod.requested_s or 3600) / 1000 for pod in application.waiting)
