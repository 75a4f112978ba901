"""The log of a process that is only the service: the messages of libraries become lines of this log.

Libraries use Python's `logging` (uvicorn, asyncio, gRPC), warnings, and the hooks for exceptions of threads and
destructors. Their lines among structured ones would break programs that parse the log. Here they become events, with
the message, the name of the logger, and a traceback if there is one. Equal messages are logged at most once a second,
with the number of repetitions, for clients control how often some of them occur.
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
"""The logger for the messages of a library, by its name up to the first dot; of others: `core`."""
EVERY_S = 1.0
KNOWN_MAX = 1000
LONGEST = 1000
"""The longest message of a library, in characters; the rest is cut off."""
CLOSE_S = 1.0
"""How long the process waits at its end for lines to be written."""


class Bridge(logging.Handler):
    """Turns the records of `logging` into events of a log."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record, unless an equal one was logged within the last second."""
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
    """Make a log on `stream` for all messages of this process, within the `with` block. Its lines never block."""
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
        return stream  # it has no file descriptor (an `io.StringIO`, for example)

    def missing(count: int) -> str:
        out = io.StringIO()
        named(make_log(out, form=form), "core").warning("lines of the log were dropped", lines=count)
        return out.getvalue()

    return LogWriter(descriptor, missing)
