"""The task groups of a pod's annotation, with the fields of which placeholders are made.

The scheduler reads name, members and resources (`licorne.core.gangs.task_groups`). The other fields are copied into
placeholder pods, so their JSON kinds are checked here, when the annotation is read: a gang of which no placeholder can
be made is refused at once, and its pod is told. What the API server then says of the contents is another matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from licorne.core.gangs.task_groups import TaskGroupsError, TaskGroupSpec, parse_task_groups

TEXTS: Final = ("labels", "annotations", "nodeSelector")
OBJECTS: Final = ("tolerations", "topologySpreadConstraints")
CONSTRAINTS: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
"""The fields that are parts of a pod's `spec`, under the same names."""


class TaskGroup(msgspec.Struct, frozen=True):
    """A task group: what the scheduler knows of it, and what its placeholders have. `requests`: quantities as texts."""

    spec: TaskGroupSpec
    requests: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    constraints: Mapping[str, Any]


@lru_cache(maxsize=64)
def read_task_groups(text: str) -> tuple[TaskGroup, ...]:
    """Return the task groups that the annotation `task-groups` of a pod lists.

    Raises:
        TaskGroupsError: it is malformed, or beyond a bound; the text names the field and the rule.
    """
    specs = parse_task_groups(text)
    groups = []
    for number, (spec, item) in enumerate(zip(specs, json.loads(text), strict=True)):
        _check(f"task-groups[{number}]", item)
        groups.append(
            TaskGroup(
                spec,
                {name: str(amount) for name, amount in item["minResource"].items()},
                item.get("labels") or {},
                item.get("annotations") or {},
                {name: item[name] for name in CONSTRAINTS if item.get(name)},
            )
        )
    return tuple(groups)


def _check(where: str, item: dict[str, Any]) -> None:
    for name in TEXTS:
        if not (item.get(name) is None or _is_map_of_texts(item[name])):
            raise TaskGroupsError(f"{where}.{name}: {_shown(item[name])}: must be a map of texts")
    for name in OBJECTS:
        if not (item.get(name) is None or _is_list_of_objects(item[name])):
            raise TaskGroupsError(f"{where}.{name}: {_shown(item[name])}: must be a list of objects")
    if not isinstance(item.get("affinity"), dict | None):
        raise TaskGroupsError(f"{where}.affinity: {_shown(item['affinity'])}: must be an object")


def _is_map_of_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _shown(value: object) -> str:
    return repr(value)[:60]
