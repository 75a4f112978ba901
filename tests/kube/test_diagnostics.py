"""What a state dump shows of the cluster (docs/spec/k8shim.md, section 15)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from licorne.kube.manager import diagnostics
from licorne.kube.objects import PriorityClass

from .places import Places

if TYPE_CHECKING:
    import pytest

SPEC = (Path(__file__).resolve().parents[2] / "docs/spec/k8shim.md").read_text(encoding="utf-8")


def shown(places: Places) -> dict[str, Any]:
    """Return `cache`, on the way that a state dump takes."""
    [found] = places.api.diagnostics().values()
    assert list(found) == ["cache", "held"]
    return found["cache"]  # type: ignore[no-any-return]


def small() -> Places:
    """Return a node with a pod of ours and one of another scheduler; a second one of ours waits."""
    places = Places()
    places.node("n", allocatable={"cpu": "1"})
    places.manager.class_seen(msgspec.convert({"metadata": {"name": "high"}, "value": 7}, PriorityClass))
    places.pod("foreign", node="n")
    for name in ("a", "b"):
        places.pod(name, containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    assert places.run() == {"a": "n"}
    return places


def fields(name: str) -> list[str]:
    """Return the fields of an object, as the specification lists them."""
    section = SPEC[SPEC.index("## 15. ") :]
    found = re.search(rf"{name}(?: \(by [^)]*\))?:((?: *\n?`\w+`(?: \([^)]*\))?,?)+)", section)
    assert found is not None
    return re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", found[1]))


def test_all_fields_are_there_in_the_order_of_the_specification() -> None:
    cache = shown(small())
    assert list(cache) == ["statistics", "schedulingState"]
    assert list(cache["statistics"]) == fields("statistics")
    assert list(cache["schedulingState"]["ns/a"]) == fields("schedulingState")


def test_what_they_say() -> None:
    cache = shown(small())
    counts = {"nodes": 1, "pods": 3, "priorityClasses": 1, "assumed": 0, "podsAssigned": 2, "phases": {"": 3}}
    assert cache["statistics"] == counts
    assert set(cache["schedulingState"]) == {"ns/a", "ns/b", "ns/foreign"}
    assert cache["schedulingState"]["ns/b"]["assignedNode"] == ""
    assert [cache["schedulingState"][name]["assignedNode"] for name in ("ns/a", "ns/foreign")] == ["n", "n"]


def test_a_pod_is_assumed_until_its_binding_is_seen() -> None:
    places = Places()
    places.node("n")
    places.pod("a")
    places.manager.flush()
    places.api.schedule()
    cache = shown(places)
    assert cache["statistics"]["assumed"] == 1
    state = {"uid": "a", "assignedNode": "n", "assumed": True, "allVolumesBound": True}
    assert cache["schedulingState"] == {"ns/a": state}


def test_pods_that_wait_come_first_where_not_all_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "SHOWN_MAX", 1)
    cache = shown(small())
    assert list(cache["schedulingState"]) == ["ns/b"] and cache["omitted"] == {"pods": 2}
    assert cache["statistics"]["pods"] == 3
