"""The task groups of a gang, as an application's tag `yunikorn.apache.org/task-groups` lists them.

The tag (docs/spec/scheduling.md, section 9.2) is a JSON list of objects with `name`, `minMember` and `minResource`, a
map from a resource to a Kubernetes quantity. Other fields describe pods and are ignored: the node constraints that
count are those of the asks themselves. Names and units are converted to those of asks as in the shim
(docs/spec/k8shim.md): `cpu` becomes `vcore` in thousandths, every other amount a whole number; fractions are rounded
up, as in Kubernetes.

Depth and characters are checked of the whole document, ignored fields included, because others make pods of these:
JSON may have half of a surrogate pair as an escape, which is no text and cannot be sent anywhere, and a document that
one call could just parse may be too deep for the next one.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, NamedTuple

from licorne.config.kubernetes import QuantityError, parse_quantity
from licorne.core.constants import SUM_MAX

TEXT_MAX: Final = 1 << 20
GROUPS_MAX: Final = 100
MEMBERS_MAX: Final = 10_000
DEPTH_MAX: Final = 50
"""Bounds of a tag: its length in characters, the number of its groups, the number of members of all groups, and how deep
it may be nested; the affinity of a pod, the deepest field, has some ten levels."""


class TaskGroupSpec(NamedTuple):
    """A task group: `members` of it must run for the gang to start, `resource` is the announced use of each."""

    name: str
    members: int
    resource: dict[str, int]


class TaskGroupsError(ValueError):
    """The tag is invalid; the text names the field, the value and the rule."""


@lru_cache(maxsize=64)
def parse_task_groups(text: str) -> tuple[TaskGroupSpec, ...]:
    """Parse the tag.

    Raises:
        TaskGroupsError: the tag is malformed, or beyond a bound.
    """
    if len(text) > TEXT_MAX:
        raise TaskGroupsError(f"task-groups: {len(text)} characters: must be at most {TEXT_MAX}")
    try:
        document, why = json.loads(text), ""
    except (ValueError, RecursionError):
        document, why = None, json_fault(text)
    if not isinstance(document, list) or not document:
        rule = f"must be a JSON list of task groups that is not empty{why and f': {why}'}"
        raise TaskGroupsError(f"task-groups: {text[:60]!r}: {rule}")
    if len(document) > GROUPS_MAX:
        raise TaskGroupsError(f"task-groups: {len(document)} groups: must be at most {GROUPS_MAX}")
    _check_document(text, document)
    groups = tuple(_group(f"task-groups[{number}]", item) for number, item in enumerate(document))
    names: dict[str, None] = {}
    for number, group in enumerate(groups):
        if group.name in names:
            raise TaskGroupsError(f"task-groups[{number}].name: {group.name!r}: must be there once only")
        names[group.name] = None
    members = sum(group.members for group in groups)
    if members > MEMBERS_MAX:
        raise TaskGroupsError(f"task-groups: {members} members: must be at most {MEMBERS_MAX}")
    for name, amount in sum_of(groups).items():
        if amount > SUM_MAX:
            raise TaskGroupsError(f"task-groups: {amount} of {name} in all: must be at most {SUM_MAX}")
    return groups


def json_fault(text: str) -> str:
    """Return where and why a text is no JSON; "" if it is, or nothing can be said of where."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    return ""


def sum_of(groups: tuple[TaskGroupSpec, ...]) -> dict[str, int]:
    """Return the announced use of all members together."""
    total: dict[str, int] = {}
    for group in groups:
        for name, amount in group.resource.items():
            total[name] = total.get(name, 0) + amount * group.members
    return total


def _check_document(text: str, document: list[Any]) -> None:
    level: list[Any] = [document]
    for _ in range(DEPTH_MAX):  # level by level, because a function that calls itself would have a limit of its own
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [value for values in inner for value in values]
    if level:
        raise TaskGroupsError(f"task-groups: {text[:60]!r}: must be nested at most {DEPTH_MAX} levels deep")
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise TaskGroupsError(f"task-groups: {text[:60]!r}: must not have half of a surrogate pair") from None


def _group(where: str, item: Any) -> TaskGroupSpec:
    if not isinstance(item, dict):
        raise TaskGroupsError(f"{where}: {_shown(item)}: must be an object")
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise TaskGroupsError(f"{where}.name: {_shown(name)}: must be a text that is not empty")
    members = item.get("minMember")
    if type(members) is not int or not 1 <= members <= MEMBERS_MAX:
        raise TaskGroupsError(f"{where}.minMember: {_shown(members)}: must be an integer from 1 to {MEMBERS_MAX}")
    resource = item.get("minResource")
    if not isinstance(resource, dict):
        raise TaskGroupsError(f"{where}.minResource: {_shown(resource)}: must be a map of quantities")
    amounts: dict[str, int] = {}
    for kind, quantity in resource.items():
        if not kind:
            raise TaskGroupsError(f"{where}.minResource: '': a resource must have a name")
        known = "vcore" if kind == "cpu" else kind
        amounts[known] = amounts.get(known, 0) + _amount(f"{where}.minResource.{kind}", quantity, known)
    return TaskGroupSpec(name, members, amounts)


def _amount(where: str, quantity: Any, kind: str) -> int:
    """Convert a Kubernetes quantity, which must not be negative here, to the unit of asks."""
    text = str(quantity) if type(quantity) in (int, float) else quantity
    try:
        value = parse_quantity(text.strip(), milli=kind == "vcore") if isinstance(text, str) and len(text) <= 64 else -1
    except QuantityError as error:
        if error.too_large:
            raise TaskGroupsError(f"{where}: {_shown(quantity)}: must be at most {SUM_MAX}") from None
        value = -1
    if value < 0:
        raise TaskGroupsError(f"{where}: {_shown(quantity)}: must be a quantity, such as 500m, 2 or 4Gi")
    if value > SUM_MAX:
        raise TaskGroupsError(f"{where}: {_shown(quantity)}: must be at most {SUM_MAX}")
    return value


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:60]
