"""While the generations of a partition (`views.partition_state`) stay the same, everything that is shown of it does too."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from licorne.host.web.rest import allocations, views
from licorne.host.web.rest.answers import encode

if TYPE_CHECKING:
    from licorne.core.partition import Partition


class Versions:
    """The text that was shown of each partition at the last look."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Partition, tuple[object, object]] = WeakKeyDictionary()

    def check(self, partition: Partition) -> None:
        """Compare the partition with the last look at it."""
        state, shown = views.partition_state(partition), _shown(partition)
        last = self._seen.get(partition)
        if last is not None and last[0] == state:
            assert last[1] == shown, "something has happened that the partition does not say"
        self._seen[partition] = state, shown


def _shown(partition: Partition) -> object:
    return (
        [encode(views.node(node, partition)) for node in partition.nodes.values()],
        [encode(views.queue(queue)) for queue in partition.tree.root.walk()],
        [encode(views.user_usage(partition, user, found)) for user, found in partition.limits.users().items()],
        [encode(allocations.application(app, partition, "")) for app in partition.applications.values()],
    )
