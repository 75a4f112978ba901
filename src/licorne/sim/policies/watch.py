"""End a call of a policy that takes too long, also one that never returns.

A timer of the operating system interrupts the main thread several times within the limit. If it finds the same call running
each time, it raises in the middle of it: after the limit, and before a quarter more of it has passed. So a call costs nothing
but to be numbered, and that a process was stopped for a moment does not count.

An interruption is handled between two instructions of Python, and when a system call such as a sleep is interrupted. Compiled
code that does not run Python is interrupted only when it returns: several interruptions are then one, so the processor time since
the last one tells. Where it does not return there is a second limit, `HARD_S` later:
`faulthandler`, which needs neither the interpreter nor its lock, writes where each thread is and ends the process with status 1.
It writes nothing else, but the names of functions: so each call is made by a function that is named after policy and call.
A policy that catches what ends it is ended by the same limit, and so is a process that was stopped for longer than that.

This works in the main thread alone, which handles signals, and where the system has such timers: not on Windows. What threads
do that a policy has started is not watched.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import IO, Any, Self, TypeVar

from licorne.sim.policies.interface import PolicyError

POLICY_TIMEOUT_S = 5.0
"""How long a call of a policy may take, where nobody says otherwise."""
TICKS = 4
"""How often a call is looked at within the limit."""
HARD_S = 30.0
"""How much later than the limit the process is ended, if the call cannot be."""
LIMIT_MAX_S = 86_400
_AHEAD_S = 1.0
_Returned = TypeVar("_Returned")


class TookTooLongError(BaseException):
    """Raised within a call that takes too long; no `Exception`, so that a policy does not catch it by accident."""


def watch_calls(limit_s: float | None) -> Watch:
    """Return a watch for calls of at most `limit_s` seconds; None: for any.

    Raises:
        PolicyError: calls cannot be watched here.
    """
    if limit_s is not None:
        if not 0 < limit_s <= LIMIT_MAX_S:
            raise PolicyError(
                f"the time of a call of a policy must be above 0 s and at most {LIMIT_MAX_S} s: {limit_s}"
            )
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            raise PolicyError(
                "calls of a policy can be ended in the main thread only, and not on Windows; without a limit "
                "(policy_timeout_s=None) they run anywhere"
            )
    return Watch(limit_s)


class Watch:
    """Watches calls while it is entered; `limit_s` None: nothing is watched.

    `run` makes a call. A caller that makes many calls `restart` instead, and sets `running` while one of them runs.

    `number` is different for each call; `running` says that one runs, and `since_s` since when (`time.monotonic`).
    """

    def __init__(self, limit_s: float | None) -> None:
        self.limit_s = limit_s
        self.number = 0
        self.running = False
        self.since_s = 0.0
        self._used_s = 0.0
        self._seen = 0
        self._ticks = 0
        self._hard_ns = 0
        self._before: tuple[Any, float, float, float] | None = None
        self._stream: IO[str] | None = None

    def run(self, call: str, function: Callable[..., _Returned], *given: object) -> _Returned:
        """Call a function within the limit; `call` names it in the error.

        Raises:
            PolicyError: it took too long.
        """
        try:
            self.restart()
            self.running = True
            return named(call, function)(*given)
        except TookTooLongError:
            self.running = False  # first of all: the next tick would raise here
            raise self.too_long(call) from None
        finally:
            self.running = False

    def restart(self) -> None:
        """Start the time limit of a call: before the call is made, or anew while it runs."""
        self.number += 1
        self.since_s = time.monotonic()

    def too_long(self, call: str) -> PolicyError:
        """Return the error of a call that took too long."""
        return PolicyError(f"{call} took longer than {self.limit_s:g} s, which is the limit (--policy-timeout)")

    def __enter__(self) -> Self:
        """Start the timer; one that was running is continued afterwards."""
        if self.limit_s is not None:
            self._stream = _real_stream()
            handler = signal.signal(signal.SIGALRM, self._tick)
            tick_s = self.limit_s / TICKS
            left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, tick_s, tick_s)
            self._before = handler, left_s, interval_s, time.monotonic()
            self._used_s = time.thread_time()
            self._arm(self.limit_s)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the timer."""
        if self._before is None:
            return
        handler, left_s, interval_s, since_s = self._before
        self._before = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._hard_ns:
            faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, handler)
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, max(left_s - (time.monotonic() - since_s), 0.001), interval_s)

    def _tick(self, signum: int, frame: FrameType | None) -> None:
        """Look whether the call of the last time still runs."""
        del signum, frame
        assert self.limit_s is not None
        used_s, self._used_s = time.thread_time() - self._used_s, time.thread_time()
        if self.running and used_s >= self.limit_s <= time.monotonic() - self.since_s:
            raise TookTooLongError  # compiled code that has returned just now
        if not self.running or self.number != self._seen:
            self._seen = self.number
            self._ticks = 0
            self._arm(self.limit_s)
            return
        self._ticks += 1
        if self._ticks >= TICKS:
            raise TookTooLongError  # and again with each further tick, for calls that catch it

    def _arm(self, limit_s: float) -> None:
        """Have the process ended if this handler is not called any more."""
        now_ns = time.monotonic_ns()
        if self._stream is not None and now_ns - self._hard_ns > _AHEAD_S * 1e9:
            faulthandler.dump_traceback_later(limit_s + HARD_S, exit=True, file=self._stream)
            self._hard_ns = now_ns


def named(name: str, function: Callable[..., _Returned]) -> Callable[..., _Returned]:
    """Return a function that calls another one, and has any text as its name wherever a stack is written."""

    def call(*given: object) -> _Returned:
        return function(*given)

    call.__code__ = call.__code__.replace(co_name=name)
    return call


def _real_stream() -> IO[str] | None:
    """Return a stream with a file behind it, which `faulthandler` writes to; None if there is none."""
    for stream in (sys.stderr, sys.__stderr__):
        try:
            if stream is not None and stream.fileno() >= 0:
                return stream
        except (OSError, ValueError):
            continue
    return None
