"""Pods of strange content (docs/spec/k8shim.md, sections 1 to 3): an event says what is wrong, and all others go on."""

from __future__ import annotations

import json
from typing import Any, Final

from kube.cluster import Y

from . import Case, Cases, Place

CASES = Cases()
LONG: Final = "x" * (200 << 10)
"""Nearly as long as the API server takes all annotations of an object together."""


def resources(**requests: str) -> dict[str, Any]:
    """Return the spec of a pod with one container that requests this."""
    return {"containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}]}


# What is strange; the annotations; the spec; whether the pod runs all the same.
STRANGE: Final[list[tuple[str, dict[str, str], dict[str, Any], bool]]] = [
    ("a CPU count beyond all bounds", {}, resources(cpu="9223372036854775807"), False),
    ("a memory amount beyond all bounds", {}, resources(memory="8E"), False),
    ("a hundred containers", {}, {"containers": [{"name": f"c{i}", "image": "none"} for i in range(100)]}, True),
    ("a user that is no JSON", {Y + "user.info": "["}, {}, True),
    ("a user that is a number", {Y + "user.info": "7"}, {}, True),
    ("groups that are numbers", {Y + "user.info": '{"user":"u","groups":[1]}'}, {}, True),
    ("deep JSON as a user", {Y + "user.info": "[" * 10_000}, {}, True),
    ("deep JSON as task groups", {Y + "task-groups": "[" * 10_000}, {}, True),
    (
        "a group of too many members",
        {Y + "task-groups": '[{"name": "g", "minMember": 2147483647, "minResource": {}}]'},
        {},
        True,
    ),
    ("annotations of 200 KiB", {Y + "task-groups": LONG}, {}, True),
    ("a user of 200 KiB", {Y + "user.info": json.dumps({"user": LONG})}, {}, True),
    ("an id of 200 KiB", {Y + "app-id": LONG}, {}, True),
    ("allow-preemption: maybe", {Y + "allow-preemption": "maybe"}, {}, True),
    ("a kind of gang that there is not", {"gang.scheduling": "loose"}, {}, True),
]


def _case(what: str, annotations: dict[str, str], spec: dict[str, Any], runs: bool) -> Case:
    def run(k: Place) -> None:
        k.pod("strange", app="" if Y + "app-id" in annotations else k.name, annotations=annotations, **spec)
        k.pod("other", app=f"{k.name}-other")
        k.bound("other")
        if runs:
            k.bound("strange")
        else:
            k.waits("strange")
        assert k.licorne.answers()

    then = "it runs, and others go on" if runs else "it waits, and others go on"
    return Case("1", f"a pod with {what}", "it is created", then, run)


CASES += [_case(*row) for row in STRANGE]
