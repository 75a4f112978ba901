"""What one user, or one group, uses at one queue, and what they may use there (spec scheduling.md, section 11).

Who is tracked where, and which limit applies to whom, is decided in `licorne.core.limits`; this is the counter that
the hot path reads and writes.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.licorne.core.vectors import Vec
else:
    from .vectors import Vec


@cython.cclass
class Tracker:
    """Usage and limit of a user or group at one queue.

    `limit` is None where no limit on resources applies; `max_apps` 0 where none on applications does. `apps` are the
    applications that use something here; `blocked` those that wait for room under this limit.
    """

    kind: str  # "user" or "group"
    name: str
    path: str
    used: Vec
    limit: Vec
    max_apps: cython.longlong
    wildcard: cython.bint  # the limit is that of `*`
    apps: dict
    blocked: dict

    def __init__(self, kind: str, name: str, path: str) -> None:
        self.kind = kind
        self.name = name
        self.path = path
        self.used = Vec()
        self.limit = None
        self.max_apps = 0
        self.wildcard = False
        self.apps = {}
        self.blocked = {}

    def may_run(self, app: object) -> bool:
        """May one more application, this one, run here (section 11.4)?"""
        return self.max_apps == 0 or app in self.apps or len(self.apps) + 1 <= self.max_apps
