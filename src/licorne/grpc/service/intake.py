"""Reading requests and passing them to the scheduler, in steps, so that a long request does not block the loop.

First a request is read to its end. Reading changes nothing, and a malformed request is refused here, as a whole. Then
its inputs are passed to the core. Once this has begun it goes on to the end, even if the stream breaks, unless the
resource manager itself is stopped. Until the end nothing is decided for that resource manager, so a decision never sees
half a request. Later requests of the same kind wait, also those of another stream.

`licorne.grpc.service.sessions` calls the two in turn, `read` and `RequestIntake.take`, because other modules have work to do
between them. The id of the resource manager is in the bytes, so a stream can be bound to its session only after a
request was read; and limits on items, and lookups of groups, need the inputs before the first of them takes effect.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from licorne.host.pace import SLICE_S, paced
from licorne.si import adapt_first, adapt_v19
from licorne.si.adapt import Part, Reading, Translation
from licorne.si.messages import AddApplication, NodeUpdate

from .session import Session, State

if TYPE_CHECKING:
    from licorne.core.api import SchedulerAPI
    from licorne.si.rpc import Kind

WHOLE_BYTES: dict[Kind, int] = {"allocation": 192 << 10, "update": 128 << 10, "application": 32 << 10, "node": 32 << 10}
"""Bytes up to which a request is read in one step, which is faster: 1,000 asks are below it, or some hundred nodes."""
INPUTS, INPUTS_MAX = 200, 400
"""Inputs passed to the core in one step: at first, and at most."""
READINGS: dict[Kind, Reading] = {
    "update": adapt_first.UPDATES,
    "application": adapt_v19.APPLICATIONS,
    "allocation": adapt_v19.ALLOCATIONS,
    "node": adapt_v19.NODES,
}


# -- reading -------------------------------------------------------------------------------------------------


async def read(kind: Kind, data: bytes) -> tuple[str, Translation]:
    """Read a request, in steps of a few milliseconds if it is long: the id of its resource manager, and its inputs.

    Raises:
        WireError: the bytes are no request of this kind.
    """
    reading = READINGS[kind]
    if len(data) <= WHOLE_BYTES[kind]:
        return reading.at_once(data)
    made: tuple[str, Translation] | None = None
    async for step in paced(reading.in_steps(data)):
        made = step
    assert made is not None
    return made


# -- taking in -----------------------------------------------------------------------------------------------


class RequestIntake:
    """Passes the inputs of requests to the scheduler, one request of a kind at a time for each session.

    A long request is passed by a task of its own, which may outlive the call of `take` that began it. So pauses and
    failures are reported by callbacks, not by a result or an exception.

    Parameters:
        api: the scheduler.
        settle: tells the scheduler whether to decide for a session.
        failed: called, while the exception is handled, when the scheduler failed on a request, which is a bug.
    """

    def __init__(
        self, api: SchedulerAPI, settle: Callable[[Session], None], failed: Callable[[Session, Kind], None]
    ) -> None:
        self._api = api
        self._settle = settle
        self._failed = failed

    async def take(self, session: Session, kind: Kind, translation: Translation) -> None:
        """Pass a request to the scheduler, after all earlier ones of its kind; drop it if the session was stopped.

        Cancelling the caller ends the wait for earlier requests, but not the passing of this one.
        """
        while kind in session.taking:
            await asyncio.shield(session.taking[kind])
        if session.state is State.STOPPED:
            return
        session.messages_in += 1
        if translation.ignored:
            session.log.info("parts of a request ignored", kind=kind, parts=len(translation.ignored))
        if len(translation.inputs) <= INPUTS:
            self._step(session, kind, translation)
            return
        task = session.taking[kind] = asyncio.create_task(self._all(session, kind, translation))
        await asyncio.shield(task)

    async def _all(self, session: Session, kind: Kind, translation: Translation) -> None:
        size = [INPUTS]
        try:
            ends = time.perf_counter() + SLICE_S
            for step in portions(translation, size):
                now = time.perf_counter()
                if now >= ends:
                    self._settle(session)  # pauses the session, before others have their turn
                    await asyncio.sleep(0)
                    now = time.perf_counter()
                    ends = now + SLICE_S
                if session.state is State.STOPPED or not self._step(session, kind, step):
                    break
                # Each step has a fixed cost, which grows with the number of resource managers.
                if time.perf_counter() - now < SLICE_S / 3:
                    size[0] = min(2 * size[0], INPUTS_MAX)
        finally:
            del session.taking[kind]
            if session.state is not State.STOPPED:
                self._settle(session)

    def _step(self, session: Session, kind: Kind, translation: Translation) -> bool:
        try:
            self._api.take(session.rm_id, translation)
        except Exception:  # noqa: BLE001  a bug: the state of this resource manager can no longer be trusted
            self._failed(session, kind)
            return False
        return True


def portions(translation: Translation, size: Sequence[int] = (INPUTS,)) -> Iterator[Translation]:
    """Divide inputs into portions of `size[0]`, in their order; refusals (`outputs`) go with the first portion.

    The caller may change `size` between portions. New nodes with existing allocations stay in one portion with the
    applications that follow them, for the core restores an existing allocation when it has both node and application.
    """
    inputs = translation.inputs
    outputs = translation.outputs
    part = translation.part
    at = 0
    while at < len(inputs) or outputs:
        end = min(at + size[0], len(inputs))
        if any(type(one) is NodeUpdate and one.existing for one in inputs[at:end]):
            while end < len(inputs) and isinstance(inputs[end], NodeUpdate | AddApplication):
                end += 1
        yield Translation(inputs=inputs[at:end], outputs=outputs, part=part and Part(part.data, at))
        outputs = []
        at = end
