"""Event records of queues that are created, changed or removed (docs/spec/events.md, section 2).

The properties of each queue that have records are remembered and compared, so that the code that changes a queue need
not say what it changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from licorne.core.placement.rules import RECOVERY_PATH
from licorne.si.v19 import ChangeDetail, ChangeType

if TYPE_CHECKING:
    from licorne.core.queues.queue import Queue
    from licorne.core.queues.tree import Tree

    from .records import Records

_SET, _ADD, _REMOVE = ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
_NO_DETAIL = ChangeDetail.DETAILS_NONE


class _QueueFacts(msgspec.Struct, frozen=True):
    """The properties of a queue whose changes are recorded."""

    managed: bool
    is_leaf: bool
    max: dict[str, int] | None
    guaranteed: dict[str, int] | None


class QueueEvents:
    """Makes the records of the queues of one partition.

    With `tell=False` the queues that exist at the beginning count as recorded already.
    """

    def __init__(self, tree: Tree, records: Records, *, tell: bool) -> None:
        self._tree = tree
        self._records = records
        self._queues: dict[str, _QueueFacts] = {}
        if not tell:
            self._queues = {queue.path: _facts(queue) for queue in tree.queues()}

    def look_at_all(self) -> None:
        """Record the changes of all queues, after a configuration was applied."""
        for queue in self._tree.queues():
            self.look_at(queue)

    def look_at(self, queue: Queue) -> None:
        """Record what has changed of the queue since it was last looked at."""
        path = queue.path
        old = self._queues.get(path)
        new = _facts(queue)
        if new == old:
            return
        self._queues[path] = new
        if old is None:
            self._records.queue(path, _ADD, _NO_DETAIL if new.managed else ChangeDetail.QUEUE_DYNAMIC)
            old = _first(queue)
        if new.is_leaf != old.is_leaf:
            text = f"leaf queue: {'true' if new.is_leaf else 'false'}"
            self._records.queue(path, _SET, ChangeDetail.QUEUE_TYPE, message=text)
        if new.max != old.max:
            self._records.queue(path, _SET, ChangeDetail.QUEUE_MAX, resource=new.max or {})
        if new.guaranteed != old.guaranteed:
            self._records.queue(path, _SET, ChangeDetail.QUEUE_GUARANTEED, resource=new.guaranteed or {})

    def look_at_path(self, leaf: Queue) -> None:
        """Record the leaf to which an application came, and its ancestors, as far as they are new."""
        for queue in reversed(leaf.lineage()):
            self.look_at(queue)

    def removed(self, paths: list[str]) -> None:
        """Record that the queues with these paths were removed."""
        for path in paths:
            facts = self._queues.pop(path, None)
            managed = facts is not None and facts.managed
            self._records.queue(path, _REMOVE, _NO_DETAIL if managed else ChangeDetail.QUEUE_DYNAMIC)

    def all_removed(self) -> None:
        """Record that all queues were removed with their partition, children before their parents."""
        self.removed(sorted(self._queues, key=lambda path: (-path.count("."), path)))


def _first(queue: Queue) -> _QueueFacts:
    """The properties that a new queue has from its configuration or template, which are not recorded as changes.

    The quota of a namespace is not among them, so it is recorded.
    """
    facts = _facts(queue)
    if queue.managed:
        return facts
    template = queue.parent.template if queue.parent is not None and queue.is_leaf else None
    if template is None or queue.path == RECOVERY_PATH:
        return _QueueFacts(False, queue.is_leaf, None, None)
    return _QueueFacts(False, queue.is_leaf, template.max, template.guaranteed)


def _facts(queue: Queue) -> _QueueFacts:
    return _QueueFacts(queue.managed, queue.is_leaf, queue.max_config, queue.guaranteed_config)
