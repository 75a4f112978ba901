"""Structured logs: one line for each event that matters, as JSON for machines or as text for people.

What resource managers send is never logged: not their configuration, settings, build information, tags, or messages;
any of these may hold a secret (the protocol marks such fields `si_secret`, but no version marks any). A line names who
it is about, what happened, how much of it, and why.

Each part of the service has a logger with a name of the original's (docs/spec/config.md, section 12): `core.rmproxy`
and so on. Names are a hierarchy with dots; a logger has the level of the longest name above it that was given one
(`Levels`), and levels may change at any time. JSON shows the name as `logger`; text leaves it out, for short lines.
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
    """From which level on each logger says something; may be changed while it is used."""

    def __init__(self, level: int = logging.INFO) -> None:
        self._given: dict[str, int] = {"": level}
        self._found: dict[str, int] = {}

    def set(self, level: int, of: Mapping[str, int] | None = None) -> None:
        """All loggers have this level, except those named here and what is below them."""
        self._given = {**(of or {}), "": level}
        self._found = {}

    def of(self, name: str) -> int:
        """The level of a logger."""
        known = self._found.get(name)
        if known is None:
            above = name
            while above not in self._given:
                above = above.rpartition(".")[0]
            known = self._found[name] = self._given[above]
        return known

    def __call__(self, _logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Drop what is below the level of its logger (a processor of structlog)."""
        if _METHODS.get(method, logging.INFO) < self.of(event.get("logger", ROOT)):
            raise structlog.DropEvent
        return event


def make_log(
    stream: TextIO | LogWriter, *, form: Format = "text", level: Level = "info", levels: Levels | None = None
) -> Log:
    """A log that writes to `stream`. Nothing global is configured, so a program may have several.

    `levels`: of its loggers, to be changed later; without it, all have `level`. A line that cannot be written is dropped
    and counted (`dropped_of`): what it tells of has happened. A stream that makes its writer wait makes the service wait;
    `licorne.daemon.log_writer` has one that does not.
    """
    last: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        # Its usual tracebacks show the values of variables, and these may be what is not to be logged.
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
        _Sink(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
    )


class _Sink:
    """Where finished lines go (a logger of structlog, by its methods' names)."""

    def __init__(self, stream: TextIO | LogWriter) -> None:
        self._stream = stream
        self._failed = 0

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # the disk is full, nobody reads any more, it is closed
            self._failed += 1

    debug = info = warning = error = critical = exception = msg

    @property
    def dropped(self) -> int:
        return self._failed + (self._stream.dropped if isinstance(self._stream, LogWriter) else 0)


def dropped_of(log: Log) -> int:
    """How many lines of a log were not written."""
    sink = getattr(log, "_logger", None)
    return sink.dropped if isinstance(sink, _Sink) else 0


def named(log: Log, name: str) -> Log:
    """The same log for another part of the service."""
    return log.bind(logger=name)


def _plain(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Without the logger's name, and without what a terminal would obey: clients choose names."""
    event.pop("logger", None)
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = value.encode("unicode_escape").decode()
    return event


def level_of(log: Log) -> str:
    """The name of the level that a log has now: what is less is not said."""
    found = structlog.get_context(log).get("logger", ROOT)
    levels = [one for one in getattr(log, "_processors", ()) if isinstance(one, Levels)]
    return logging.getLevelName(levels[0].of(found) if levels else logging.CRITICAL)


def no_log() -> Log:
    """A log that says nothing, for programs that embed the service."""
    return structlog.wrap_logger(  # type: ignore[no-any-return]
        structlog.ReturnLogger(),
        processors=[],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    )
