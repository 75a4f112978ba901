"""What pods, nodes and namespaces mean to the scheduler. Pure: objects in, messages of the scheduler out.

- `work`: a pod that licorne schedules, as application and ask; `task_groups`: its gang; `resources`: how much it takes; `constraints`: where it
  may run; `unsupported`: what is not decided yet; `namespaces`: quotas from annotations.
- `foreign`: a pod of another scheduler; `nodes`: a node.
- `keys`: labels and annotations.
"""

from __future__ import annotations

from .constraints import constraints_text, host_ports, node_constraints
from .foreign import foreign_allocation
from .namespaces import misnamed_resources, namespace_tags, unread_annotations
from .nodes import node_update, read_allocatable
from .resources import read_resources
from .task_groups import TaskGroup, read_task_groups
from .work import (
    Gang,
    Note,
    PodContext,
    Work,
    WorkSettings,
    ask_with,
    asks_the_same,
    has_generated_id,
    is_managed,
    is_over,
    is_placeholder,
    lacks_class,
    placeholder_ask,
    read_pod,
    unix_seconds,
    with_classes,
)

__all__ = [
    "Gang",
    "Note",
    "PodContext",
    "TaskGroup",
    "Work",
    "WorkSettings",
    "ask_with",
    "asks_the_same",
    "constraints_text",
    "foreign_allocation",
    "has_generated_id",
    "host_ports",
    "is_managed",
    "is_over",
    "is_placeholder",
    "lacks_class",
    "misnamed_resources",
    "namespace_tags",
    "node_constraints",
    "node_update",
    "placeholder_ask",
    "read_allocatable",
    "read_pod",
    "read_resources",
    "read_task_groups",
    "unix_seconds",
    "unread_annotations",
    "with_classes",
]
