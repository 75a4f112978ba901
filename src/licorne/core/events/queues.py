"""Records of queues: what of a queue is told when it comes, changes or goes (docs/spec/events.md, section 2)."""

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
    """What of a queue has records of its own."""

    managed: bool
    is_leaf: bool
    max: dict[str, int] | None
    guaranteed: dict[str, int] | None


class QueueEvents:
    """Makes the records of the queues of one partition; `tell` is False if those that are there are known already."""

    def __init__(self, tree: Tree, records: Records, *, tell: bool) -> None:
        self._tree = tree
        self._records = records
        self._queues: dict[str, _QueueFacts] = {}
        if not tell:
            self._queues = {queue.path: _facts(queue) for queue in tree.queues()}

    def look_at_all(self) -> None:
        """The configuration was applied."""
        for queue in self._tree.queues():
            self.look_at(queue)

    def look_at(self, queue: Queue) -> None:
        """Record what is new about the queue since it was last looked at."""
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
        """An application came to this leaf: it and queues above it may be new."""
        for queue in reversed(leaf.lineage()):
            self.look_at(queue)

    def removed(self, paths: list[str]) -> None:
        """These are gone."""
        for path in paths:
            facts = self._queues.pop(path, None)
            managed = facts is not None and facts.managed
            self._records.queue(path, _REMOVE, _NO_DETAIL if managed else ChangeDetail.QUEUE_DYNAMIC)

    def all_removed(self) -> None:
        """The partition goes: children before their parents."""
        self.removed(sorted(self._queues, key=lambda path: (-path.count("."), path)))


def _first(queue: Queue) -> _QueueFacts:
    """What a queue came with, of which nothing is told: all that is configured; not the quota of a namespace."""
    facts = _facts(queue)
    if queue.managed:
        return facts
    template = queue.parent.template if queue.parent is not None and queue.is_leaf else None
    if template is None or queue.path == RECOVERY_PATH:
        return _QueueFacts(False, queue.is_leaf, None, None)
    return _QueueFacts(False, queue.is_leaf, template.max, template.guaranteed)


def _facts(queue: Queue) -> _QueueFacts:
    return _QueueFacts(queue.managed, queue.is_leaf, queue.max_config, queue.guaranteed_config)
