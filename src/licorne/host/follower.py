"""A process that follows the scheduler of this one and answers questions, so that they take nothing from its decisions.

The scheduler's inputs are noted as for a recording (`licorne.state.recording.noting`), and a thread writes them to the process
(`licorne.answers.following`), which keeps a scheduler in the same state. A question travels in the same stream, so the
answer is about the state in which it was asked. The thread that decides only appends to a queue: it never waits for the
process. Where the queue is full, as the process is too slow or stopped, the process is ended; so it is at each new run.

A process that has ended is started anew if there is a recording, from which it catches up (not from an anonymous one, where
users have other names than in what follows); else with the next run. In the meantime `Follower.ask` has no answer, and
the caller has the question answered from a checkpoint (`licorne.answers.process`).

The stream is a pipe, also where a recording is there: its files are behind by the second for which blocks are collected, and
have no place for questions.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from licorne.answers.following import ANSWER, BEGUN, BLOCK, FRAME, QUESTION
from licorne.answers.process import ENDING_S, Question, UnansweredError
from licorne.si.messages import Output
from licorne.state.recording.entries import GAP, Entry
from licorne.state.recording.noting import START, Noting

if TYPE_CHECKING:
    from licorne.host.log import Log  # of the extra `web`, whose hosts alone have a log

QUEUE_BYTES: Final = 64 << 20
"""Most bytes of inputs that may wait in the queue until the process that follows takes them; with more it is ended."""
POLL_S: Final = 0.1
"""Seconds between two looks of the writing thread into the queue; only a question wakes it earlier."""
BLOCK_ENTRIES: Final = 1_000
BEHIND_S: Final = 1.0
"""Seconds within which the process has to begin an answer; later its state is too old, and the answer is made from a checkpoint."""
STUCK_S: Final = 30.0
"""A process that has not begun to answer a question after so many seconds is ended."""
AGAIN_S: Final = 5.0
"""After how many seconds a process that has ended is started anew; each time after twice as many, until one answers."""
AGAIN_MAX_S: Final = 600.0
END_S: Final = 2.0
"""Seconds that the process has to end when the service does."""
CATCH_UP: Final = "catch up"
"""An entry that begins a process which first has to repeat a part of a recording: its folder, when the run began (ns), and
how many entries of the run have gone by."""

_encode = msgspec.msgpack.Encoder().encode


class _Reply:
    """What has come back about a question: whether it is being answered, and how it was."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.answer: asyncio.Future[tuple[int, bytes]] = loop.create_future()

    def take(self, kind: int, said: bytes) -> None:
        if not self.begun.done():
            self.begun.set_result(None)
        if kind != BEGUN and not self.answer.done():
            self.answer.set_result((kind, said))

    def lost(self) -> None:
        """Note that the process has ended."""
        self.begun.cancel()
        self.answer.cancel()


