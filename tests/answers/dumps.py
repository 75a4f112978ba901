"""Dumps of schedulers in this process, as REST gives them."""

from __future__ import annotations

from typing import Any

import msgspec

from licorne.host.web.rest.state import full_state

__all__ = ["comparable", "full_state"]


def comparable(dump: bytes) -> dict[str, Any]:
    """Return of a dump what a restored scheduler must have in common with the one that was dumped."""
    found = msgspec.json.decode(dump)
    apps = found.get("applications", ())
    nodes = [node for part in found.get("nodes", ()) for node in part["nodesInfo"]]
    for holder in (*apps, *nodes):
        for alloc in holder.get("allocations", ()):
            _drop(alloc, "allocationTime", "allocationDelay", "placeholderUsed")
        holder["allocations"] = sorted(holder.get("allocations", ()), key=lambda each: each["allocationKey"])
    for app in apps:
        _drop(app, "stateLog", "maxUsedResource", "resourceHistory", "startTime", "applicationState")
        _drop(app, "hasReserved", "reservations")
        for ask in app.get("requests", ()):
            _drop(ask, "allocationLog", "schedulingAttempted", "waitingReasons")
            _drop(ask, "triggeredScaleUp", "triggeredPreemption")
    for node in nodes:
        _drop(node, "reservations", "isReserved")
        for alloc in node.get("foreignAllocations", ()):
            _drop(alloc, "allocationTime")
    return {
        "applications": sorted(found.get("applications", ()), key=lambda each: each["applicationID"]),
        "nodes": found.get("nodes"),
        "queues": [_without_runs(queue) for queue in found.get("queues", ())],
        "placementRules": found.get("placementRules"),
    }


def _drop(found: dict[str, Any], *names: str) -> None:
    for name in names:
        found.pop(name, None)


def _without_runs(queue: dict[str, Any]) -> dict[str, Any]:
    """Return a queue without what depends on the states of applications."""
    shown = {key: value for key, value in queue.items() if key not in ("runningApps", "allocatingAcceptedApps")}
    shown["children"] = [_without_runs(child) for child in queue.get("children", ())]
    return shown
