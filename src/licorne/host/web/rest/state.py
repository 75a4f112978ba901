"""The state dump of a scheduler in this process, without a server: what `GET /debug/fullstatedump` would answer."""

from __future__ import annotations

import base64
import zlib
from typing import Final

from licorne._version import __version__
from licorne.core.api import SchedulerAPI
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.rest.config import running
from licorne.host.web.rest.pieces import state_pieces
from licorne.si.rest_objects import ExactState

EXACT_VERSION: Final = 1


def exact_state(checkpoint: bytes) -> ExactState:
    """Return the member of a dump from which the scheduler can be restored exactly."""
    packed = base64.b64encode(zlib.compress(checkpoint)).decode()
    return ExactState(version=EXACT_VERSION, licorne=__version__, checkpoint=packed)


def full_state(api: SchedulerAPI, now_ns: int, *, exact: bool = False) -> bytes:
    """Return the state dump as JSON, without the history of events and figures that only a server keeps.

    `exact`: it has the member `licorne`, with which the scheduler can be restored exactly.

    Raises:
        IndexError: no resource manager is registered.
    """
    backend = Backend(api, lambda: now_ns)
    manager = backend.managers()[0]
    config, _ = running(manager, api.extra_config(manager.rm_id))
    found = exact_state(api.checkpoint()) if exact else None
    return b"".join(state_pieces(Monitor(backend, ""), config, [], [], found))
