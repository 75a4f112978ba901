"""Dumps of schedulers in this process, as REST gives them."""

from __future__ import annotations

from typing import Any

import msgspec

from licorne.host.web.rest.state import full_state

__all__ = ["comparable", "full_state"]


def comparable(dump: bytes) -> dict[str, Any]:
    """Return of a dump what a restored scheduler must have in common with the one that was dumped."""
    found = msgspec.json.decode(dump)
    for app in found.get("applications", ()):
        for name in (
            "stateLog",
            "maxUsedResource",
            "resourceHistory",
            "startTime",
            "applicationState",
            "hasReserved",
            "reservations",
        ):
            app.pop(name, None)
        for ask in app.get("requests", ()):
            for name in (
                "allocationLog",
                "schedulingAttempted",
                "triggeredScaleUp",
                "triggeredPreemption",
                "waitingReasons",
            ):
                ask.pop(name, None)
        for alloc in app.get("allocations", ()):
            for name in ("allocationTime", "allocationDelay", "placeholderUsed"):
                alloc.pop(name, None)
        app["allocations"] = sorted(app.get("allocations", ()), key=lambda each: each["allocationKey"])
    for part in found.get("nodes", ()):
        for node in part["nodesInfo"]:
            for name in ("reservations", "isReserved"):
                node.pop(name, None)
            for alloc in node.get("foreignAllocations", ()):
                alloc.pop("allocationTime", None)
            for alloc in node.get("allocations", ()):
                for name in ("allocationTime", "allocationDelay", "placeholderUsed"):
                    alloc.pop(name, None)
            node["allocations"] = sorted(node.get("allocations", ()), key=lambda each: each["allocationKey"])
    return {
        "applications": sorted(found.get("applications", ()), key=lambda each: each["applicationID"]),
        "nodes": found.get("nodes"),
        "queues": [_without_runs(queue) for queue in found.get("queues", ())],
        "placementRules": found.get("placementRules"),
    }


def _without_runs(queue: dict[str, Any]) -> dict[str, Any]:
    """Return a queue without what depends on the states of applications."""
    shown = {key: value for key, value in queue.items() if key not in ("runningApps", "allocatingAcceptedApps")}
    shown["children"] = [_without_runs(child) for child in queue.get("children", ())]
    return shown
