"""The queues of a configuration, without a scheduler: enough to ask where an application would be placed.

`licorne place` and the comparison of two configurations need an answer from a file alone. A `StaticTree` is the
tree of a partition right after it has been loaded: only configured queues, none draining, none created by
placement. Access follows the same rule as in a running partition (docs/spec/config.md, section 8): a queue's submit
list, its admin list, then the queue above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from licorne.config.acl import ACL
from licorne.config.model import PartitionConfig, QueueConfig
from licorne.config.structure import ancestors

from .rules import RECOVERY_PATH


@dataclass(frozen=True, slots=True)
class StaticQueue:
    """A configured queue."""

    path: str
    is_leaf: bool
    parent: StaticQueue | None
    submit_acl: ACL
    admin_acl: ACL

    @property
    def draining(self) -> bool:
        """Whether it drains: a configured queue never does."""
        return False

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether the lists of this queue or of one above let the user in; the recovery queue lets nobody in."""
        return self.admitted_by(user, groups) is not None

    def admitted_by(self, user: str, groups: Sequence[str]) -> tuple[str, str] | None:
        """Return the access control list that lets the user submit: the path of its queue, and `submitacl` or `adminacl`.

        The lists are asked in order from this queue to root; None if none of them lets the user in.
        """
        if self.path == RECOVERY_PATH:
            return None
        queue: StaticQueue | None = self
        while queue is not None:
            for key, acl in (("submitacl", queue.submit_acl), ("adminacl", queue.admin_acl)):
                if acl.allows(user, groups):
                    return queue.path, key
            queue = queue.parent
        return None


class StaticTree:
    """The queues that a partition's configuration lists; a `QueueLookup`."""

    def __init__(self, partition: PartitionConfig) -> None:
        self._queues: dict[str, StaticQueue] = {}
        waiting: list[tuple[QueueConfig, StaticQueue | None]] = [(partition.root, None)]
        while waiting:
            config, parent = waiting.pop()
            queue = _queue(config, parent)
            self._queues[queue.path] = queue
            waiting.extend((child, queue) for child in config.children)

    def find(self, path: str) -> StaticQueue | None:
        """Return the queue with this full path, in lower case, or None."""
        return self._queues.get(path)

    def nearest(self, path: str) -> StaticQueue:
        """Return the queue with this full path, or else the nearest above it that is configured."""
        return next(self._queues[each] for each in (path, *ancestors(path)) if each in self._queues)


def _queue(config: QueueConfig, parent: StaticQueue | None) -> StaticQueue:
    path = config.name if parent is None else f"{parent.path}.{config.name}"
    is_leaf = parent is not None and not config.parent and not config.children
    return StaticQueue(path, is_leaf, parent, ACL.parse(config.submit_acl), ACL.parse(config.admin_acl))
