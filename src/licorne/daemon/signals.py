"""Signals that end the service: it ends in good order, or, where something keeps it, without, but in time.

A service manager waits for a while after SIGTERM (30 s in deploy/licorne.service) and kills what is still there. What keeps
the loop, or a thread, from ending is not known beforehand; so a thread of its own counts the seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from .log import Log

ENDS_IN_S = 15.0
"""After so many seconds the process ends, whatever it does."""
_LOG_S = 0.5


@contextmanager
def signals(
    ended: asyncio.Event, again: Callable[[], None], log: Log, *, ends_in_s: float = ENDS_IN_S
) -> Iterator[None]:
    """Until this is left: SIGTERM and SIGINT set `ended`, SIGHUP calls `again`; both in the running loop.

    The handlers are Python's own, not those of the loop: they also run while the loop is stuck.
    """
    loop = asyncio.get_running_loop()
    asked: SimpleQueue[bool] = SimpleQueue()  # a handler may put something there whatever it interrupts

    def end(*_: Any) -> None:
        asked.put(True)
        loop.call_soon_threadsafe(ended.set)

    def watch() -> None:
        if not asked.get():
            return
        time.sleep(ends_in_s)
        log.error("it did not end in time, and is cut off", seconds=ends_in_s)
        time.sleep(_LOG_S)
        os._exit(1)

    threading.Thread(target=watch, name="licorne-end", daemon=True).start()
    before: dict[int, Any] = {}
    with contextlib.suppress(ValueError, AttributeError):  # not in the main thread, or there is no such signal
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, end)
        before[signal.SIGINT] = signal.signal(signal.SIGINT, end)
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(again))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        asked.put(False)  # unless an end was asked for before: what is left of the process has to end too


__all__ = ["ENDS_IN_S", "signals"]
