"""A bounded number of threads for calls that may hang or take long, none of which keeps the process from ending.

Python waits for the pool of `asyncio.to_thread` when the program ends, so a call to a directory service or a file
system that never returns would keep the process for ever. These threads are daemons, for which it does not wait. A call
that is cancelled before a thread has begun it is never made.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class Threads:
    """A pool of at most `most` daemon threads, started as needed; further calls wait. `name`: that of the threads."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._jobs: dict[Future[Any], Callable[[], Any]] = {}
        self._change = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def run(self, call: Callable[[], _T]) -> asyncio.Future[_T]:
        """Make a call in a thread. The future has its result or exception; cancelling the future gives the call up."""
        job: Future[_T] = Future()
        job.add_done_callback(self._given_up)
        with self._change:
            self._jobs[job] = call
            # With an idle thread for each waiting job, this one among them, no further thread is needed.
            if self._idle >= len(self._jobs) or self._threads >= self._most:
                self._change.notify()
            else:
                self._start(job)
        return asyncio.wrap_future(job)

    def _start(self, job: Future[Any]) -> None:
        """Start a thread, for this job or another. If that fails and there is no thread at all, the job fails."""
        try:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        except RuntimeError as error:
            if not self._threads:
                del self._jobs[job]
                job.set_exception(error)
            return
        self._threads += 1

    def close(self) -> None:
        """Cancel the calls that wait, and let each thread end when its call returns."""
        with self._change:
            self._closed = True
            jobs = list(self._jobs)
            self._change.notify_all()
        for job in jobs:
            job.cancel()

    def _given_up(self, job: Future[Any]) -> None:
        if job.cancelled():
            with self._change:
                self._jobs.pop(job, None)

    def _work(self) -> None:
        while True:
            with self._change:
                self._idle += 1
                while not self._jobs and not self._closed:
                    self._change.wait()
                self._idle -= 1
                if self._closed:
                    self._threads -= 1
                    return
                job = next(iter(self._jobs))
                call = self._jobs.pop(job)
            if job.set_running_or_notify_cancel():
                try:
                    job.set_result(call())
                except Exception as error:  # noqa: BLE001  the caller gets it
                    job.set_exception(error)
            del job, call  # an idle thread would keep what they hold, and that may be a whole state dump


COMMON = Threads(6, "licorne-work")
"""For calls that take a while but are sure to return."""
