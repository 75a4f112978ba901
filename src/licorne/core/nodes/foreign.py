"""Foreign allocations: what occupies a node and is not scheduled here.

Source: docs/spec/scheduling.md, section 14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from licorne.si.constants import FOREIGN_STATIC, TAG_FOREIGN

if TYPE_CHECKING:
    from .constraints import HostPort
    from .domains import PodClass
    from .node import Node


class Foreign(msgspec.Struct, frozen=True):
    """A foreign allocation without its amounts, which are stored on its node. `created`: in nanoseconds.

    `ports` are the host ports that it takes on its node, `pods` the class of its pod, if it says what it is.
    `unread` is the whole map of its amounts if some of its types have no number, and so are counted nowhere.
    """

    node: Node
    tags: dict[str, str]
    created: int
    priority: int
    ports: tuple[HostPort, ...] = ()
    unread: dict[str, int] | None = None
    pods: PodClass | None = None

    @property
    def static(self) -> bool:
        """Whether the allocation is static, that is, cannot be moved."""
        return self.tags.get(TAG_FOREIGN) == FOREIGN_STATIC
