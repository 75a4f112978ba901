"""Threads for calls that may hang, or take long: few, and none of them keeps the process from ending.

The pool of `asyncio.to_thread` is waited for when the program ends, and a call to a directory service or a file system
that never comes back would hold it for ever. These threads are let go. A call that is given up before a thread took it is forgotten.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class Threads:
    """At most `most` calls at once; further ones wait."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._jobs: dict[Future[Any], Callable[[], Any]] = {}
        self._change = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def run(self, call: Callable[[], _T]) -> asyncio.Future[_T]:
        """Its result, or its exception. To cancel it is to give it up."""
        job: Future[_T] = Future()
        job.add_done_callback(self._given_up)
        with self._change:
            self._jobs[job] = call
            if self._idle >= len(self._jobs) or self._threads >= self._most:
                self._change.notify()
            else:
                self._start(job)
        return asyncio.wrap_future(job)

    def _start(self, job: Future[Any]) -> None:
        """One more thread, for this job or another; if there can be none, and is none, the job fails."""
        try:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        except RuntimeError as error:
            if not self._threads:
                del self._jobs[job]
                job.set_exception(error)
            return
        self._threads += 1

    @property
    def waiting(self) -> int:
        """Calls that no thread has taken yet."""
        return len(self._jobs)

    def close(self) -> None:
        """Let the threads end as soon as they come back."""
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
            if not job.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except Exception as error:  # noqa: BLE001  who waits for it is told
                job.set_exception(error)
            else:
                job.set_result(result)


COMMON = Threads(6, "licorne-work")
"""For work of the service's own that takes a while, and surely comes to its end."""

__all__ = ["COMMON", "Threads"]
