"""Every class of the core is in the contract of checkpoints or not, and every attribute of a class of the contract is saved or not.

A new attribute fails a test here until somebody has decided whether it is state: if so `SAVED` counts it, else its class names
it in `TRANSIENT`, with the reason (`licorne.core.checkpoint.contract`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from checkpoint.histories import busy
from licorne.core.checkpoint.contract import ENUMERATIONS, MAPS, OBJECTS, VALUES, fields_of, transient_of
from licorne.core.checkpoint.kinds import kind_of
from licorne.core.checkpoint.restore import restore
from licorne.core.checkpoint.tables import all_tables, table_of
from licorne.core.checkpoint.take import all_members
from licorne.core.preemption.evictions import Outcome

CORE = Path(__file__).resolve().parents[2] / "src" / "licorne" / "core"
OTHERS = {
    "Vec": "a table of its own",
    "Minima": "a table of its own",
    "StartPlan": "a tuple",
    "Ranked": "a base class",
    "PartitionContents": "a base class",
    "HostOrders": "the host's",
    "GivenOrders": "the host's",
    "Incident": "told to the host",
    "Incidents": "the host's",
    "Plugins": "the host's",
    "Calls": "its cluster and its connections are restored by the host's scheduler",
    "SchedulerAPI": "as for `Calls`",
    "ManagerConnection": "kept by what it was registered with",
    "PartitionEvents": "records of events decide nothing",
    "Changes": "records of events",
    "RequestEvents": "records of events",
    "QueueEvents": "records of events",
    "_QueueFacts": "records of events",
    "UserEvents": "records of events",
    "EventStore": "records of events",
    "Records": "records of events",
    "AskRun": "records of events",
    "AllocationRun": "records of events",
    "EndedRun": "records of events",
    "UsageHistory": "holds nothing; made anew if usage is watched",
    "Placer": "follows from the configuration",
    "Filter": "follows from the configuration",
    "_Names": "follows from the configuration",
    "ScorePolicy": "follows from the configuration",
    "TextCache": "texts are read again",
    "Demand": "a tuple, a part of the constraints",
    "DevicesLeft": "a tuple, a part of the labels",
    "LastingGang": "follows from the tags and allocations of its application",
    "KeptOff": "a cache of `Claims`",
    "DeviceRoom": "made for one search for victims",
    "NodeVerdict": "made for one search for victims",
    "Verdicts": "made for one search for victims",
    "Grid": "a part of the node index, which is built anew",
    "Columns": "a part of the node index, which is built anew",
    "NodeBlock": "a part of the node index, which is built anew",
    "NodeGroup": "a part of the node index, which is built anew",
    "Topology": "built anew of asks and allocations",
    "TopologyKey": "a part of the topology, which is built anew",
    "DomainCount": "a part of the topology, which is built anew",
    "DomainCheck": "a part of the topology, which is built anew",
    "Counted": "a part of the topology, which is built anew",
    "AttachCount": "a part of the topology, which is built anew",
    "AttachCheck": "a part of the topology, which is built anew",
    "AttachKey": "a part of the topology, which is built anew",
    "ClaimCheck": "a part of the topology, which is built anew",
    "ClaimCount": "a part of the topology, which is built anew",
    "ClaimNodeKey": "a part of the topology, which is built anew",
    "ClaimUse": "a part of the topology, which is built anew",
    "NodeKey": "a part of the topology, which is built anew",
    "AttachUse": "a part of the topology, which is built anew",
    "Image": "a part of the topology, which is built anew",
    "Images": "a part of the topology, which is built anew",
    "Ranking": "a part of the topology, which is built anew",
    "PodTerm": "a part of a value",
    "Attached": "a part of a value",
    "DeviceClaims": "a part of a value",
    "Mark": "a part of a value",
    "VolumeDemand": "a part of a value",
    "Preferred": "a part of a value",
    "SpreadConstraint": "a part of a value",
    "Expression": "a part of a value",
    "Taint": "a part of a value",
    "Toleration": "a part of a value",
    "Outcome": "a part of a value",
    "ApplicationAge": "a part of an input",
    "PlannedUsage": "a cache of preemption",
    "NodeSearch": "a cache of preemption",
    "QueueBudget": "a part of `NodeSearch`",
    "LeafCandidates": "a part of `NodeSearch`",
    "Candidate": "a part of `NodeSearch`",
    "NodeCandidates": "a part of `NodeSearch`",
    "Bounds": "a part of `NodeSearch`",
    "VictimRank": "a part of `NodeSearch`",
    "VictimSearch": "lives for one call",
    "EvictionPlan": "lives for one call",
    "GangPacking": "lives for one call",
    "VictimGroup": "lives for one call",
    "LeafVictimSearch": "lives for one call",
    "LoweredQuota": "lives for one call",
    "Filling": "lives for one call",
    "Trial": "lives for one call",
    "_ReleaseTimeline": "lives for one call",
    "StaticTree": "lives for one call",
    "StaticQueue": "lives for one call",
    "TagQuota": "lives for one call",
    "Bound": "lives for one call",
    "RuleStep": "lives for one call",
    "Placement": "lives for one call",
    "Reason": "lives for one call",
    "Setting": "the settings that there are",
    "ValueType": "the settings that there are",
    "SettingTable": "the settings that there are",
    "StateTimer": "a constant",
    "Verdict": "lives for one call",
    "ApplicationEvent": "lives for one call",
    "ObjectEvent": "lives for one call",
}
"""Classes whose objects are no members of a table, and why."""
SAVED = 492
"""How many attributes of the classes of the contract are saved."""
FOLDERS_WITHOUT_STATE = {"checkpoint": "reads and writes state", "placement/rules.py": "follows from the configuration"}
REASONS = {"explain.py"}
"""Answers to questions, made when they are asked."""


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in sorted(CORE.rglob("*.py")):
        place = path.relative_to(CORE).as_posix()
        if path.name in REASONS or any(place.startswith(folder) for folder in FOLDERS_WITHOUT_STATE):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not is_error(node):
                yield path, node


def is_error(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith(("Error", "Exception", "Protocol")) for base in node.bases)


def attributes(node: ast.ClassDef) -> set[str]:
    """The attributes of a class by its text: those that it annotates, and those that its methods set."""
    found = {one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    for one in ast.walk(node):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "self":
                    found.add(part.attr)
    return found


TEXTS = {node.name: node for _, node in classes()}


def all_attributes(name: str) -> set[str]:
    bases = [ast.unparse(base) for base in TEXTS[name].bases]
    return attributes(TEXTS[name]).union(*(all_attributes(base) for base in bases if base in TEXTS))


def test_every_class_is_state_or_is_not() -> None:
    decided = {cls.__name__ for cls in (*OBJECTS, *VALUES, *ENUMERATIONS)} | OTHERS.keys()
    assert TEXTS.keys() - decided == set(), "give each its line in OBJECTS of the contract, or in OTHERS here"
    assert {name for name in decided if name not in TEXTS} <= {"ACL", "QueueProperties", "TemplateConfig"}


@pytest.mark.parametrize("cls", OBJECTS)
def test_every_attribute_is_saved_or_transient(cls: type) -> None:
    properties = {name for name in dir(cls) if isinstance(getattr(cls, name), property)}
    there = all_attributes(cls.__name__) - properties - {"__weakref__"}
    transient = {name for base in cls.__mro__ for name in base.__dict__.get("TRANSIENT", ())}
    assert transient_of(cls).keys() == transient, f"{cls.__name__} has no such attributes, or does not annotate them"
    assert there - transient == set(fields_of(cls)), f"{cls.__name__}: annotate each, or name it in TRANSIENT"


def test_somebody_has_decided_that_each_is_saved() -> None:
    saved = {f"{cls.__name__}.{name}": kind for cls in OBJECTS for name, kind in fields_of(cls).items()}
    assert len(saved) == SAVED, "an attribute on which nothing depends is TRANSIENT; for one that is state change SAVED"
    assert {name for name, kind in saved.items() if kind.startswith("Map")} == MAPS


def test_every_kind_is_known() -> None:
    for cls in OBJECTS:
        for kind in fields_of(cls).values():
            assert kind_of(kind) is not None
    assert all(table_of(name) is not None for name in all_tables())


VALUES_OF = {
    "ApplicationState": "New Accepted Starting Running Completing Completed Resuming Failing Failed Rejected Expired",
    "ObjectState": "Active Draining Stopped",
    "Outcome": """the ask waits/the ask was placed/the ask has ended/an ask of higher order was placed, or evicts for itself
