"""A copy of a collection of Kubernetes objects, which follows every change: list once, then watch, and begin again where that ended.

    client = Client(Access.load())
    reflector = Reflector(client, NODES, handler)
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    print(len(reflector.store))

The handler is told of each change, in the order of the versions of each object, none twice. When a list must be read anew,
because the server no longer has the changes since the last one, the handler gets the difference, so it cannot tell. A list
that is read as a stream comes without order, so it is handed over as a whole when it is complete.
docs/understand/reflector.md says what it promises.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from licorne.kube.api import ApiError, Client, ExpiredError, Fault, Kind, UnansweredError, WatchEvent
from licorne.kube.backoff import Backoff
from licorne.kube.objects import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)
T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)

BACKOFF: Final = Backoff(first_s=0.2, longest_s=30.0, jitter=(0.5, 1.0))
"""Whatever is decided meanwhile rests on old news, so the waits are short at first and at most."""
FORBIDDEN_BACKOFF: Final = Backoff(first_s=0.2, longest_s=60.0, jitter=(0.8, 1.2))
"""How soon a kind is tried again that may not be read: a permission may be granted, or the API server be starting."""
ABSENT_BACKOFF: Final = FORBIDDEN_BACKOFF._replace(first_s=FORBIDDEN_BACKOFF.longest_s)
"""How soon a kind is tried again that the API server does not have: seldom from the start, as it is installed seldom."""
REFUSALS: Final = 6
"""After so many attempts that are refused (403), within 10 to 15 s, one more makes it done without the kind."""
WATCH_S: Final = (240.0, 480.0)
"""How long the server is asked to keep a watch open, drawn anew each time so that not all end together."""
SHORT_S: Final = 10.0
"""A watch that ends sooner is short: of those, only one that told something new has worked."""
BROKEN_STREAMS: Final = 3
"""So many streamed lists in a row break off before lists are read in pages, each of which is a short answer."""
PAGE: Final = 1000
FORBIDDEN, NOT_FOUND = 403, 404
INVALID: Final = (400, 422)
"""How a server says that it does not know streamed lists."""


class Handler(Protocol[T_contra]):
    """What is told of changes. The methods must not raise; each object is shared with the store, so do not change it."""

    def added(self, new: T_contra) -> None:
        """Take in an object that is new."""

    def updated(self, old: T_contra, new: T_contra) -> None:
        """Take in a change."""

    def deleted(self, old: T_contra) -> None:
        """Take in that an object is gone, or that it left the selection; `old` is its last known state."""


class Reflector(Generic[T]):
    """Follows the objects of one kind.

    Parameters:
        source: where they are listed and watched.
        kind: which objects.
        handler: told of every change.
        warn: told in a sentence what went wrong and what is done about it; not of what is usual, such as a watch
            that the server ends. A missing permission or kind is said once, and done without.
        forbidden: given, a missing permission is waited for instead of doing without the objects, and each attempt is
            told here: for objects without which something would be decided that must not be.
        rng: draws the waiting times; given, they can be repeated.
        sleep: waits; given, tests need no time.

    `store` has the objects by namespace and name. `version` is how far it is: the server's collection had this content
    then, or later. `synced` is set when the first list has been handed over.
    """

    def __init__(
        self,
        source: Client,
        kind: Kind[T],
        handler: Handler[T],
        *,
        warn: Callable[[str], None] = lambda _: None,
        forbidden: Callable[[str], None] | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._kind = kind
        self._handler = handler
        self._warn = warn
        self._forbidden = forbidden
        self._rng = rng or random.Random()  # noqa: S311  spreads load, guards nothing
        self._sleep = sleep
        self.store: dict[tuple[str, str], T] = {}
        self.version = 0
        self.synced = asyncio.Event()
        self.absent = False
        """Whether the kind is missing, or may not be read, and never was: then the store stays empty."""
        self.relists = 0
        """How often the list was read anew after the first time."""
        self.news_s: float | None = None
        """The loop's time when a watch told something last, if only how far it is; None: never."""
        self._moved = asyncio.Event()
        self._interrupt: asyncio.Timeout | None = None
        self._lists_wanted = 0
        self._lists_begun = 0  # how many were wanted when the present one was begun
        self._lists_read = 0
        self._streams = True
        self._broken_streams = 0  # in a row
        self._listed = False
        self._was_listed = False
        self._failures = 0  # in a row, as are the lists that expired
        self._unanswered = False  # the last failure was no answer at all
        self._expired = 0
        self._published_s = math.inf  # when a list was complete last, unless one has expired since
        self._refusals = 0

    # -- for whoever uses the store -----------------------------------------------------------------------------

    async def reached(self, version: int) -> None:
        """Wait until the store is at a version, or at a later one."""
        while self.version < version:
            self._moved.clear()
            await self._moved.wait()

    async def read_again(self) -> None:
        """Read the list anew, as the server has it now, and wait until the handler has been told what is different."""
        self._lists_wanted += 1
        wanted = self._lists_wanted
        self._listed = False
        if self._interrupt is not None and not self._interrupt.expired():
            self._interrupt.reschedule(asyncio.get_running_loop().time())
        while self._lists_read < wanted:
            self._moved.clear()
            await self._moved.wait()

    def answered(self, new: T) -> None:
        """Take in an object that a write was answered with, before the watch shows it; one that is not known may be gone already."""
        known = self.store.get(new.key)
        if known is not None and known.metadata.uid == new.metadata.uid:
            self._put(new)

    # -- the loop -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None) as interrupt:
                    self._interrupt = interrupt
                    try:
                        await self._follow()
                    finally:
                        self._interrupt = None  # it cannot be rescheduled any more

    async def _follow(self) -> None:
        """Read the list if need be, and follow the changes until the watch ends."""
        self._lists_begun = self._lists_wanted
        try:
            if not (self._listed or self._streams):
                await self._list()
            await self._watch()
        except ExpiredError as error:
            self._listed = False
            self.relists += 1
            await self._list_expired(error)
        except ApiError as error:
            if error.status == FORBIDDEN:
                self._answers()
            await self._refused(error)
        except UnansweredError as error:
            self._unanswered = True
            await self._wait(str(error))

    def _answers(self) -> None:
        """Take note of an answer that only a server gives that is up: failures to reach one before do not pace what follows."""
        if self._unanswered:
            self._unanswered = False
            self._failures = 0

    async def _refused(self, error: ApiError) -> None:
        if error.status in INVALID and self._streams and not self._listed:
            self._streams = False
            return
        if error.status == FORBIDDEN and self._forbidden is not None and not self._was_listed:
            await self._wait(str(error), error.retry_after_s, self._forbidden)
            return
        if error.status in (FORBIDDEN, NOT_FOUND) and not self._was_listed:
            await self._do_without(error)
            return
        # What could be read once is missed: the store has a past state, which must not pass for the present one.
        await self._wait(str(error), error.retry_after_s)

    async def _do_without(self, error: ApiError) -> None:
        """Do without objects that never could be read, and wait before they are tried again.

        That a kind does not exist is believed at once. That a permission is missing is not: an API server that starts
        answers 403 until it knows the roles, and then objects would be missing that are there, such as disruption budgets
        that evictions must keep. The waits double from the first 403 on, however many attempts had no answer before it, so
        after a start that refuses for longer, the objects are missing for about as long again at most.
        """
        self._refusals += error.status == FORBIDDEN
        if self.absent or error.status == NOT_FOUND or self._refusals > REFUSALS:
            if not self.absent:
                self.absent = True
                self._warn(f"{self._kind.title} cannot be read, so it is done without them: {error}")
            self._list_is_read()
        backoff = FORBIDDEN_BACKOFF if error.status == FORBIDDEN else ABSENT_BACKOFF
        await self._sleep(backoff.wait_s(max(self._refusals, 1), self._rng, error.retry_after_s))

    async def _wait(self, why: str, asked_s: float | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Wait before the next attempt: longer after each failure, and never all clients at once.

        The first failure in a row is told only if `tell` is given, which is told in place of `warn`.
        """
        self._failures += 1
        wait_s = BACKOFF.wait_s(self._failures, self._rng, asked_s)
        if self._failures > 1 or tell is not None:
            (tell or self._warn)(f"{self._kind.title}: {why}; tried again in {wait_s:.1f} s")
        await self._sleep(wait_s)

    async def _list_expired(self, error: ExpiredError) -> None:
        """Wait before the next list, unless this is the first one in a row that expired: that is usual.

        Only a complete list that was of use for `SHORT_S` ends the row, whether or not a watch had news meanwhile. Otherwise
        a server that forgets faster than it lists would be asked for one complete list after the other.
        """
        self._answers()
        if asyncio.get_running_loop().time() - self._published_s >= SHORT_S:
            self._expired = 0
        self._published_s = math.inf
        self._expired += 1
        if self._expired > 1:
            self._failures = max(self._failures, self._expired - 2)
            await self._wait(str(error))

    def _stream_broke_off(self) -> None:
        """Count a streamed list that ended before it was complete.

        A proxy may cut every answer that is long or takes long. Then lists are read in pages for good: one more streamed
        list that breaks off before each later list would only delay it.
        """
        self._broken_streams += 1
        if self._broken_streams == BROKEN_STREAMS:
            self._streams = False
            self._warn(
                f"{self._kind.title}: {BROKEN_STREAMS} streamed lists in a row broke off; "
                "from now on lists are read in pages"
            )

    def _worked(self) -> None:
        self._failures = 0
        self.absent = False

    # -- lists and watches --------------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Read the list in pages."""
        fresh: dict[tuple[str, str], T] = {}
        following = ""
        while True:
            page = await self._source.list_page(self._kind, limit=PAGE, next_page=following, newest=True)
            for fault in page.faults:
                self._keep(fresh, fault)
            for one in page.items:
                fresh[one.key] = one
            following = page.next
            if not following:
                break
        self._publish(fresh, page.version)

    async def _watch(self) -> None:
        """Follow the changes since the last version; without a list, the server begins with all objects there are."""
        listed = self._listed
        fresh: dict[tuple[str, str], T] | None = None if listed else {}
        clock = asyncio.get_running_loop().time
        opened, heard, since_s, version = False, False, clock(), self.version
        stream = self._source.watch(
            self._kind,
            str(self.version) if listed else "",  # without a version: what there is now, not what a cache has
            initial=fresh is not None,
            timeout_s=self._rng.uniform(*WATCH_S),
        )
        try:
            async with contextlib.aclosing(stream):
                async for events in stream:
                    if not opened:
                        opened, since_s = True, clock()
                    if not events:
                        continue
                    heard, self.news_s = True, clock()
                    for event in events:
                        if fresh is None:
                            self._take(event)
                        elif event.end_of_list:
                            self._broken_streams = 0
                            self._publish(fresh, event.version)
                            fresh, since_s, version = None, clock(), self.version
                        else:
                            self._collect(fresh, event)
                    if fresh is None:
                        self._watch_told(clock() - since_s, version)
        except (ApiError, UnansweredError):
            if heard and fresh is not None:
                self._stream_broke_off()
            raise
        finally:
            if opened and fresh is None and clock() - since_s >= SHORT_S:
                self._worked()  # also without news, as of kinds that seldom change
        if fresh is not None:
            self._stream_broke_off()
            raise UnansweredError("the server closed the watch before the list was complete")
        if listed and (not opened or clock() - since_s < SHORT_S):
            await self._wait("the server closed the watch at once")

    def _watch_told(self, lasted_s: float, version: int) -> None:
        """Judge whether a watch has worked that has told something, `lasted_s` after it began with a version.

        A server may open each watch, tell where it is, and break off: that is a failure each time, and must not pass for work.
        """
        if lasted_s >= SHORT_S or self.version != version:
            self._worked()

    def _collect(self, fresh: dict[tuple[str, str], T], event: WatchEvent[T]) -> None:
        """Take an event of a list that is not complete yet."""
        if event.fault is not None:
            self._keep(fresh, event.fault)
            if event.type == "DELETED":
                fresh.pop((event.fault.namespace, event.fault.name), None)
        elif event.object is not None and event.type == "DELETED":
            fresh.pop(event.object.key, None)
        elif event.object is not None:
            fresh[event.object.key] = event.object

    def _keep(self, fresh: dict[tuple[str, str], T], fault: Fault) -> None:
        """Put the known state of an object into a list that is being read, because its present state cannot be read.

        Such an object is there: without it the handler would be told that it was deleted, and the place of a pod that runs
        be given to another.
        """
        self._warn(fault.text)
        known = self.store.get((fault.namespace, fault.name))
        if known is not None and known.metadata.uid == fault.uid:
            fresh[known.key] = known

    def _publish(self, fresh: dict[tuple[str, str], T], version: str) -> None:
        """Take a complete list: the handler is told the difference to what was known."""
        self._worked()
        self._published_s = self.news_s = asyncio.get_running_loop().time()
        for key in [key for key in self.store if key not in fresh]:
            self._handler.deleted(self.store.pop(key))
        for new in fresh.values():
            self._put(new)
        self._advance(version)
        self._listed = self._lists_begun == self._lists_wanted
        self._was_listed = True
        self._list_is_read()

    def _list_is_read(self) -> None:
        self._lists_read = self._lists_begun
        self.synced.set()
        self._moved.set()

    def _take(self, event: WatchEvent[T]) -> None:
        if event.fault is not None:
            self._warn(event.fault.text)
            if event.type == "DELETED":
                self._drop((event.fault.namespace, event.fault.name), event.fault.uid)
            return
        if event.object is not None:
            if event.type == "DELETED":
                self._drop(event.object.key, event.object.metadata.uid)
            else:
                self._put(event.object)
        self._advance(event.version)

    # -- the store ----------------------------------------------------------------------------------------------

    def _put(self, new: T) -> None:
        key = new.key
        old = self.store.get(key)
        if old is None:
            self.store[key] = new
            self._handler.added(new)
        elif old.metadata.uid != new.metadata.uid:
            self._handler.deleted(old)
            self.store[key] = new
            self._handler.added(new)
        elif _number(old.metadata.resource_version) < _number(new.metadata.resource_version):
            self.store[key] = new
            self._handler.updated(old, new)

    def _drop(self, key: tuple[str, str], uid: str) -> None:
        old = self.store.get(key)
        if old is not None and old.metadata.uid == uid:
            del self.store[key]
            self._handler.deleted(old)

    def _advance(self, version: str) -> None:
        number = _number(version)
        if number > self.version:
            self.version = number
            self._moved.set()


def _number(version: str) -> int:
    """Return a version as a number; since Kubernetes 1.35 those of one kind can be compared."""
    return int(version) if version.isascii() and version.isdigit() else 0


__all__ = ["Handler", "Reflector"]
