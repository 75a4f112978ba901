"""How a request comes in, however long it is: read whole, then taken in, both a little at a time.

Reading changes nothing; what is wrong with a request is found there, and nothing of it is taken then. Taking in, once it
has begun, is brought to its end whatever becomes of the stream, unless the resource manager itself is over. Until the end
nothing is decided for it: what decisions see of a request is all of it. Later requests of the same kind wait, also those of
another stream.
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

if TYPE_CHECKING:
    from licorne.core.api import SchedulerAPI
    from licorne.si._schema import Message
    from licorne.si.rpc import Kind

    from .session import Session

WHOLE_BYTES: dict[Kind, int] = {"allocation": 192 << 10, "update": 128 << 10, "application": 32 << 10, "node": 32 << 10}
"""Bytes up to which a request is read in one step, for this is quicker: 1,000 asks are, and some hundred nodes."""
INPUTS, INPUTS_MAX = 200, 400
"""Inputs that are taken in in one step, at first, and at most."""
_REQUESTS: dict[Kind, type[Message]] = {
    "update": first.UpdateRequest,
    "application": v19.ApplicationRequest,
    "allocation": v19.AllocationRequest,
    "node": v19.NodeRequest,
}


# -- reading -------------------------------------------------------------------------------------------------


def read_whole(kind: Kind, data: bytes) -> tuple[str, Translation]:
    """A request in the core's terms, and whose it is; all at once.

    Raises:
        WireError: the bytes are no such request.
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
    """As `read_whole`, a little at a time where it is long."""
    if len(data) <= WHOLE_BYTES[kind]:
        return read_whole(kind, data)
    made: tuple[str, Translation] | None = None
    async for step in paced(steps(kind, data)):
        made = step
    assert made is not None
    return made


def steps(kind: Kind, data: bytes) -> Iterator[tuple[str, Translation] | None]:
    """The steps of reading a request; the last one has what `read_whole` gives. Raises as it does."""
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
        for part in odd.parts:
            _read_part(kind, request, part)
            yield None
        try:
            read_whole(
                kind, data[odd.at :]
            )  # what is malformed is so from here on, and need not be read from its start
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
    """Takes requests in.

    Parameters:
        api: the scheduler.
        current: whether a session is still that of its resource manager, and not over.
        settle: tells the scheduler whether to decide for a session.
        failed: told when a request could not be taken, within the exception's handling: a bug.
    """

    def __init__(
        self,
        api: SchedulerAPI,
        current: Callable[[Session], bool],
        settle: Callable[[Session], None],
        failed: Callable[[Session, Kind], None],
    ) -> None:
        self._api = api
        self._current = current
        self._settle = settle
        self._failed = failed

    async def turn(self, session: Session, kind: Kind) -> None:
        """Wait until what came before, of the same kind, is taken in."""
        while kind in session.taking:
            await asyncio.shield(session.taking[kind])

    async def take(self, session: Session, kind: Kind, translation: Translation) -> None:
        """Take all of it in. If this is cancelled, it is taken in all the same."""
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
                    self._settle(session)  # nothing is decided meanwhile
                    await asyncio.sleep(0)
                    now = time.perf_counter()
                    ends = now + SLICE_S
                if not self._current(session) or not self._step(session, kind, step):
                    break
                if (
                    time.perf_counter() - now < SLICE_S / 3
                ):  # each step has a price of its own, the more the more managers
                    size[0] = min(2 * size[0], INPUTS_MAX)
        finally:
            del session.taking[kind]
            if self._current(session):
                self._settle(session)

    def _step(self, session: Session, kind: Kind, translation: Translation) -> bool:
        try:
            self._api.take(session.rm_id, translation)
        except Exception:  # noqa: BLE001  whatever it is, the state of this resource manager is not to be trusted any more
            self._failed(session, kind)
            return False
        return True


def portions(translation: Translation, size: Sequence[int] = (INPUTS,)) -> Iterator[Translation]:
    """The inputs in portions of `size`, which may change meanwhile, in order; the refusals come before all.

    New nodes that bring what runs on them stay together with the applications behind them, for the core takes in what runs
    there when it has both.
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
