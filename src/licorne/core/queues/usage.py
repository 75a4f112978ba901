"""A tracker: what one user, or one group, uses at one queue, and may use there (docs/spec/scheduling.md, section 11).

This is only the counter that the hot path reads and writes. Which applications count with which trackers, and which
limit applies to whom, is decided in `licorne.core.queues.limits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_sum

if TYPE_CHECKING:
    # for the type checker alone: the module of applications imports this one
    from .application import Application


@cython.cclass
class Tracker:
    """Usage and limit of a user or group at one queue.

    `limit` is None where no limit on resources applies; `max_apps` is 0 where none on the number of applications does.
    `apps` are the applications that use something here; `blocked` those that wait for room under this limit; `holders`
    is the number of applications that are attached (`licorne.core.queues.limits`).
    """

    kind: str  # "user" or "group"
    name: str
    path: str
    used: Vec
    limit: Vec | None
    max_apps: cython.longlong
    wildcard: cython.bint  # the limit is the one of `*`
    holders: cython.longlong
    apps: dict[Application, None]
    blocked: dict[Application, Vec | None]  # with the least that it asks for; None: any room wakes it

    def __init__(self, kind: str, name: str, path: str) -> None:
        self.kind = kind
        self.name = name
        self.path = path
        self.used = new_sum()
        self.limit = None
        self.max_apps = 0
        self.wildcard = False
        self.holders = 0
        self.apps = {}
        self.blocked = {}

    @cython.ccall
    def may_run(self, app: Application) -> cython.bint:
        """Return whether this application may run here without exceeding the number of applications (section 11.4)."""
        return self.max_apps == 0 or app in self.apps or len(self.apps) + 1 <= self.max_apps