class Follower(Noting):
    """Follows the scheduler whose `input_log` it is, from the call of `start` in the loop of the scheduler to `close`.

    Parameters:
        recording: the folder in which the same inputs are recorded, from which a new process catches up; None: there is none.
        trouble: told, from any thread, why the process follows no more.
        queue_bytes: bytes of inputs that may wait for the process.
    """

    def __init__(
        self,
        recording: Path | None = None,
        trouble: Callable[[str], object] = lambda _: None,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._feed = _Feed(self._took, self._ended)
        super().__init__(
            self._feed, queue_bytes, "it is too slow, or was stopped: inputs came faster than it took them"
        )
        self._recording = recording
        self._trouble = trouble
        self._loop: asyncio.AbstractEventLoop | None = None
        self._replies: dict[int, _Reply] = {}
        self._number = 0
        self._waits_since = 0.0  # when the question was asked that has not been begun; 0 if there is none
        self._closed = False
        self._processes = 0
        self._began_ns = 0  # the time of the first entry of the run
        self._again_s = AGAIN_S

    @property
    def pid(self) -> int | None:
        """The id of the process; None if there is none."""
        return self._feed.pid

    def start(self) -> None:
        """Begin, in the loop of the scheduler, before the first resource manager registers."""
        self._loop = asyncio.get_running_loop()
        self._feed.start()

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._running = False
        self._feed.close()

    def delivered(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Pass over messages of the scheduler: the process makes them itself."""

    def _begin(self, *entry: object) -> None:
        super()._begin(*entry)
        self._processes += 1
        if entry[0] == START:
            self._began_ns = self._now_ns
            self._again_s = AGAIN_S

    def _end(self, reason: str) -> None:
        super()._end(reason)
        self._feed.kill()
        self._trouble(reason)
        self._later()

    # -- questions -------------------------------------------------------------------------------------

    async def ask(self, question: Question, now_ns: int) -> bytes | None:
        """Return the answer as JSON; None if no process follows closely enough.

        Args:
            question: what is asked.
            now_ns: the time of the scheduler.

        Raises:
            UnansweredError: nothing has the name that is asked for.
            TimeoutError: there was no answer in time.
        """
        if not self._running or self._is_stuck():
            return None
        self._number = number = self._number + 1
        reply = self._replies[number] = _Reply()
        self._waits_since = self._waits_since or time.monotonic()
        entry = QUESTION, number, msgspec.json.encode(question), now_ns, time.monotonic_ns()
        self._feed.queue.append((0, entry))
        self._feed.wake.set()
        try:
            async with asyncio.timeout(BEHIND_S):
                await asyncio.wait([reply.begun])
            if reply.begun.cancelled():
                return None
            async with asyncio.timeout(question.limit_s + ENDING_S):
                await asyncio.wait([reply.answer])
        except TimeoutError:
            if reply.begun.done():
                raise
            return None
        finally:
            del self._replies[number]
        if reply.answer.cancelled():
            return None
        kind, said = reply.answer.result()
        if kind != ANSWER:
            raise UnansweredError(said.decode(errors="replace"))
        return said

    def _is_stuck(self) -> bool:
        """Return whether a question has waited for longer than `STUCK_S`; the process is ended then."""
        if not self._waits_since or time.monotonic() - self._waits_since < STUCK_S:
            return False
        self._end("it has not begun to answer a question, it is too slow or was stopped")
        return True

    # -- from the threads ------------------------------------------------------------------------------

    def _took(self, number: int, kind: int, said: bytes) -> None:
        self._in_loop(lambda: self._hear(number, kind, said))

    def _hear(self, number: int, kind: int, said: bytes) -> None:
        self._waits_since = 0.0
        self._again_s = AGAIN_S
        if number in self._replies:  # else it has been given up
            self._replies[number].take(kind, said)

    def _ended(self, process: int, reason: str) -> None:
        self._in_loop(lambda: self._lost(process, reason))

    def _in_loop(self, work: Callable[[], object]) -> None:
        assert self._loop is not None, "it has been started"
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(work)

    def _lost(self, process: int, reason: str) -> None:
        """Note in the loop that a process has ended."""
        if process != self._processes:
            return  # another one is to begin, or has begun
        self._waits_since = 0.0
        for reply in self._replies.values():
            reply.lost()
        if self._running:
            self._running = False
            self._trouble(reason)
            self._later()

    # -- another process -------------------------------------------------------------------------------

    def _later(self) -> None:
        if self._recording is not None and self._loop is not None and not self._closed:
            self._loop.call_later(self._again_s, self._again)
            self._again_s = min(2 * self._again_s, AGAIN_MAX_S)

    def _again(self) -> None:
        """Start another process, which finds the run in the recording and catches up: the loop must not wait for files."""
        if self._running or self._closed or self._recording is None:
            return
        self._begin(CATCH_UP, str(self._recording), str(self._began_ns), str(self.position))


def follower(recording: Path | None, log: Log) -> Follower:
    """Return a follower that logs when it can follow no more."""

    def stopped(reason: str) -> None:
        log.warning("the process that answers questions follows no more", reason=reason, another=recording is not None)

    return Follower(recording, stopped)


class _Feed:
    """The thread that starts the process and writes to it; see `licorne.state.recording.noting.Sink`.

    `took` is told of each frame that comes back, `ended` which process has ended that was not to, and why; both from a thread.
    """

    def __init__(self, took: Callable[[int, int, bytes], object], ended: Callable[[int, str], object]) -> None:
        self.queue: deque[tuple[int, Entry]] = deque()
        self.taken_bytes = 0
        self.failed = False
        self.wake = threading.Event()
        self._took = took
        self._ended = ended
        self._process: subprocess.Popen[bytes] | None = None
        self._processes = 0
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="licorne-follow", daemon=True)

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the process: by the end of its input, or else by force."""
        self._closing = True
        self.wake.set()
        if self._thread.is_alive():
            self._thread.join(END_S)
        if self._thread.is_alive():  # it waits for a process that does not read
            self.kill()
            self._thread.join(END_S)

    def kill(self) -> None:
        """End the process, from any thread."""
        process = self._process
        if process is not None:
            process.kill()

    # -- in the thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closing:
            self.wake.wait(POLL_S)
            self.wake.clear()
            try:
                self._drain()
            except OSError as error:
                self._fail(error.strerror or str(error))
            except Exception as error:  # noqa: BLE001  the thread must go on, or the queue would stay full
                self._fail(repr(error))
        self._stop()

    def _drain(self) -> None:
        block: list[Entry] = []
        while self.queue and not self._closing:
            size, entry = self.queue.popleft()
            self.taken_bytes += size
            if entry[0] in (START, CATCH_UP):
                block.clear()
                self._begin(entry[1:])
            elif entry[0] == GAP:
                block.clear()
                self._stop()
            elif self._process is not None:
                block.append(entry)
                if len(block) >= BLOCK_ENTRIES:
                    self._write(block)
                    block.clear()
        if block:
            self._write(block)

    def _begin(self, catching_up: Sequence[str]) -> None:
        self._stop()
        self._processes += 1
        command = [sys.executable, "-m", "licorne.answers.following", *catching_up]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603
        self._process = process
        threading.Thread(
            target=self._listen, args=(process, self._processes), name="licorne-answers", daemon=True
        ).start()

    def _write(self, block: list[Entry]) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        data = _encode(block)
        process.stdin.write(BLOCK.pack(len(data)) + data)
        process.stdin.flush()

    def _fail(self, reason: str) -> None:
        if self._process is not None:
            self._stop()
            self._ended(self._processes, reason)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # -- in the thread that listens --------------------------------------------------------------------

    def _listen(self, process: subprocess.Popen[bytes], process_number: int) -> None:
        assert process.stdout is not None and process.stderr is not None
        while len(head := process.stdout.read(FRAME.size)) == FRAME.size:
            question, kind, length = FRAME.unpack(head)
            self._took(question, kind, process.stdout.read(length))
        said = process.stderr.read().decode(errors="replace").strip()[-1000:]
        status = process.wait()
        process.stdout.close()
        process.stderr.close()
        if process is self._process:
            self._ended(process_number, said or f"its process ended with {status}")
