"""Structured logs: one line for each event that matters, as JSON for machines or as text for people.

What resource managers send is never logged: not their configuration, settings, build information, tags, or messages;
any of these may hold a secret (the protocol marks such fields `si_secret`, but no version marks any). A line names who
it is about, what happened, how much of it, and why.
"""

from __future__ import annotations

import logging
from typing import Any, Literal, TextIO

import structlog

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]
Log = structlog.typing.FilteringBoundLogger


def make_log(stream: TextIO, *, form: Format = "text", level: Level = "info") -> Log:
    """A log that writes to `stream`. Nothing global is configured, so a program may have several."""
    last: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        # Its usual tracebacks show the values of variables, and these may be what is not to be logged.
        else structlog.dev.ConsoleRenderer(
            colors=False, sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if form == "json":
        processors.append(structlog.processors.format_exc_info)
    return structlog.wrap_logger(  # type: ignore[no-any-return]
        structlog.PrintLogger(stream),
        processors=[*processors, last],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
    )


def no_log() -> Log:
    """A log that says nothing, for programs that embed the service."""
    return structlog.wrap_logger(  # type: ignore[no-any-return]
        structlog.ReturnLogger(),
        processors=[],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    )
