"""All resource managers of the service: their registrations, their streams, and the messages for them.

This is where the lifecycle of a resource manager meets the scheduler: registration, the choice of its dialect, pause
and stop, another instance that registers under the same id, and the status RESYNC, by which a resource manager learns
that it must register again. Waiting for the network is left to `streams`. Only `Sessions.take` gives the loop back, in
long requests and lookups of groups. After a lookup it checks that the stream is still in use, and the intake checks the
session whenever it has waited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import grpc

from licorne.config import ConfigError
from licorne.core.api import RegistrationError, SchedulerAPI
from licorne.core.manager import RegisteredManager
from licorne.grpc.service.groups.resolver import Resolver
from licorne.host.log import Log
from licorne.si import WireError, adapt_first, adapt_v19, first, v19, wire
from licorne.si.adapt import Part
from licorne.si.messages import Output
from licorne.si.rpc import RESYNC, Kind

from .bounds import enforce
from .intake import RequestIntake, read
from .session import Dialect, Session, State
from .settings import ServiceSettings
from .streams import End, Stream


class Refused(Exception):  # noqa: N818  it is an answer
    """The answer to a call that is refused: a gRPC status and a text."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class Sessions:
    """The resource managers of one service, by id."""

    def __init__(self, api: SchedulerAPI, settings: ServiceSettings, log: Log, groups: Resolver | None = None) -> None:
        self.api = api
        self.groups = groups or Resolver()
        self.settings = settings
        self.log = log
        self.by_id: dict[str, Session] = {}
        self.wake = asyncio.Event()
        """Set when there may be something to decide."""
        self.told_lately: dict[Session, None] = {}
        """The sessions that got a message in the current slice; the engine clears it before each."""
        self.gone: Callable[[RegisteredManager], None] = lambda _: None
        """Called with the state of a resource manager when the service drops it."""
        self._intake = RequestIntake(api, self._settle, self._failed)
        self._count = 0
        self._epoch = time.time_ns()

    def next_number(self) -> int:
        """Return the next number in the common order of streams and registrations."""
        self._count += 1
        return self._count

    def build_info(self, rm_id: str) -> Mapping[str, str]:
        """Return the build information of a resource manager's registration; empty for an unknown one."""
        session = self.by_id.get(rm_id)
        return {} if session is None else session.request.build_info

    # -- registration ----------------------------------------------------------------------------------

    def register(self, data: bytes, peer: str) -> Session:
        """Register a resource manager. An earlier registration of the same id ends.

        Raises:
            Refused: bytes that are no request, an id that is empty or too long, too many resource managers, a
            configuration that is refused. An earlier registration of the id then stays in force.
        """
        try:
            request = wire.decode(v19.RegisterResourceManagerRequest, data)
        except WireError as error:
            self.log.warning("registration refused", peer=peer, reason="no such message", bytes=len(data))
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        old = self.by_id.get(request.rm_id)
        before = self.api.cluster.managers.get(request.rm_id)
        # The core comes first: if it refuses, the earlier registration goes on, and its session must not have ended.
        try:
            self._check_room(request.rm_id, old)
            self.api.register_resource_manager(request)
        except Refused as refusal:
            self.log.warning("registration refused", rm=request.rm_id[:80], peer=peer, reason=refusal.details)
            raise
        except RegistrationError as error:
            self.log.warning("registration refused", rm=request.rm_id, peer=peer, **_reason(error))
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        if before is not None:
            self.gone(before)
        if old is not None:
            self._take_over(old)
        opened = self.next_number()
        session = Session(
            request,
            f"{self._epoch}-{opened}",
            opened,
            buffer_bytes=self.settings.buffer_bytes,
            on_pause=self._update_pause,
            log=self.log,
        )
        session.again = old is not None
        self.by_id[request.rm_id] = session
        self._settle(session)
        self._expire_later(session)
        session.log.info(
            "registered",
            peer=peer,
            version=request.version[:80],
            policy_group=request.policy_group[:80],
            configuration=bool(request.config),
            again=session.again,
        )
        return session

    def _check_room(self, rm_id: str, old: Session | None) -> None:
        most = self.settings.name_chars
        if len(rm_id) > most:
            text = f"registration of RM failed: rmID: has {len(rm_id)} characters, at most {most} are allowed"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text)
        if old is None and len(self.by_id) >= self.settings.managers:
            text = f"registration of RM failed: there are {len(self.by_id)} resource managers, and no more are allowed"
            raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

    def _take_over(self, old: Session) -> None:
        old.cancel_timer()
        old.state = State.STOPPED
        text = f"resource manager {old.rm_id} has registered again, and what belonged to its earlier registration ends"
        old.end_streams(lambda _: End(grpc.StatusCode.ABORTED, text))
        if old.streams:
            old.log.info("taken over", streams=len(old.streams))

    # -- streams ---------------------------------------------------------------------------------------

    def bind(self, stream: Stream, rm_id: str, number: str = "") -> bool:
        """Bind a stream to a resource manager, which its metadata or its first request names.

        `number` is that of the registration which the metadata name, or empty. Returns False, and ends the stream, if
        the resource manager is not registered, has registered again since, or speaks the other dialect.
        """
        session = self.by_id.get(rm_id)
        if session is None:
            return self._resync(stream, f'RmID="{rm_id[:80]}" not registered')
        if number and number != session.number:
            return self._resync(stream, f'RmID="{rm_id}" has been registered again since')
        if session.again and stream.opened < session.opened:
            return self._resync(stream, f'RmID="{rm_id}" has been registered again after this stream was opened')
        dialect: Dialect = "first" if stream.kind == "update" else "1.9"
        if session.dialect is None:
            refusal = self._choose(session, dialect)
            if refusal:
                stream.end(End(grpc.StatusCode.INVALID_ARGUMENT, refusal))
                return False
        elif session.dialect != dialect:
            return self._resync(
                stream,
                f'RmID="{rm_id}" speaks the other dialect; its first stream was of the {session.dialect} interface',
            )
        before = session.streams.get(stream.kind)
        if before is not None:
            before.end(End(grpc.StatusCode.ABORTED, "another stream of this kind was opened in its place"))
        session.streams[stream.kind] = stream
        stream.attach(session)
        session.cancel_timer()
        if session.state is not State.RUNNING:
            session.log.info("running", was=session.state.value, dialect=dialect, peer=stream.peer)
            session.state = State.RUNNING
        self._settle(session)
        if session.full:
            self._slow_later(session)
        return True

    def _choose(self, session: Session, dialect: Dialect) -> str:
        """Choose the dialect by the first stream. Returns why it cannot be that dialect, or an empty text."""
        if dialect == "first":
            request = session.request
            if request.config or request.extra_config:
                return "the registration brought a configuration, which the dialect of this stream does not know"
            # At registration the dialect was unknown, and the core took it for 1.9. Nothing has come or gone since, so
            # registering once more loses nothing.
            try:
                self.api.register_resource_manager(
                    first.RegisterResourceManagerRequest(
                        rm_id=request.rm_id, version=request.version, policy_group=request.policy_group
                    )
                )
            except RegistrationError as error:
                return str(error)
        session.dialect = dialect
        return ""

    def closed(self, stream: Stream) -> None:
        """Note that a stream has ended. After the last one the resource manager is stopped, or paused if it broke."""
        session = stream.session
        if session is None or session.streams.get(stream.kind) is not stream:
            return
        del session.streams[stream.kind]
        if session.streams or session.state is State.STOPPED:
            return
        if stream.orderly:
            self.stop(session, "goodbye")
        else:
            self._pause(session, "its last stream broke")

    # -- requests --------------------------------------------------------------------------------------

    async def take(self, stream: Stream, data: bytes) -> None:
        """Read a request and pass it to the scheduler. A malformed one ends the stream, and no part of it counts."""
        try:
            rm_id, translation = await read(stream.kind, data)
        except WireError as error:
            stream.end(End(grpc.StatusCode.INVALID_ARGUMENT, str(error)[:1000]))
            self.log.warning("request refused", peer=stream.peer, kind=stream.kind, bytes=len(data))
            return
        refused = len(translation.outputs)
        await enforce(translation, self.settings)
        if stream.kind == "allocation" and len(translation.outputs) == refused:
            translation.part = Part(data, 0)
        session = self._addressee(stream, rm_id)
        if session is None:
            return
        if stream.kind in ("application", "update"):
            wanted = self.groups.wanted(self.api.cluster.managers[rm_id].partitions, translation.inputs)
            if wanted:
                await self.groups.complete(wanted)
                # While the groups were looked up the stream may have ended, or another one of its kind replaced it.
                if stream.over or session.streams.get(stream.kind) is not stream:
                    return
        await self._intake.take(session, stream.kind, translation)
        self.wake.set()

    def _addressee(self, stream: Stream, rm_id: str) -> Session | None:
        """Return the session of a request, by its stream and the id in it; None if the request is to be dropped."""
        session = stream.session
        if session is None:
            return stream.session if self.bind(stream, rm_id) else None
        if session.state is State.STOPPED:
            return None  # the stream ends already, with a reason
        if rm_id != session.rm_id:
            text = f'rmID: "{rm_id[:80]}": this stream is that of RmID="{session.rm_id}"'
            stream.end(End(grpc.StatusCode.INVALID_ARGUMENT, text))
            return None
        return session

    def _failed(self, session: Session, kind: Kind) -> None:
        session.log.exception("a request failed", kind=kind)  # noqa: LOG004  the caller handles an exception
        self.stop(session, "an internal error", resync=True)

    def deliver(self, rm_id: str, outputs: list[Output]) -> None:
        """Encode messages of the core for a resource manager, and queue them for its streams."""
        session = self.by_id.get(rm_id)
        if session is None:
            return
        self.told_lately[session] = None
        adapter: Any = adapt_first if session.dialect == "first" else adapt_v19
        most = self.settings.message_bytes
        for at in range(0, len(outputs), self.settings.batch):
            part = outputs if len(outputs) <= self.settings.batch else outputs[at : at + self.settings.batch]
            for kind, data in pieces(adapter, part, rm_id, most):
                if kind != "state":  # the interface has no message for asks that wait for resources
                    session.tell(kind, data)

    # -- the end ---------------------------------------------------------------------------------------

    def stop(self, session: Session, reason: str, *, resync: bool = False) -> None:
        """End the registration of a resource manager; the core drops all of its state."""
        session.cancel_timer()
        session.state = State.STOPPED
        session.log.info("stopped", reason=reason)
        if resync:
            session.end_streams(lambda stream: self._resync_end(stream, reason))
        if self.by_id.get(session.rm_id) is session:
            del self.by_id[session.rm_id]
            before = self.api.cluster.managers.get(session.rm_id)
            self.api.stop(session.rm_id)
            if before is not None:
                self.gone(before)
        self.wake.set()

    def stop_all(self, reason: str) -> None:
        """Stop all resource managers; each must register again."""
        for session in list(self.by_id.values()):
            self.stop(session, reason, resync=True)

    def _resync(self, stream: Stream, reason: str) -> bool:
        self.log.info("resync", peer=stream.peer, kind=stream.kind, reason=reason)
        stream.end(self._resync_end(stream, reason))
        return False

    @staticmethod
    def _resync_end(stream: Stream, reason: str) -> End:
        last = wire.encode(adapt_first.resync()) if stream.kind == "update" else None
        return End(grpc.StatusCode.FAILED_PRECONDITION, f"{RESYNC}: {reason}", last)

    # -- pause and time --------------------------------------------------------------------------------

    def _pause(self, session: Session, reason: str) -> None:
        session.state = State.PAUSED
        session.log.warning("paused", reason=reason, waiting_bytes=session.buffered)
        self._settle(session)
        self._expire_later(session)

    def _update_pause(self, session: Session) -> None:
        """Handle that the buffer of a session became full, or that half of it was read."""
        if self.by_id.get(session.rm_id) is not session:
            return
        if session.full:
            session.log.warning("slowed down", waiting_bytes=session.buffered)
            self._slow_later(session)
        elif session.streams:  # the resource manager reads again
            session.cancel_timer()
            session.log.info("no longer slowed down", was=session.state.value)
            session.state = State.RUNNING
        self._settle(session)

    def _slow_later(self, session: Session) -> None:
        if session.state is not State.RUNNING:
            return
        session.cancel_timer()
        loop = asyncio.get_running_loop()
        session.timer = loop.call_later(
            self.settings.slow_after_s, self._pause, session, "it does not read what it is told"
        )

    def _expire_later(self, session: Session) -> None:
        session.cancel_timer()
        loop = asyncio.get_running_loop()
        session.timer = loop.call_later(self.settings.rm_timeout_s, self._expire, session)

    def _expire(self, session: Session) -> None:
        what = "without a stream" if session.state is State.REGISTERED else "paused"
        self.stop(session, f"{what} for {self.settings.rm_timeout_s:g} s", resync=True)

    def yield_turn(self, sessions: Iterable[Session], *, yielding: bool) -> None:
        """Set whether nothing is decided for these sessions, so that others have their turn."""
        for session in sessions:
            if self.by_id.get(session.rm_id) is session:
                session.yielding = yielding
                self._settle(session)

    def _settle(self, session: Session) -> None:
        """Pause or resume a resource manager in the core, as its session says, and wake the engine."""
        self.api.pause(session.rm_id, paused=session.paused)
        self.wake.set()


def _reason(error: RegistrationError) -> dict[str, object]:
    """Return log fields for a refused registration, without values of a configuration or of settings."""
    cause = error.__cause__
    if isinstance(cause, ConfigError):
        return {"reason": "its configuration", **cause.fields()}
    return {"reason": str(error) if cause is None else "its settings"}


def registered_text(data: bytes) -> str:
    """Return the configuration in a registration; empty if there is none, or if the bytes are no registration."""
    try:
        return wire.decode(v19.RegisterResourceManagerRequest, data).config
    except WireError:
        return ""


def pieces(adapter: Any, outputs: list[Output], rm_id: str, most: int) -> Iterator[tuple[Any, bytes]]:
    """Encode outputs as messages of at most `most` bytes each; the message of a single output may be longer.

    A list of outputs whose message is too long is split in two, repeatedly, down to one output; how long a message is can
    be known only by encoding it.
    """
    made: list[tuple[Any, bytes]] = adapter.responses_as_bytes(outputs, rm_id)
    if len(outputs) > 1 and any(len(data) > most for _, data in made):
        half = len(outputs) // 2
        yield from pieces(adapter, outputs[:half], rm_id, most)
        yield from pieces(adapter, outputs[half:], rm_id, most)
    else:
        yield from made
