"""Finding the groups of a user, if the resource manager does not name them (docs/spec/config.md, section 12.1).

    the message names groups        these count
    the user is empty               nothing is looked up; the core decides
    `usergroupresolver: os`         the operating system: the primary group first; without a name, its number
    `usergroupresolver: ldap`       there is no such resolver here, so they cannot be found
    anything else                   the user's only group has the user's name, which the core fills in

Lookups may take long or hang, so they are made in threads, with a timeout, and their answers are cached. The core never
looks groups up: it gets messages that name them, or that say why they could not be found, and rejects the latter. A
program that embeds the scheduler fills in the groups by itself:

    resolver = Resolver(GroupSettings(resolver="os"))
    message.groups = resolver.groups_of(message.user)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from licorne.grpc.service.settings import SettingError, check_amounts
from licorne.host.log import Log, no_log
from licorne.host.pace import paced
from licorne.host.setting_table import TABLE
from licorne.host.threads import Threads
from licorne.si.messages import AddApplication, Input

from .system import GroupsError, os_groups

if TYPE_CHECKING:
    from licorne.core.partition import Partition

Choice = Literal["config", "none", "os"]
Way = Literal["none", "os", "ldap"]
Answer = tuple[str, ...] | GroupsError
NO_LDAP = (
    "the queue configuration wants them from ldap, which is not built in; name them in the message, or use --group-resolver"
    " os where the operating system knows the users of the directory"
)
CLEAN_S = 60.0
"""How often expired answers are removed from the cache (section 12.1)."""
Wanted = list[tuple[AddApplication, Way]]
NAME_CHARS = 256
"""The longest name that is looked up."""
INLINE = 500
"""Applications of one message that get their groups in one step of the loop, at most."""
AT_ONCE = 64
"""Users of one message that are looked up at the same time, at most."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How groups are found.

    `resolver`: `config`: as the partition's queue configuration says; `none`, `os`: this one, whatever the queue
    configuration says. `positive_s`, `negative_s`: how long an answer or a failure is cached, in seconds; `capacity`: how
    many of both together. `timeout_s`: how long a lookup may take, in seconds. `threads`: how many lookups run at once.
    """

    resolver: Choice = TABLE.field("licorne.group-resolver")
    positive_s: float = 300.0
    negative_s: float = 30.0
    capacity: int = 10_000
    timeout_s: float = 10.0
    threads: int = 4

    def __post_init__(self) -> None:
        """Check that the settings are in range.

        Raises:
            SettingError: they are not.
        """
        if self.resolver not in ("config", "none", "os"):
            raise SettingError(f"group resolver: {self.resolver!r}: must be config, none or os")
        check_amounts(self, ("positive_s", "negative_s", "capacity", "timeout_s", "threads"))


class Resolver:
    """Finds the groups of users, and caches them. `clock`: seconds, from any start."""

    def __init__(
        self,
        settings: GroupSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        lookup: Callable[[str], tuple[str, ...]] = os_groups,
        log: Log | None = None,
    ) -> None:
        self.settings = settings or GroupSettings()
        self._clock = clock
        self._lookup = lookup
        self._log = log or no_log()
        self._known: dict[str, tuple[Answer, float]] = {}  # answer of the system, when it expires
        self._pending: dict[str, asyncio.Future[tuple[str, ...]]] = {}
        self._threads = Threads(self.settings.threads, "licorne-groups")
        self._cleaned = clock()

    def way(self, configured: str) -> Way:
        """Return how groups are found in a partition whose configuration names this type of resolver."""
        if self.settings.resolver != "config":
            return self.settings.resolver
        return "os" if configured == "os" else "ldap" if configured == "ldap" else "none"

    # -- one user, for programs that may wait -----------------------------------------------------------

    def groups_of(self, user: str, configured: str = "") -> tuple[str, ...]:
        """Find the groups of a user. This blocks the calling thread for as long as the operating system takes.

        `configured`: the type of resolver that the partition's configuration names (`usergroupresolver`).

        Raises:
            GroupsError: the groups cannot be found; the text says why.
        """
        way = self.way(configured)
        answer = self._answer(way, user)
        if answer is None:
            try:
                answer = self._lookup(user)
            except GroupsError as error:
                answer = error
            self._remember(user, answer)
        if isinstance(answer, GroupsError):
            raise GroupsError(str(answer))
        return answer

    def _answer(self, way: Way, user: str) -> Answer | None:
        """Return the answer that needs no lookup; None if there is none."""
        if len(user) > NAME_CHARS and way != "none":
            return GroupsError(_why(user, f"the name has more than {NAME_CHARS} characters"))
        if way == "os":
            found = self._known.get(user)
            return found[0] if found is not None and found[1] > self._clock() else None
        return (user,) if way == "none" else GroupsError(_why(user, NO_LDAP))

    def _remember(self, user: str, answer: Answer) -> None:
        settings, now = self.settings, self._clock()
        known = self._known
        if now - self._cleaned >= CLEAN_S:
            self._cleaned = now
            for old in [old for old, (_, until) in known.items() if until <= now]:
                del known[old]
        known.pop(user, None)
        if len(known) >= settings.capacity:
            del known[next(iter(known))]
        lasts = settings.negative_s if isinstance(answer, GroupsError) else settings.positive_s
        known[user] = (answer, now + lasts)

    # -- the messages of the service ---------------------------------------------------------------------

    def wanted(self, partitions: Mapping[str, Partition], inputs: Sequence[Input]) -> Wanted:
        """Fill in the groups of a message's new applications where no lookup is needed, and return the others.

        Besides those that need a lookup, all beyond the first `INLINE` are returned, so that the loop is not blocked
        for long. Usually the list is empty.
        """
        ways = {name: self.way(home.config.user_group_resolver) for name, home in partitions.items()}
        if all(way == "none" for way in ways.values()):
            return []  # the core fills in the user's name
        done = 0
        wanted: Wanted = []
        for message in inputs:
            if type(message) is not AddApplication or message.groups or not message.user:
                continue
            way = ways.get(message.partition, "none")
            if way == "none":
                continue
            answer = None if done == INLINE else self._answer(way, message.user)
            if answer is None:
                wanted.append((message, way))
            else:
                done += 1
                _complete(message, answer)
        return wanted

    async def complete(self, wanted: Wanted) -> None:
        """Fill in the groups of the applications that `wanted` returned.

        Nothing is raised: where a lookup fails, the message says why (`groups_fault`), and the core rejects it.
        Cancelling the call is safe; lookups under way go on, and their answers are cached.
        """
        found: dict[tuple[Way, str], Answer | None] = {}
        async for message, way in paced(wanted):
            if (way, message.user) not in found:
                found[way, message.user] = self._answer(way, message.user)
        users = [user for (_, user), answer in found.items() if answer is None]
        for at in range(0, len(users), AT_ONCE):
            if not await self._look_up(users[at : at + AT_ONCE], found):
                break  # lookups hang, and further ones would too
        late = f"no answer within {self.settings.timeout_s:g} s"
        async for message, way in paced(wanted):
            answer = found[way, message.user]
            _complete(message, GroupsError(_why(message.user, late)) if answer is None else answer)

    async def _look_up(self, users: Sequence[str], found: dict[tuple[Way, str], Answer | None]) -> bool:
        """Ask the operating system for the groups of these users. Returns whether all answers came in time."""
        lookups = {user: self._pending.get(user) or self._begin(user) for user in users}
        _, late = await asyncio.wait(lookups.values(), timeout=self.settings.timeout_s)
        for user, lookup in lookups.items():
            if lookup.done() and not lookup.cancelled():
                found["os", user] = _result(user, lookup)
            else:
                if self._pending.get(user) is lookup:
                    del self._pending[user]
                lookup.cancel()  # `_ended` caches it as a failure, so that later messages do not wait for it too
        if late:
            self._log.warning("groups not found in time", users=len(late), seconds=self.settings.timeout_s)
        return not late

    def _begin(self, user: str) -> asyncio.Future[tuple[str, ...]]:
        lookup = self._pending[user] = self._threads.run(lambda: self._lookup(user))
        lookup.add_done_callback(lambda ended: self._ended(user, ended))
        return lookup

    def _ended(self, user: str, lookup: asyncio.Future[tuple[str, ...]]) -> None:
        if self._pending.get(user) is lookup:
            del self._pending[user]
        if lookup.cancelled():
            self._remember(user, GroupsError(_why(user, "an earlier lookup had no answer in time")))
        else:
            self._remember(user, _result(user, lookup))

    def close(self) -> None:
        """End all lookups; callers that wait for one learn that no groups were found."""
        for lookup in list(self._pending.values()):
            lookup.cancel()
        self._threads.close()


def _result(user: str, lookup: asyncio.Future[tuple[str, ...]]) -> Answer:
    error = lookup.exception()
    if error is None:
        return lookup.result()
    return error if isinstance(error, GroupsError) else GroupsError(_why(user, type(error).__name__))


def _complete(message: AddApplication, answer: Answer) -> None:
    if isinstance(answer, GroupsError):
        message.groups_fault = str(answer)
    else:
        message.groups, message.groups_found = answer, True


def _why(user: str, reason: str) -> str:
    return f"groups of user {user[:80]!r} cannot be found: {reason}"
