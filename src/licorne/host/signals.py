"""Signals that end the service: it ends in good order, or by force if that takes too long.

A service manager waits for a while after SIGTERM (30 s in deploy/licorne.service), then kills the process. The loop, or
any other thread, may be stuck by then, so a thread of its own counts the seconds and ends the process before that.

No thread of Python's runs while a collection does, nor once the interpreter has begun to end, which visits all objects once
more and calls destructors. So from the signal on no collection starts by itself, and `leave` ends the process without that.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from .log import Log

ENDS_IN_S = 15.0
"""Seconds from the signal until the process is ended by force."""
_received: set[int] = set()
"""The signals that were received and end the process. Adding takes no lock, so a handler that interrupts itself may do it."""
_LOG_S = 0.5
"""Seconds for the last line of the log to be written."""


@contextmanager
def signals(ended: asyncio.Event, again: Callable[[], None], log: Log) -> Iterator[None]:
    """Handle signals within the `with` block: SIGTERM and SIGINT set `ended`, SIGHUP calls `again`, both in the loop.

    The handlers are set by `signal.signal`, not by the loop, so that they also run while the loop is stuck.
    """
    loop = asyncio.get_running_loop()
    asked: SimpleQueue[bool] = SimpleQueue()  # `put` is reentrant, so a signal handler may call it at any point

    def end(number: int, _frame: object) -> None:
        asked.put(True)
        _received.add(number)
        gc.disable()
        loop.call_soon_threadsafe(ended.set)

    def watch() -> None:
        if not asked.get():
            return
        time.sleep(ENDS_IN_S)
        log.error("it did not end in time, and is cut off", seconds=ENDS_IN_S)
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
        asked.put(False)  # ends the thread, except after a signal: then the rest must end in time too


def leave(status: int) -> None:
    """End the process with this status, without the interpreter's shutdown, if a signal has ended the service; else return.

    Called last, when all is closed, written and recorded: nothing is left to do that the interpreter's own end is needed for.
    """
    if _received:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
