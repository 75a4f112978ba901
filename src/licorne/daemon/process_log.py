"""The log of a process that is nothing but the service: all that anybody says in it leaves as lines of this log.

Libraries speak by Python's `logging` (uvicorn, asyncio, gRPC), warnings, and the hooks for exceptions of threads and destructors.
Their lines would stand between structured ones, and whoever reads these would stumble. Here they become events: what was
said, by which logger, with its traceback if it has one. The same thing is said once a second, with how often it was said
since, for clients decide how often some of these happen.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .log import Format, Levels, Log, make_log, named
from .log_writer import LogWriter

NAMES = {"uvicorn": "core.rest", "grpc": "core.rmproxy"}
"""The loggers of libraries, up to the first dot, and what their lines count as; others: `core`."""
EVERY_S = 1.0
KNOWN_MAX = 1000
LONGEST = 1000
"""The longest message of a library's logger that is kept, in characters."""
CLOSE_S = 1.0
"""How long the end of the process waits for lines to leave."""


class Bridge(logging.Handler):
    """Turns the records of `logging` into events of a log."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless it was said a moment ago."""
        now, key = self._clock(), (record.name, str(record.msg)[:LONGEST])
        at, repeated = self._said.get(key, (now - EVERY_S, 0))
        if now - at < EVERY_S:
            self._said[key] = at, repeated + 1
            return
        if len(self._said) >= KNOWN_MAX:
            self._said.clear()
        self._said[key] = now, 0
        more: dict[str, Any] = {"repeated": repeated} if repeated else {}
        if record.exc_info and record.exc_info[1] is not None:
            more["exc_info"] = record.exc_info
        log = named(self._log, NAMES.get(record.name.partition(".")[0], "core"))
        method = log.error if record.levelno >= logging.ERROR else log.warning
        method(record.getMessage()[:LONGEST].strip(), library=record.name, **more)


@contextmanager
def process_log(stream: TextIO, *, form: Format, levels: Levels) -> Iterator[Log]:
    """A log on `stream` for all that is said in this process, until this is left; nothing waits for who reads it."""
    writer = _writer(stream, form)
    log = make_log(writer, form=form, levels=levels)
    root, bridge = logging.getLogger(), Bridge(log)
    before = root.handlers[:], threading.excepthook, sys.unraisablehook

    def raised(what: str, found: Any) -> None:
        log.error(what, exc_info=(found.exc_type, found.exc_value, found.exc_traceback))

    root.handlers[:] = [bridge]
    threading.excepthook = lambda found: raised("a thread failed", found)
    sys.unraisablehook = lambda found: raised("an exception was ignored", found)
    logging.captureWarnings(True)
    try:
        yield log
    finally:
        logging.captureWarnings(False)
        root.handlers[:], threading.excepthook, sys.unraisablehook = before
        if isinstance(writer, LogWriter):
            writer.close(CLOSE_S)


def _writer(stream: TextIO, form: Format) -> LogWriter | TextIO:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return stream  # it is none of the operating system's

    def missing(count: int) -> str:
        out = io.StringIO()
        named(make_log(out, form=form), "core").warning("lines of the log were dropped", lines=count)
        return out.getvalue()

    return LogWriter(descriptor, missing)


__all__ = ["Bridge", "process_log"]
