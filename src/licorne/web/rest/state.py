"""The state dump of a scheduler in this process, without a server: what `GET /debug/fullstatedump` would answer."""

from __future__ import annotations

from licorne.core.api import SchedulerAPI
from licorne.web.backend import Backend
from licorne.web.monitor import Monitor
from licorne.web.rest.config import running
from licorne.web.rest.pieces import state_pieces


def full_state(api: SchedulerAPI, now_ns: int) -> bytes:
    """Return the state dump as JSON, without the history of events and figures that only a server keeps.

    Raises:
        IndexError: no resource manager is registered.
    """
    backend = Backend(api, lambda: now_ns, build_info=lambda _: {})
    manager = backend.managers()[0]
    config = running(manager, api.extra_config(manager.rm_id))
    return b"".join(state_pieces(Monitor(backend, ""), config, [], []))


__all__ = ["full_state"]
