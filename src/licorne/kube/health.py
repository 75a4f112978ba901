"""What REST says of a process of `licorne kube`: its metrics, and whether it is healthy and ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from licorne.host.web.backend import HostCheck, HostFigures
from licorne.kube.api import Requests
from licorne.kube.lease import HeldLease
from licorne.kube.reading import Reading
from licorne.kube.results import Results
from licorne.kube.shadow import Shadow

NEWS_MAX_S: Final = 180.0
"""How old the last news of a kind may be: the API server tells about once a minute how far a watch is."""


@dataclass(frozen=True)
class Health:
    """The metrics and health checks of a process; `lease` and `shadow` are None where it has none."""

    reading: Reading
    results: Results
    requests: Requests
    lease: HeldLease | None
    shadow: Shadow | None

    def figures(self) -> HostFigures:
        """Return the metrics of this process, besides those of the scheduler."""
        ages = {(name,): round(age, 3) for name, age in self.reading.news_ages().items()}
        found: dict[str, Mapping[Any, float]] = {"licorne_news_age_seconds": ages}
        found["licorne_api_requests"] = self.requests.answers
        if self.shadow is not None:
            found["licorne_shadow_pods"] = {(outcome,): number for outcome, number in self.shadow.counts.items()}
        if self.lease is not None:
            found |= {"licorne_writes": self.results.counts, "licorne_lease_held": {(): float(self.lease.held())}}
        return found

    def checks(self) -> list[HostCheck]:
        """Return what health checks find."""
        old = [f"{name}: {age:.0f} s ago" for name, age in self.reading.news_ages().items() if age > NEWS_MAX_S]
        failing = self.results.failing()
        read = "The cluster has been read" if self.reading.begun else "Not read yet"
        made = [
            HostCheck("Cluster", self.reading.begun, "Check if the cluster has been read", read),
            HostCheck("News", not old, "Check if the API server still tells of changes", f"Kinds without news: {old}"),
            # No reason not to be ready: a webhook that denies the pods of one namespace must not hide REST.
            HostCheck(
                "Writes", not failing, "Check if writes succeed", f"Writes that fail: {failing}", readiness=False
            ),
        ]
        if self.lease is not None:
            who = f"The lease is held by {self.lease.holder or 'nobody'}; this process is {self.lease.identity}"
            made.insert(
                0, HostCheck("Lease", self.lease.held(), "Check if this process is the one that schedules", who)
            )
        return made
