"""Reading requests and passing them to the scheduler, in steps, so that a long request does not block the loop.

First a request is read to its end. Reading changes nothing, and a malformed request is refused here, as a whole. Then
its inputs are passed to the core. Once this has begun it goes on to the end, even if the stream breaks, unless the
resource manager itself is stopped. Until the end nothing is decided for that resource manager, so a decision never sees
half a request. Later requests of the same kind wait, also those of another stream.

`licorne.service.sessions` calls the two in turn, `read` and `RequestIntake.take`, because other modules have work to do
between them. The id of the resource manager is in the bytes, so a stream can be bound to its session only after a
request was read; and limits on items, and lookups of groups, need the inputs before the first of them takes effect.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from licorne.daemon.pace import SLICE_S, paced
from licorne.si import WireError, adapt_first, adapt_v19, first, v19, wire
from licorne.si.adapt import Translation
from licorne.si.messages import AddApplication, NodeUpdate
from licorne.si.parts import ASKS, Part, UndividedError, moved, moved_text, parts

from .session import Session, State

if TYPE_CHECKING:
    from licorne.core.api import SchedulerAPI
    from licorne.si._schema import Message
    from licorne.si.rpc import Kind

WHOLE_BYTES: dict[Kind, int] = {"allocation": 192 << 10, "update": 128 << 10, "application": 32 << 10, "node": 32 << 10}
"""Bytes up to which a request is read in one step, which is faster: 1,000 asks are below it, or some hundred nodes."""
INPUTS, INPUTS_MAX = 200, 400
"""Inputs passed to the core in one step: at first, and at most."""
_REQUESTS: dict[Kind, type[Message]] = {
    "update": first.UpdateRequest,
    "application": v19.ApplicationRequest,
    "allocation": v19.AllocationRequest,
    "node": v19.NodeRequest,
}


# -- reading -------------------------------------------------------------------------------------------------


def read_whole(kind: Kind, data: bytes) -> tuple[str, Translation]:
    """Read a request in one step: the id of its resource manager, and its inputs for the core.

    Raises:
        WireError: the bytes are no request of this kind.
    """
    if kind == "update":
        return adapt_first.inputs_from_update_bytes(data)
    if kind == "allocation":
        return adapt_v19.inputs_from_allocation_bytes(data)
    if kind == "application":
        applications = wire.decode(v19.ApplicationRequest, data)
        return applications.rm_id, adapt_v19.inputs_from_application_request(applications)
    nodes = wire.decode(v19.NodeRequest, data)
    return nodes.rm_id, adapt_v19.inputs_from_node_request(nodes)


async def read(kind: Kind, data: bytes) -> tuple[str, Translation]:
    """Read a request, in steps of a few milliseconds if it is long: the id of its resource manager, and its inputs.

    Raises:
        WireError: the bytes are no request of this kind.
    """
    if len(data) <= WHOLE_BYTES[kind]:
        return read_whole(kind, data)
    made: tuple[str, Translation] | None = None
    async for step in paced(steps(kind, data)):
        made = step
    assert made is not None
    return made


def steps(kind: Kind, data: bytes) -> Iterator[tuple[str, Translation] | None]:
    """Read a request in steps, of which the last one yields what `read_whole` returns, the others None.

    Raises:
        WireError: the bytes are no request of this kind. Path and offset are those in the request, not in the part.
    """
    request = _REQUESTS[kind].__name__
    rm_id = ""
    found: list[tuple[int, Translation]] = []
    try:
        for part in parts(_REQUESTS[kind], data):
            if part is not None:
                rm_id, one = _read_part(kind, request, part)
                found.append((part.rank, one))
            yield None
    except UndividedError as odd:
        # The parts before the odd place are read first, so that the first error of the request is the one reported.
        for part in odd.parts:
            _read_part(kind, request, part)
            yield None
        try:
            read_whole(kind, data[odd.at :])  # the error is in the bytes from here on; those before it have been read
        except WireError as error:
            if not error.path.startswith(tuple(f"{request}.{asks}[" for asks in ASKS)):
                raise moved(error, request, odd.at, odd.counts) from None
        rm_id, one = read_whole(kind, data)
        found = [(0, one)]
    result = Translation()
    for _, one in sorted(found, key=itemgetter(0)):
        result.inputs += one.inputs
        result.outputs += one.outputs
        result.ignored += one.ignored
    yield rm_id, result


def _read_part(kind: Kind, request: str, part: Part) -> tuple[str, Translation]:
    try:
        rm_id, found = read_whole(kind, part.data)
    except WireError as error:
        raise moved(error, request, part.offset, {part.name: part.first}) from None
    if part.first:
        for output in found.outputs:
            said: Any = output
            said.reason = moved_text(said.reason, part.name, part.first)
        found.ignored = [moved_text(text, part.name, part.first) for text in found.ignored]
    return rm_id, found


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
        self,
        api: SchedulerAPI,
        settle: Callable[[Session], None],
        failed: Callable[[Session, Kind], None],
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
                if (
                    time.perf_counter() - now < SLICE_S / 3
                ):  # each step has a fixed cost, which grows with the number of resource managers
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
    at = 0
    while at < len(inputs) or outputs:
        end = min(at + size[0], len(inputs))
        if any(type(one) is NodeUpdate and one.existing for one in inputs[at:end]):
            while end < len(inputs) and isinstance(inputs[end], NodeUpdate | AddApplication):
                end += 1
        yield Translation(inputs=inputs[at:end], outputs=outputs)
        outputs = []
        at = end


__all__ = ["RequestIntake", "portions", "read", "read_whole", "steps"]
