"""Reading and checking long configurations in separate processes, because a process can be killed and a thread cannot.

4 MiB of meaningless text keep the reader busy for 20 seconds and take a gigabyte. A process that reads it is killed
when its time is up, when the caller has given up, or when the service ends; its memory is bounded, and it does not hold
the interpreter lock of the scheduler's loop. There are at most two processes for texts that are only checked, and two
more for texts that are to be applied, so that these never queue behind the others. Each text has a process of its own,
whose start takes a fifth of a second. Short texts are read within the service, which is faster.

If no process can be started, the text is read in a thread: a legal configuration must not be refused for that. The end
of the service does not wait for that thread.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

from licorne.config import ConfigError, Configuration, Problem, Report
from licorne.host.log import Log, no_log
from licorne.host.threads import COMMON, Threads

from .check_process import Job, Kind, done
from .queue_texts import is_short

AT_ONCE = 2
"""Processes at once, for each of the two uses; further jobs wait."""
LIMIT_MAX_S = 1e6
"""The longest limit of a job that the service itself watches; with a longer one the process ends itself."""
CHECK_ENDED = "check-ended"
"""The rule in the report of a check that did not finish."""
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

    def __init__(self, limit_s: Callable[[], float], most: Callable[[], int], log: Log | None = None) -> None:
        self._limit_s = limit_s
        self._most = most
        self._log = log or no_log()
        self._only_checked = Threads(AT_ONCE, "licorne-checks")
        self._to_apply = Threads(AT_ONCE, "licorne-configurations")
        self._lock = threading.Lock()
        self._processes: dict[threading.Event, subprocess.Popen[bytes]] = {}
        """The running processes, each by the event that is set when its caller gives up."""
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

    def read_queues(self, text: str, most: int, file: str = "<config>") -> Configuration:
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
            with self._lock:
                given_up.set()
                if given_up in self._processes:
                    self._processes[given_up].kill()
            raise

    def close(self) -> None:
        """Kill all processes, and let no further ones work."""
        with self._lock:
            self._closed = True
            for process in self._processes.values():
                process.kill()
        self._only_checked.close()
        self._to_apply.close()

    # -- in threads ------------------------------------------------------------------------------------

    def _work(self, job: Job, given_up: threading.Event) -> Found:
        if is_short(job.text):
            return done(job)
        try:
            process = _started()
        except (OSError, ValueError) as error:
            self._log.warning("a configuration is read within the service", reason=f"no process: {error}")
            return done(job)
        with self._lock:
            self._processes[given_up] = process
            if self._closed or given_up.is_set():  # meanwhile: the start took time, without the lock
                process.kill()
        found: Found | None = None
        with process:
            try:
                answer, _ = process.communicate(pickle.dumps(job), min(job.seconds, LIMIT_MAX_S))
                found = None if process.returncode else pickle.loads(answer)  # noqa: S301  it comes from this program
            except subprocess.TimeoutExpired:
                process.kill()
            finally:
                with self._lock:
                    del self._processes[given_up]
        return found or _failed(job, f"took longer than {job.seconds:g} s to check, or too much memory")


def _started() -> subprocess.Popen[bytes]:
    """Start a process that does one job."""
    if not sys.executable:
        raise ValueError("where Python is, is not known")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(  # noqa: S603  the command is fixed: Python with this package's code
        [sys.executable, "-P", "-c", _COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _failed(job: Job, why: str) -> Report:
    return Report((Problem(job.file, 1, 1, "", "", CHECK_ENDED, why),))


def _configuration(found: Found) -> Configuration:
    if isinstance(found, Report):
        raise ConfigError(found.faults)
    return found
