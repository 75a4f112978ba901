"""The reflector against a server that follows a script: what it asks for, what its handler is told, how long it waits."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from common.virtual import in_virtual_time, run
from licorne.kube.api import ApiError, Client, ExpiredError, Fault, Kind, Page, UnansweredError, WatchEvent
from licorne.kube.api.kinds import NAMESPACES, config_map_kind
from licorne.kube.objects import Namespace
from licorne.kube.objects.meta import ObjectMeta
from licorne.kube.reflector import Reflector

Step = Any
"""Batches of events, an error that is raised in place of one, or seconds that pass."""


def thing(name: str, version: int, uid: str = "") -> Namespace:
    """Return an object."""
    return Namespace(metadata=ObjectMeta(name=name, uid=uid or name, resource_version=str(version)))


def added(name: str, version: int, uid: str = "") -> WatchEvent[Namespace]:
    """Return the event of a new object."""
    return WatchEvent("ADDED", thing(name, version, uid), str(version))


def changed(name: str, version: int) -> WatchEvent[Namespace]:
    """Return the event of a changed object."""
    return WatchEvent("MODIFIED", thing(name, version), str(version))


def deleted(name: str, version: int, uid: str = "") -> WatchEvent[Namespace]:
    """Return the event of an object that is gone."""
    return WatchEvent("DELETED", thing(name, version, uid), str(version))


def bookmark(version: int, *, end: bool = False) -> WatchEvent[Namespace]:
    """Return a bookmark; `end`: the one that ends a list."""
    return WatchEvent("BOOKMARK", None, str(version), end_of_list=end)


def fault(name: str, uid: str = "") -> Fault:
    """Return that an object cannot be read."""
    return Fault(f"{name} cannot be read", name=name, uid=uid or name)


def unread(name: str, uid: str = "", kind: str = "FAULT") -> WatchEvent[Namespace]:
    """Return the event of an object that cannot be read."""
    return WatchEvent(kind, None, "", fault=fault(name, uid))


EXPIRED = ExpiredError(410, "Expired", "too old")
CUT = UnansweredError("the connection broke off")
BROKEN = ApiError(500, "InternalError", "an error inside the watch")
NO_STREAMS = ApiError(400, "BadRequest", "unknown")


class Silent:
    """A handler that wants to know nothing."""

    def added(self, new: Any) -> None:
        """Take in a new object."""

    def updated(self, old: Any, new: Any) -> None:
        """Take in a change."""

    def deleted(self, old: Any) -> None:
        """Take in that an object is gone."""


class Script(Client):
    """Answers watches and lists one after the other; when no answer is left, the reflector is stopped."""

    def __init__(self, *streams: list[Step], pages: tuple[Step, ...] = ()) -> None:
        self.streams = list(streams)
        self.pages = list(pages)
        self.asked: list[str] = []
        self.told: list[str] = []
        self.complaints: list[str] = []
        self.waits: list[float] = []
        self.ended = asyncio.Event()

    async def list_page(
        self, kind: Kind[Any], *, limit: int = 0, next_page: str = "", newest: bool = False
    ) -> Page[Any]:
        """Return the next page."""
        self.asked.append(f"list {next_page}".strip())
        step = self.pages.pop(0)
        if isinstance(step, Exception):
            raise step
        page: Page[Any] = step
        return page

    async def watch(
        self, kind: Kind[Any], version: str = "", *, initial: bool = False, timeout_s: float = 0.0
    ) -> AsyncGenerator[list[WatchEvent[Any]]]:
        """Yield the next batches."""
        self.asked.append("stream" if initial else f"watch {version}")
        if not self.streams:
            self.ended.set()
            await asyncio.Event().wait()
        for step in self.streams.pop(0):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    def added(self, new: Namespace) -> None:
        """Note a new object."""
        self.told.append(f"+{new.metadata.name}{new.metadata.resource_version}")

    def updated(self, old: Namespace, new: Namespace) -> None:
        """Note a change."""
        self.told.append(f"{new.metadata.name}{old.metadata.resource_version}>{new.metadata.resource_version}")

    def deleted(self, old: Namespace) -> None:
        """Note an object that is gone."""
        self.told.append(f"-{old.metadata.name}{old.metadata.resource_version}")

    async def sleep(self, seconds: float) -> None:
        """Note how long the reflector waits."""
        self.waits.append(seconds)

    def play(self) -> Reflector[Namespace]:
        """Run a reflector to the end of the script."""

        async def main() -> Reflector[Namespace]:
            self.ended = asyncio.Event()
            made = Reflector(
                self, NAMESPACES, self, warn=self.complaints.append, rng=random.Random(1), sleep=self.sleep
            )
            task = asyncio.create_task(made.run())
            async with asyncio.timeout(3600.0):
                await self.ended.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return made

        return run(main())


STREAM = [[added("b", 5), added("a", 2)], [bookmark(7, end=True)]]

CASES: dict[str, tuple[Script, list[str], list[str]]] = {
    "a stream is handed over when it is complete": (Script(STREAM), ["stream", "watch 7"], ["+b5", "+a2"]),
    "a stream that breaks off is worth nothing": (
        Script([[added("a", 2)], UnansweredError("cut")], [[added("c", 3)], [bookmark(4, end=True)]]),
        ["stream", "stream", "watch 4"],
        ["+c3"],
    ),
    "a server without streams is asked for pages": (
        Script(
            [ApiError(422, "Invalid", "sendInitialEvents is forbidden")],
            pages=(Page([thing("a", 1)], "9", "more", []), Page([thing("b", 2)], "9", "", [])),
        ),
        ["stream", "list", "list more", "watch 9"],
        ["+a1", "+b2"],
    ),
    "a continue token that expired begins the list anew": (
        Script(
            [ApiError(400, "BadRequest", "unknown")],
            pages=(
                Page([thing("a", 1)], "9", "more", []),
                ExpiredError(410, "Expired", "too old"),
                Page([thing("b", 2)], "11", "", []),
            ),
        ),
        ["stream", "list", "list more", "list", "watch 11"],
        ["+b2"],
    ),
    "a watch that the server ends goes on where it was": (
        Script(STREAM, [[changed("a", 8)]], [[deleted("b", 9)], [bookmark(20)]]),
        ["stream", "watch 7", "watch 8", "watch 20"],
        ["+b5", "+a2", "a2>8", "-b5"],
    ),
    "nothing is told twice, and nothing older than what is known": (
        Script(STREAM, [[changed("a", 8), changed("a", 8), changed("a", 6), changed("a", 9)]]),
        ["stream", "watch 7", "watch 9"],
        ["+b5", "+a2", "a2>8", "a8>9"],
    ),
    "versions are numbers, not texts": (
        Script([[added("a", 9)], [bookmark(9, end=True)]], [[changed("a", 10)]]),
        ["stream", "watch 9", "watch 10"],
        ["+a9", "a9>10"],
    ),
    "after 410 the handler is told the difference": (
        Script(
            STREAM, [ExpiredError(410, "Expired", "too old")], [[added("a", 8), added("c", 9)], [bookmark(9, end=True)]]
        ),
        ["stream", "watch 7", "stream", "watch 9"],
        ["+b5", "+a2", "-b5", "a2>8", "+c9"],
    ),
    "410 may come in the middle of a watch": (
        Script(STREAM, [[changed("a", 8)], ExpiredError(410, "Expired", "too old")], [[bookmark(9, end=True)]]),
        ["stream", "watch 7", "stream", "watch 9"],
        ["+b5", "+a2", "a2>8", "-b5", "-a8"],
    ),
    "another object of the same name is another object": (
        Script(STREAM, [[added("a", 9, "other")], [deleted("a", 8, "a")]]),
        ["stream", "watch 7", "watch 9"],
        ["+b5", "+a2", "-a2", "+a9"],
    ),
    "an object that cannot be read does not stop the others": (
        Script(STREAM, [[unread("x"), changed("a", 9)]]),
        ["stream", "watch 7", "watch 9"],
        ["+b5", "+a2", "a2>9"],
    ),
    "the known state of an object stays while its new one cannot be read, in a stream that is read anew": (
        Script(
            STREAM,
            [[unread("a")], EXPIRED],
            [[unread("a"), unread("x"), unread("", ""), added("b", 8)], [bookmark(9, end=True)]],
            [[changed("a", 10)]],
        ),
        ["stream", "watch 7", "stream", "watch 9", "watch 10"],
        ["+b5", "+a2", "b5>8", "a2>10"],
    ),
    "the known state of an object stays while its new one cannot be read, in pages": (
        Script(
            [NO_STREAMS],
            [EXPIRED],
            pages=(
                Page([thing("a", 1), thing("b", 2)], "9", "", []),
                Page([thing("b", 3)], "11", "more", []),
                Page([], "11", "", [fault("a"), fault("x")]),
            ),
        ),
        ["stream", "list", "watch 9", "list", "list more", "watch 11"],
        ["+a1", "+b2", "b2>3"],
    ),
    "an object that cannot be read may be another one of the same name": (
        Script(STREAM, [EXPIRED], [[unread("a", "other"), added("b", 8)], [bookmark(9, end=True)]]),
        ["stream", "watch 7", "stream", "watch 9"],
        ["+b5", "+a2", "-a2", "b5>8"],
    ),
    "an object whose last state cannot be read is gone when it is deleted": (
        Script(STREAM, [[unread("a"), unread("b", "other", "DELETED"), unread("a", "a", "DELETED"), bookmark(12)]]),
        ["stream", "watch 7", "watch 12"],
        ["+b5", "+a2", "-a2"],
    ),
    "an object whose last state cannot be read is gone when it is deleted while the list is streamed": (
        Script(STREAM, [EXPIRED], [[unread("a"), unread("b"), unread("b", "b", "DELETED"), bookmark(9, end=True)]]),
        ["stream", "watch 7", "stream", "watch 9"],
        ["+b5", "+a2", "-b5"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_and_told(name: str) -> None:
    script, asked, told = CASES[name]
    reflector = script.play()
    assert script.asked == asked
    assert script.told == told
    assert str(reflector.version) == asked[-1].removeprefix("watch ")


def test_a_missing_permission_is_said_once_and_done_without() -> None:
    refused = ApiError(403, "Forbidden", "namespaces is forbidden")
    script = Script(*([[refused]] * 12), STREAM)
    reflector = script.play()
    assert len(script.complaints) == 1
    assert "done without them" in script.complaints[0]
    assert all(48.0 <= wait <= 72.0 for wait in script.waits[9:])  # those before double
    assert len(script.waits) == 12
    assert reflector.synced.is_set()
    assert not reflector.absent
    assert len(reflector.store) == 2


@pytest.mark.parametrize(
    ("status", "refused_s", "done_without"),
    [(403, 3.0, None), (403, 8.0, None), (403, 3600.0, (10.0, 16.0)), (404, 3.0, (0.0, 0.0))],
)
def test_a_missing_permission_is_believed_after_some_seconds_and_a_missing_kind_at_once(
    status: int, refused_s: float, done_without: tuple[float, float] | None
) -> None:
    """An API server that starts answers 403 until it knows the roles; the attempts before, in vain, do not count."""

    class Starts(Script):
        attempts = 0
        began_s = 0.0

        async def watch(self, *_: Any, **more: Any) -> AsyncGenerator[list[WatchEvent[Any]]]:
            now = asyncio.get_running_loop().time()
            self.attempts += 1
            if self.attempts <= 10:
                self.began_s = now
                raise UnansweredError("no connection")
            if self.attempts == 11:
                self.began_s = now
            if now < self.began_s + refused_s:
                raise ApiError(status, "", "namespaces")
            for batch in STREAM:
                yield batch
            await asyncio.Event().wait()

    async def main() -> None:
        script = Starts()
        said: list[str] = []
        made = Reflector(script, NAMESPACES, script, warn=said.append, rng=random.Random(1))
        task = asyncio.create_task(made.run())
        await made.synced.wait()
        after_s = asyncio.get_running_loop().time() - script.began_s
        told = [text for text in said if "done without them" in text]
        if done_without is None:
            assert (made.absent, len(made.store), told) == (False, 2, [])
            assert after_s < 2.5 * refused_s, "known soon after"
        else:
            assert (made.absent, len(made.store), len(told)) == (True, 0, 1)
            assert done_without[0] <= after_s <= done_without[1]
        await made.reached(7)
        assert not made.absent
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(main())


@pytest.mark.parametrize("status", [403, 404])
def test_what_could_be_read_once_is_missed(status: int) -> None:
    """A watch that is refused later is no reason to do without: what is in the store is of the past."""
    refused = ApiError(status, "Forbidden", "not now")
    script = Script(STREAM, [refused], [refused], [[changed("a", 12)]])
    reflector = script.play()
    assert not reflector.absent
    assert all(wait <= 30.0 for wait in script.waits)
    assert script.told[-1] == "a2>12"


def test_a_list_that_is_wanted_anew_is_not_read_when_it_is_refused() -> None:
    class Later(Script):
        refuses = False

        async def watch(self, *arguments: Any, **more: Any) -> AsyncGenerator[list[WatchEvent[Any]]]:
            if self.refuses:
                raise ApiError(403, "Forbidden", "not now")
            async for batch in super().watch(*arguments, **more):
                yield batch
            await asyncio.Event().wait()

    async def main() -> None:
        script = Later(STREAM, STREAM)
        script.ended = asyncio.Event()
        reflector = Reflector(script, NAMESPACES, script, sleep=lambda _: asyncio.sleep(0.001))
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(5.0):
            await reflector.synced.wait()
        script.refuses = True
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reflector.read_again()
        script.refuses = False
        async with asyncio.timeout(5.0):
            await reflector.read_again()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(main())


def test_failures_wait_longer_each_time_and_never_all_clients_at_once() -> None:
    script = Script(*([[UnansweredError("cut")]] * 12), STREAM, [UnansweredError("cut")])
    script.play()
    for number, wait in enumerate(script.waits[:12]):
        longest = min(0.2 * 2**number, 30.0)
        assert longest / 2 <= wait <= longest
    assert len({round(wait, 6) for wait in script.waits[8:12]}) == 4, "no jitter"
    assert script.waits[12] <= 0.2, "after a success the next failure is the first"
    assert len(script.complaints) == 11


def test_the_log_says_which_config_map_cannot_be_read() -> None:
    said: list[str] = []

    async def main() -> None:
        script = Script([CUT], [CUT], [CUT])
        script.ended = asyncio.Event()
        kind = config_map_kind("licorne", "yunikorn-configs")
        task = asyncio.create_task(Reflector(script, kind, Silent(), warn=said.append, sleep=script.sleep).run())
        await script.ended.wait()
        task.cancel()

    run(main())
    assert said
    assert all(text.startswith("configmaps licorne/yunikorn-configs: the connection broke off") for text in said)


def test_a_server_that_wants_to_be_left_alone_is() -> None:
    script = Script([ApiError(429, "TooManyRequests", "busy", 17.0)], STREAM)
    script.play()
    assert script.waits == [17.0]


class Always(Client):
    """Answers every call of a kind alike, in ten milliseconds; what is not said is answered well."""

    def __init__(
        self, *, stream: list[Step] | None = None, watch: list[Step] | None = None, pages: tuple[Step, ...] = ()
    ) -> None:
        self.stream = [*STREAM, 1e9] if stream is None else stream
        self.followed = [1e9] if watch is None else watch
        self.pages = pages or (Page([thing("a", 2)], "7", "", []),)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.version = 7

    async def list_page(
        self, kind: Kind[Any], *, limit: int = 0, next_page: str = "", newest: bool = False
    ) -> Page[Any]:
        """Return the page, of which `next_page` is the number."""
        self.asked.append("list")
        await asyncio.sleep(0.01)
        step = self.pages[int(next_page or 0)]
        if isinstance(step, Exception):
            raise step
        page: Page[Any] = step
        return page

    async def watch(
        self, kind: Kind[Any], version: str = "", *, initial: bool = False, timeout_s: float = 0.0
    ) -> AsyncGenerator[list[WatchEvent[Any]]]:
        """Yield the batches; "news" is one with a change."""
        self.asked.append("stream" if initial else "watch")
        await asyncio.sleep(0.01)
        steps: list[Step] = self.stream if initial else self.followed
        for step in steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif step == "news":
                self.version += 1
                yield [changed("a", self.version)]
            else:
                yield step

    def play(self, seconds: float) -> Reflector[Namespace]:
        """Let a reflector run for some time."""

        async def main() -> Reflector[Namespace]:
            told = Script()
            made = Reflector(self, NAMESPACES, told, warn=self.complaints.append, rng=random.Random(1))
            task = asyncio.create_task(made.run())
            await asyncio.sleep(seconds)
            assert not task.done()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return made

        return run(main())


MORE = Page([thing("a", 2)], "7", "1", [])

ALWAYS_WRONG: dict[str, tuple[Always, str]] = {
    "lists break off, streamed or in pages": (Always(stream=[[added("a", 2)], CUT], pages=(MORE, CUT)), "broke off"),
    "lists expire, streamed or in pages": (Always(stream=[[added("a", 2)], EXPIRED], pages=(MORE, EXPIRED)), "410"),
    "the second page has expired": (Always(stream=[NO_STREAMS], pages=(MORE, EXPIRED)), "410"),
    "a watch expires when the list before it is complete": (Always(stream=[*STREAM, EXPIRED]), "410"),
    "a watch expires at once, after a list in pages": (Always(stream=[NO_STREAMS], watch=[EXPIRED]), "410"),
    "a watch expires after its first change": (Always(stream=[*STREAM, 0.5, "news", EXPIRED]), "410"),
    "an error comes inside the watch": (Always(stream=STREAM, watch=[[bookmark(7)], BROKEN]), "500"),
    "a watch is closed at once": (Always(stream=STREAM, watch=[]), "closed the watch at once"),
    "a watch tells nothing new and is closed": (Always(stream=STREAM, watch=[[bookmark(7)]]), "closed the watch"),
}


@pytest.mark.parametrize("name", ALWAYS_WRONG)
def test_a_server_on_which_the_same_goes_wrong_again_and_again_is_left_alone(name: str) -> None:
    server, said = ALWAYS_WRONG[name]
    server.play(3600.0)
    assert 120 < len(server.asked) < 400, "tried every 15 to 30 s in the end"
    assert len(server.complaints) > 100
    assert said in server.complaints[-1]


@pytest.mark.parametrize("end", [[CUT], [BROKEN], []], ids=["cut", "an error", "closed"])
def test_lists_that_break_off_when_they_are_streamed_are_read_in_pages(end: list[Step]) -> None:
    """A proxy may cut long answers: the third list in a row that breaks off is the last that is streamed."""
    server = Always(stream=[[added("a", 2)], *end], watch=[60.0, EXPIRED])
    reflector = server.play(200.0)
    assert server.asked[:8] == ["stream"] * 3 + ["list", "watch", "list", "watch", "list"]
    assert len(reflector.store) == 1
    [said] = [text for text in server.complaints if "in pages" in text]
    assert said == "namespaces: 3 streamed lists in a row broke off; from now on lists are read in pages"


def test_lists_are_streamed_after_failures_that_are_not_in_a_row_or_without_any_answer() -> None:
    broken: list[Step] = [[added("a", 2)], CUT]
    expires: list[Step] = [*STREAM, 60.0, EXPIRED]
    script = Script(broken, broken, expires, broken, broken, expires, *([[CUT]] * 5), STREAM)
    script.play()
    assert script.asked == ["stream"] * 12 + ["watch 7"]
    assert not [text for text in script.complaints if "in pages" in text]


def test_the_first_list_that_expires_is_read_again_at_once() -> None:
    expires: list[Step] = [*STREAM, [bookmark(8)], 60.0, [bookmark(9)], EXPIRED]
    script = Script(expires, expires, expires, STREAM)
    reflector = script.play()
    assert script.waits == []
    assert script.complaints == []
    assert reflector.relists == 3


@pytest.mark.parametrize("answer", [EXPIRED, ApiError(403, "Forbidden", "the roles are not known yet")])
def test_a_server_that_is_up_again_is_not_left_alone_for_the_time_when_it_was_away(answer: Exception) -> None:
    """Twice within a minute it is away, and then starts: its answers show that it is up, also if a watch had no news."""
    back: list[Step] = [*STREAM, 15.0, CUT]
    away: list[list[Step]] = [[CUT]] * 8
    script = Script(back, *away, [answer], back, *away, [answer], STREAM)
    script.play()
    assert max(script.waits) > 5.0
    if answer is EXPIRED:
        assert len(script.waits) == 18, "none before a list"
    else:
        assert max(script.waits[9], script.waits[19]) <= 0.2


def test_a_watch_that_tells_something_new_each_time_it_is_closed_goes_on_soon() -> None:
    server = Always(stream=STREAM, watch=["news"])
    server.play(60.0)
    assert 250 < len(server.asked) < 600
    assert server.complaints == []


def test_a_watch_that_has_lasted_has_worked_though_nothing_has_changed() -> None:
    quiet: list[Step] = [60.0, [bookmark(7)], 60.0, CUT]
    script = Script(STREAM, *([[CUT]] * 5), quiet, quiet, quiet)
    script.play()
    assert script.waits[4] > 1.0
    assert all(wait <= 0.2 for wait in script.waits[-3:])


@in_virtual_time
async def test_it_says_how_far_it_is() -> None:
    script = Script(STREAM, [[changed("a", 12)]])
    script.ended = asyncio.Event()
    reflector = Reflector(script, NAMESPACES, script)
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(5.0):
        await reflector.reached(12)
    assert reflector.store["", "a"].metadata.resource_version == "12"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await reflector.reached(13)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@in_virtual_time
async def test_a_list_may_be_wanted_while_the_process_ends() -> None:
    """Its tasks are cancelled one after the other; what waits for the list is cancelled with them, and raises nothing else."""
    reflector = Reflector(Script(STREAM), NAMESPACES, Script())
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await reflector.read_again()


def test_a_list_is_read_again_when_that_is_wanted() -> None:
    """The watch that is open is given up; the handler hears the difference when the new list is complete."""

    class Open(Script):
        async def watch(self, *arguments: Any, **more: Any) -> AsyncGenerator[list[WatchEvent[Any]]]:
            async for batch in super().watch(*arguments, **more):
                yield batch
            if len(self.streams) == 1:
                await asyncio.Event().wait()

    async def main() -> None:
        script = Open(STREAM, [[changed("b", 21)], [bookmark(30, end=True)]])
        script.ended = asyncio.Event()
        reflector = Reflector(script, NAMESPACES, script)
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(5.0):
            await reflector.synced.wait()
            await reflector.read_again()
        assert script.asked[:2] == ["stream", "stream"]
        assert script.told == ["+b5", "+a2", "-a2", "b5>21"]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(main())


def test_an_answer_to_a_write_is_told_before_the_watch_and_not_again() -> None:
    """One that is older than what is known, of an object that is not known, or of another one of the name, tells nothing."""

    class Answering(Script):
        reflector: Reflector[Namespace]

        def added(self, new: Namespace) -> None:
            super().added(new)
            if new.metadata.name == "a":
                for answer in (thing("a", 11), thing("a", 1), thing("a", 12, "other"), thing("none", 13)):
                    self.reflector.answered(answer)

    async def main() -> None:
        script = Answering(STREAM, [[changed("a", 11), changed("a", 14)]])
        script.ended = asyncio.Event()
        script.reflector = reflector = Reflector(script, NAMESPACES, script)
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(5.0):
            await reflector.reached(14)
        assert script.told == ["+b5", "+a2", "a2>11", "a11>14"]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(main())
