"""Structured logs: one line for each event that matters, as JSON for machines or as text for people.

The content of messages is never logged: no configuration, settings, build information or tags of a resource manager,
for any of these may hold a secret (the protocol marks such fields `si_secret`, but no version marks any). A line names
the client or object, the event, its size or number, and the reason.

Each part of the service has a logger with a name of the original's (docs/spec/config.md, section 12), such as
`core.rmproxy`. Names are a hierarchy with dots; the level of a logger is that of the longest prefix of its name that
was given one (`Levels`), and levels may change at any time. JSON has the name as `logger`; text omits it to be short.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import structlog

from licorne.core.base.setting_kinds import LEVELS

from .log_writer import LogWriter

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]
Log = structlog.typing.FilteringBoundLogger

ROOT = "core"
_METHODS = {**LEVELS, "exception": logging.ERROR, "critical": logging.CRITICAL}


class Levels:
    """The lowest level that each logger writes. The levels may be changed while they are in use."""

    def __init__(self, level: int = logging.INFO) -> None:
        self._given: dict[str, int] = {"": level}
        self._found: dict[str, int] = {}

    def set(self, level: int, of: Mapping[str, int] | None = None) -> None:
        """Set the level of all loggers, except those in `of` and the loggers below these in the hierarchy."""
        self._given = {**(of or {}), "": level}
        self._found = {}

    def of(self, name: str) -> int:
        """Return the level of a logger."""
        known = self._found.get(name)
        if known is None:
            above = name
            while above not in self._given:
                above = above.rpartition(".")[0]
            known = self._found[name] = self._given[above]
        return known

    def __call__(self, _logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Drop an event below the level of its logger (a processor of structlog)."""
        if _METHODS.get(method, logging.INFO) < self.of(event.get("logger", ROOT)):
            raise structlog.DropEvent
        return event


def make_log(
    stream: TextIO | LogWriter, *, form: Format = "text", level: Level = "info", levels: Levels | None = None
) -> Log:
    """Make a log that writes to `stream`. Nothing global is configured, so a program may have several logs.

    `levels`: the levels of its loggers, which may be changed later; without it, all have `level`. A line that cannot be
    written is dropped and counted (`dropped_of`), and raises nothing, for the event itself has happened. A stream whose
    `write` blocks also blocks the service; `licorne.host.log_writer` has one that does not.
    """
    last: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        # Structlog's default tracebacks show the values of variables, and these may be secret.
        else structlog.dev.ConsoleRenderer(
            colors=False, sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    processors: list[Any] = [
        levels or Levels(LEVELS[level]),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info if form == "json" else _plain,
        last,
    ]
    return structlog.wrap_logger(  # type: ignore[no-any-return]
        _Sink(stream), processors=processors, wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG)
    )


class _Sink:
    """The end of the chain, which writes formatted lines (to structlog a logger: it has a method for each level)."""

    def __init__(self, stream: TextIO | LogWriter) -> None:
        self._stream = stream
        self._failed = 0

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # a full disk, a pipe without a reader, a closed stream
            self._failed += 1

    debug = info = warning = error = critical = exception = msg

    @property
    def dropped(self) -> int:
        return self._failed + (self._stream.dropped if isinstance(self._stream, LogWriter) else 0)


def dropped_of(log: Log) -> int:
    """Return how many lines of a log were dropped."""
    sink = getattr(log, "_logger", None)
    return sink.dropped if isinstance(sink, _Sink) else 0


def named(log: Log, name: str) -> Log:
    """Return a log with another logger's name, for another part of the service, that writes to the same stream."""
    return log.bind(logger=name)


def _plain(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Remove the logger's name, and escape control characters, which a terminal would obey: clients choose names."""
    event.pop("logger", None)
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = value.encode("unicode_escape").decode()
    return event


def level_of(log: Log) -> str:
    """Return the name of the lowest level that a log writes at present."""
    found = structlog.get_context(log).get("logger", ROOT)
    levels = [one for one in getattr(log, "_processors", ()) if isinstance(one, Levels)]
    return logging.getLevelName(levels[0].of(found) if levels else logging.CRITICAL)


def no_log() -> Log:
    """Return a log that writes nothing, for programs that embed the service."""
    return structlog.wrap_logger(  # type: ignore[no-any-return]
        structlog.ReturnLogger(), processors=[], wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
    )
