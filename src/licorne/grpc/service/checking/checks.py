"""Reading and checking long configurations in separate processes, because a process can be killed and a thread cannot.

4 MiB of meaningless text keep the reader busy for 20 seconds and take a gigabyte. A process that reads it is killed
when its time is up, when the caller has given up, or when the service ends; its memory is bounded, and it does not hold
the interpreter lock of the scheduler's loop. There are at most two processes for texts that are only checked, and two
more for texts that are to be applied, so that these never queue behind the others. A process is started when it is
needed (a fifth of a second), runs one job after the other, and ends after half a minute without any. Short texts are
read within the service, which is faster.

If no process can be started, the text is read in a thread: a legal configuration must not be refused for that. The end
of the service does not wait for that thread.
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
from licorne.host.log import Log, no_log
from licorne.host.threads import COMMON, Threads

from .check_process import Answer, Job, Kind, done, receive, send
from .queue_texts import is_short

AT_ONCE = 2
"""Processes at once, for each of the two uses; further jobs wait."""
IDLE_S = 30.0
"""Seconds without a job after which a checking process is ended."""
CHECK_ENDED = "check-ended"
"""The rule in the report of a check that did not finish."""
REAP_S = 5.0
"""Seconds to wait for a killed process to be reaped."""
_COMMAND = "from licorne.grpc.service.checking.check_process import main; main()"

Found = Configuration | Report


class Checks:
    """Reads and checks configurations.

    Parameters:
        limit_s: the current limit on the time of one job, in seconds.
        most: the current limit on the queues of a configuration.
        log: gets a warning if no process can be started.

    All results are those of the functions of `licorne.grpc.service.checking.queue_texts` and of `licorne.config.check`.
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
        """Read a configuration. Cancelling the call kills the process that reads it.

        Raises:
            ConfigError: the configuration is refused.
        """
        return _configuration(await self._run("counted", text, "<config>", self._to_apply))

    async def report(self, text: str, to_apply: bool = False, *, file: str = "<body>") -> Report:  # noqa: FBT002
        """List the faults and warnings of a configuration. Cancelling the call kills the process that checks it.

        `to_apply`: use the processes for texts that are to be applied.
        """
        found = await self._run("report", text, file, self._to_apply if to_apply else self._only_checked)
        assert isinstance(found, Report)
        return found

    def read_queues(self, text: str, most: int, *, file: str = "<config>") -> Configuration:
        """Read a configuration and check that it can be applied. This blocks the calling thread.

        Raises:
            ConfigError: the configuration is refused.
        """
        return _configuration(self._work(Job("queues", text, most, file, self._limit_s()), threading.Event()))

    async def _run(self, kind: Kind, text: str, file: str, threads: Threads) -> Found:
        given_up = threading.Event()
        job = Job(kind, text, self._most(), file, self._limit_s())
        try:
            return await (COMMON if is_short(text) else threads).run(partial(self._work, job, given_up))
        except asyncio.CancelledError:
            # The thread cannot be cancelled, but killing its process ends its wait for the answer.
            given_up.set()
            with self._lock:
                for process in self._busy:
                    if process.given_up is given_up:
                        process.kill()
            raise

    def close(self) -> None:
        """Kill all checking processes, and start no further ones."""
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
        """Return an idle process, or a new one; None if the caller has given up or the service has ended."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _Process()
        # Starting took time, without the lock: `close` may have run, or the caller may have given up, meanwhile.
        with self._lock:
            process.given_up = given_up
            self._busy.add(process)
            if not self._closed and not given_up.is_set():
                return process
            process.kill()
        self._keep(process)
        return None

    def _keep(self, process: _Process) -> None:
        """Keep a process whose job is done for `idle_s` seconds, unless it failed or the service has ended."""
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
        """End the processes that have had no job for `idle_s` seconds."""
        with self._lock:
            last = time.monotonic() - idle_s
            gone = [process for process in self._idle if process.idle_since <= last]
            self._idle = [process for process in self._idle if process not in gone]
        for process in gone:
            process.end()


class _Process:
    """A process that runs jobs, until one fails."""

    def __init__(self) -> None:
        if not sys.executable:
            raise ValueError("where Python is, is not known")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(  # noqa: S603  the command is fixed: Python with this package's code
            [sys.executable, "-P", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.alive = True
        self.idle_since = 0.0
        self.given_up: threading.Event | None = None
        """Set when the caller no longer waits for the job under way."""

    def do(self, job: Job) -> Found | None:
        """Run a job and return its result; None if the process was killed, or ran out of memory."""
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
        """Kill the process at once; a thread that waits for its answer gets None."""
        self.alive = False
        self._process.kill()

    def end(self) -> None:
        """Kill the process, close its pipes and reap it. Only the thread that used it last may call this."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # from flushing what could not be sent
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