an ask that requires the node has taken its place/it has reserved its node for 120 minutes
a victim has not ended ten minutes after its grace period/another member of its gang has given up
a node has gone or changed/the configuration, or the quota of a queue, has changed/an allocation of another scheduler
an allocation that the resource manager has placed, or resized/the ask wants something else
pods elsewhere keep it off its node, by affinity or spread/placeholders of its task group have come""",
}
"""The values of enumerations that are saved by value; a checkpoint of before has them, so none may change or go."""


@pytest.mark.parametrize("enumeration", [*ENUMERATIONS, Outcome])
def test_values_in_checkpoints_stay_as_they_were(enumeration: type[StrEnum]) -> None:
    pinned = VALUES_OF[enumeration.__name__]
    assert {one.value for one in enumeration} == {*re.split("[/\n]" if "/" in pinned else " ", pinned)}


CACHES = {"Tree._sorted", "Queue.by_name", "NodeIndex.target", "NodeIndex.spare", "AtomicGang._asks"}
HOSTS = {"RegisteredManager.predicates", "Descent.predicates"}


@pytest.mark.parametrize("first_interface", [False, True])
def test_a_restored_object_has_every_attribute(first_interface: bool) -> None:
    api = busy(first_interface=first_interface).api
    _, cluster = restore(api.checkpoint())
    found, again = all_members(api.cluster), all_members(cluster)
    for cls in OBJECTS:
        name = cls.__name__
        for before, after in zip(found.get(name, ()), again.get(name, ()), strict=True):
            for attribute in all_attributes(name) & {*dir(before)}:
                assert hasattr(after, attribute), f"{name}.{attribute}"
                nothing = getattr(before, attribute) is None, getattr(after, attribute) is None
                if f"{name}.{attribute}" not in CACHES | HOSTS:
                    assert nothing[0] == nothing[1], f"{name}.{attribute}"
    assert found.keys() >= {"Partition", "Application", "Ask", "Node", "Queue", "Tracker", "Need", "Requests"}
