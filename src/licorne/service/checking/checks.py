"""Long configurations are read and checked in processes of their own, because a thread cannot be ended and a process can.

4 MiB of text that means nothing keep the reader busy for 20 seconds and take a gigabyte. In a process it is ended when
its time is up, when nobody waits for it any more, or when the service ends; its memory is bounded, and the scheduler's
loop shares no lock with it. There are at most two for texts that are only checked, and two more for those that are to be
applied, which so never wait behind the others. Each is started when it is wanted (a fifth of a second), does one job after
the other, and ends after half a minute without any. Short texts are read within the service, for that is quicker.

Where no process can be started, the text is read in a thread, as well as that goes: a configuration that is legal must
not be refused for that. The thread is one that the end of the service does not wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import cast

from licorne.config import ConfigError, Configuration, Problem, Report
from licorne.daemon.log import Log, no_log
from licorne.daemon.lookups import COMMON, Threads

from .check_process import Answer, Job, Kind, done, receive, send
from .queue_texts import is_short

AT_ONCE = 2
"""Processes at once, of each of the two kinds; further jobs wait."""
IDLE_S = 30.0
"""Seconds without a job after which a checking process is ended."""
CHECK_ENDED = "check-ended"
"""The rule that is named where a check was ended."""
REAP_S = 5.0
"""Seconds to wait for a killed process to be reaped."""
_COMMAND = "from licorne.service.checking.check_process import main; main()"

Found = Configuration | Report


class Checks:
    """Reads and checks configurations.

    Parameters:
        limit_s: how long one may take, in seconds, as it is now.
        most: how many queues one may have, as it is now.
        log: told where no process can be started.

    All results are those of the functions of `licorne.service.checking.queue_texts` and of `licorne.config.check`.
    """

    def __init__(
        self, limit_s: Callable[[], float], most: Callable[[], int], log: Log | None = None, *, idle_s: float = IDLE_S
    ) -> None:
        self._limit_s = limit_s
        self._most = most
        self._log = log or no_log()
        self._idle_s = idle_s
        self._only_checked = Threads(AT_ONCE, "licorne-checks")
        self._to_apply = Threads(AT_ONCE, "licorne-configurations")
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._closed = False

    async def read(self, text: str) -> Configuration:
        """What a text means. To cancel this ends the work.

        Raises:
            ConfigError: it is refused.
        """
        return _configuration(await self._run("counted", text, "<config>", self._to_apply))

    async def report(self, text: str, to_apply: bool = False, *, file: str = "<body>") -> Report:  # noqa: FBT002
        """All that is wrong with a text, or surely not meant. To cancel this ends the work.

        `to_apply`: it does not wait behind texts that are only checked.
        """
        found = await self._run("report", text, file, self._to_apply if to_apply else self._only_checked)
        assert isinstance(found, Report)
        return found

    def read_queues(self, text: str, most: int, *, file: str = "<config>") -> Configuration:
        """What a text means that is to be applied; for a thread, which waits.

        Raises:
            ConfigError: it is refused.
        """
        return _configuration(self._work(Job("queues", text, most, file, self._limit_s()), threading.Event()))

    async def _run(self, kind: Kind, text: str, file: str, threads: Threads) -> Found:
        given_up = threading.Event()
        job = Job(kind, text, self._most(), file, self._limit_s())
        try:
            return await (COMMON if is_short(text) else threads).run(partial(self._work, job, given_up))
        except asyncio.CancelledError:
            given_up.set()
            with self._lock:
                for process in self._busy:
                    if process.given_up is given_up:
                        process.kill()
            raise

    def close(self) -> None:
        """Kill all checking processes, and start no more."""
        with self._lock:
            self._closed = True
            for process in self._busy:
                process.kill()
        self._retire(0.0)
        self._only_checked.close()
        self._to_apply.close()

    # -- in threads ------------------------------------------------------------------------------------

    def _work(self, job: Job, given_up: threading.Event) -> Found:
        if is_short(job.text):
            return done(job)
        try:
            process = self._process(given_up)
        except (OSError, ValueError) as error:
            self._log.warning("a configuration is read within the service", reason=f"no process: {error}")
            return done(job)
        if process is None:
            return _failed(job, "was not checked, for nobody waits for it any more")
        late = threading.Timer(job.seconds, process.kill)
        late.daemon = True
        late.start()
        try:
            answer = process.do(job)
        finally:
            late.cancel()
            self._keep(process)
        return answer or _failed(job, f"took longer than {job.seconds:g} s to check, or too much memory")

    def _process(self, given_up: threading.Event) -> _Process | None:
        """A process that is free, or a new one; None where nobody waits for it any more."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _Process()
        with self._lock:
            process.given_up = given_up
            self._busy.add(process)
            if not self._closed and not given_up.is_set():
                return process
            process.kill()
        self._keep(process)
        return None

    def _keep(self, process: _Process) -> None:
        """Its job is done: another one may have it, for a while."""
        with self._lock:
            self._busy.discard(process)
            process.given_up = None
            if process.alive and not self._closed:
                process.idle_since = time.monotonic()
                self._idle.append(process)
                ending = threading.Timer(self._idle_s, self._retire, (self._idle_s,))
                ending.daemon = True
                ending.start()
                return
        process.end()

    def _retire(self, idle_s: float) -> None:
        """End those that have had no job for so long."""
        with self._lock:
            last = time.monotonic() - idle_s
            gone = [process for process in self._idle if process.idle_since <= last]
            self._idle = [process for process in self._idle if process not in gone]
        for process in gone:
            process.end()


class _Process:
    """A process that does jobs; after one that failed it is at its end."""

    def __init__(self) -> None:
        if not sys.executable:
            raise ValueError("where Python is, is not known")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(  # noqa: S603  it is Python, and ours
            [sys.executable, "-P", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.alive = True
        self.idle_since = 0.0
        self.given_up: threading.Event | None = None
        """Of the one who waits for its job."""

    def do(self, job: Job) -> Found | None:
        """The result of a job; None if the process ended before, or had too little memory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            send(self._process.stdin, job)
            answer = receive(self._process.stdout)
        except (OSError, ValueError):
            answer = None
        if answer is None or answer.last:
            self.alive = False
        return None if answer is None else cast("Answer", answer).found

    def kill(self) -> None:
        """End it, whatever it does; whoever waits for its answer gets none."""
        self.alive = False
        self._process.kill()

    def end(self) -> None:
        """End it, and leave nothing of it behind; by the thread that used it last."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what could not be sent
                if pipe is not None:
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_S)


def _failed(job: Job, why: str) -> Report:
    return Report((Problem(job.file, 1, 1, "", "", CHECK_ENDED, why),))


def _configuration(found: Found) -> Configuration:
    if isinstance(found, Report):
        raise ConfigError(found.faults)
    return found


__all__ = ["CHECK_ENDED", "Checks"]
