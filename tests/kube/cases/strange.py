"""Pods of strange content (docs/spec/k8shim.md, sections 1 to 3 and 15): an event says what is wrong, and all others go on."""

from __future__ import annotations

import json
from typing import Any, Final

from kube.cluster import Y, comes

from . import Case, Cases, Place

CASES = Cases()
FAILED: Final = "FailedScheduling"
INVALID: Final = "InvalidAnnotation"
GANG: Final = "GangScheduling"
GROUPS: Final = '[{"name": "g", "minMember": 1, "minResource": {"cpu": "10m"}}]'
LONG: Final = "x" * ((256 << 10) - 500)
"""As long as the API server takes all annotations of an object together, less the other annotations."""


def resources(**requests: str) -> dict[str, Any]:
    """Return the spec of a pod with one container that requests this."""
    return {"containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}]}


# What is strange; the annotations; the spec; whether the pod runs all the same; reason of the event, and a part of it.
STRANGE: Final[list[tuple[str, dict[str, str], dict[str, Any], bool, str, str]]] = [
    ("a CPU count beyond all bounds", {}, resources(cpu="9223372036854775807"), False, FAILED, "cpu: "),
    (
        "a memory amount beyond all bounds",
        {},
        resources(memory="8E"),
        False,
        "TaskRejected",
        "a quantity is larger than",
    ),
    (
        "a thousand containers",
        {},
        {"containers": [{"name": f"c{i}", "image": "none"} for i in range(1000)]},
        True,
        "",
        "",
    ),
    ("a user that is no JSON", {Y + "user.info": "["}, {}, True, INVALID, "user.info: '['"),
    ("a user that is a number", {Y + "user.info": "7"}, {}, True, INVALID, "user.info: '7'"),
    ("groups that are numbers", {Y + "user.info": '{"user":"u","groups":[1]}'}, {}, True, INVALID, "$.groups[0]"),
    ("deep JSON as a user", {Y + "user.info": "[" * 10_000}, {}, True, INVALID, "user.info: '[["),
    ("deep JSON as task groups", {Y + "task-groups": "[" * 10_000}, {}, True, GANG, "task-groups: '[["),
    (
        "a group of too many members",
        {Y + "task-groups": '[{"name": "g", "minMember": 2147483647, "minResource": {}}]'},
        {},
        True,
        GANG,
        "must be an integer from 1 to",
    ),
    (
        "a label of task groups that is half a surrogate pair",
        {Y + "task-groups": GROUPS.replace('"name"', r'"labels": {"a": "\ud800"}, "name"')},
        {},
        True,
        GANG,
        "must not have half of a surrogate pair",
    ),
    (
        "labels of task groups that are a list",
        {Y + "task-groups": GROUPS.replace('"name"', '"labels": ["a"], "name"')},
        {},
        True,
        GANG,
        "labels: ['a']: must be a map of texts",
    ),
    ("task groups of 256 KiB", {Y + "task-groups": LONG}, {}, True, GANG, "task-groups"),
    ("a user of 256 KiB", {Y + "user.info": json.dumps({"user": LONG})}, {}, True, INVALID, "its user 'xxx"),
    ("an id of 256 KiB", {Y + "app-id": LONG}, {}, False, FAILED, "its application id 'xxx"),
    ("a queue of 256 KiB", {Y + "queue": LONG}, {}, False, FAILED, "its queue 'xxx"),
    ("allow-preemption: maybe", {Y + "allow-preemption": "maybe"}, {}, True, INVALID, "'maybe': must be"),
    (
        "a style of gangs that there is not",
        {Y + "task-groups": GROUPS, Y + "schedulingPolicyParameters": "gangSchedulingStyle=Firm"},
        {},
        True,
        INVALID,
        "'Firm': must be Hard or Soft",
    ),
    (
        "a kind of gangs that there is not",
        {Y + "task-groups": GROUPS, "gang.scheduling": "loose"},
        {},
        True,
        INVALID,
        "'loose': must be",
    ),
]


def _case(what: str, annotations: dict[str, str], spec: dict[str, Any], runs: bool, reason: str, words: str) -> Case:
    def run(k: Place) -> None:
        k.pod("strange", app="" if Y + "app-id" in annotations else k.name, annotations=annotations, **spec)
        k.pod("other", app=f"{k.name}-other")
        k.bound("other")
        if runs:
            k.bound("strange")
        else:
            k.waits("strange")
        if reason:
            assert k.event(reason, words, name="strange").type == "Warning"
        assert k.licorne.answers()

    then = "it runs, and others go on" if runs else "it waits, and others go on"
    return Case("1", f"a pod with {what}", "it is created", then, run)


CASES += [_case(*row) for row in STRANGE]


@CASES("15", "a pod that runs", "the state is dumped", "it stands there with its node, as YuniKorn's shim shows it")
def _dump(k: Place) -> None:
    k.pod()
    [node] = k.bound("p")

    def assigned() -> bool:
        cache = k.licorne.ask("/debug/fullstatedump")["rmDiagnostics"]["cache"]
        state = cache["schedulingState"].get(f"{k.name}/p", {})
        return state.get("assignedNode") == node and not state["assumed"]

    comes(assigned, told=k.told)
