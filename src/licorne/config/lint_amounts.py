"""Warnings about amounts: names of resource types that no pod asks for, and amounts in which nothing fits.

The names are those of Kubernetes or of habit, where the scheduler has its own: a quota of `cpu` is a quota of a resource
that nobody uses, so it binds nothing. An amount of memory without a unit is in bytes.
"""

from __future__ import annotations

from typing import Final

from licorne.config.problems import Notes
from licorne.config.quantity import QueueQuantityError, parse_queue_quantity
from licorne.config.raw import RawQueue, ResourceMap

_MISNAMED: Final = {
    **dict.fromkeys(("cpu", "cpus", "core", "cores", "vcores", "vcpu", "vcpus", "millicpu"), "vcore"),
    **dict.fromkeys(("mem", "ram", "memory_mb", "mems", "memories"), "memory"),
    **dict.fromkeys(("pod", "containers"), "pods"),
    **dict.fromkeys(("gpu", "gpus", "nvidia", "nvidia-gpu", "nvidia/gpu"), "nvidia.com/gpu"),
}
_OWN: Final = ("vcore", "memory", "pods")
SMALL_MEMORY_BYTES: Final = 1 << 20
"""Below this, an amount of memory surely lacks its unit: hardly any process runs in less than a mebibyte."""


def lint_amounts(queue: RawQueue, notes: Notes) -> None:
    """Note the warnings for the amounts of a queue itself, of its template and of its limits."""
    template = queue.childtemplate
    for resources in (queue.resources, None if template is None else template.resources):
        if resources is not None:
            _lint_names(resources.guaranteed, notes)
            _lint_maximum(resources.max, notes)
    for limit in queue.limits or ():
        _lint_maximum(limit.maxresources, notes)


def _lint_names(amounts: ResourceMap | None, notes: Notes) -> None:
    for name, value in (amounts or {}).items():
        meant = meant_resource(name)
        if meant:
            message = f"no pod asks for '{name}', so this amount has no effect; the resource is called '{meant}'"
            notes.warn("resource-name", value.spot, message)


def meant_resource(name: str) -> str:
    """Return the resource type that is meant by a name that no pod asks for; "" if the name may be right."""
    lowered = name.lower()
    meant = _MISNAMED.get(lowered) or (lowered if lowered in _OWN else "")
    return "" if meant == name else meant


def _lint_maximum(amounts: ResourceMap | None, notes: Notes) -> None:
    _lint_names(amounts, notes)
    memory = (amounts or {}).get("memory")
    if memory is not None and memory.text.isdigit() and 0 < _bytes(memory.text) < SMALL_MEMORY_BYTES:
        text = memory.text
        message = f"{text} is {text} bytes, in which no pod fits; with a unit it is {text}Mi or {text}Gi"
        notes.warn("memory-unit", memory.spot, message)


def _bytes(text: str) -> int:
    try:
        return parse_queue_quantity(text, "memory")
    except QueueQuantityError:
        return 0
