"""A pytest plugin that fails a test during which asyncio reports an error that nobody took.

A task that fails while nobody awaits it is told to a logger when it is collected, perhaps during another test, so the
error names the task. Without this the run passes, although a part of a test has failed unseen; and to format the message
in the middle of `ast.parse` makes that fail in Python 3.11 (python/cpython#106905).
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Generator
from typing import Any

import pytest


def _is_of_closed_poller(record: logging.LogRecord) -> bool:
    """Return whether gRPC's poller reports an event for a loop that has been closed.

    gRPC has one poller in a process, for all loops. A client or a service whose loop a test has closed may have events left
    there, such as the end of a call; the loop of a later test takes them, and cannot hand them on. Nobody waits for them.
    """
    error = record.exc_info[1] if record.exc_info else None
    return (
        record.getMessage().startswith("Exception in callback PollerCompletionQueue._handle_events")
        and isinstance(error, RuntimeError)
        and str(error) == "Event loop is closed"
    )


class LostErrors(logging.Handler):
    """Collects what asyncio reports, until a test fails of it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a report."""
        if not _is_of_closed_poller(record):
            self._messages.append(self.format(record))

    def _fail(self) -> None:
        if messages := self._messages:
            self._messages = []
            pytest.fail("asyncio reports, perhaps of an earlier test: " + "\n".join(messages), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        """Fail the test if there was a report."""
        result = yield
        self._fail()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        """Fail the last test if there is a report of what is collected only now."""
        result = yield
        if nextitem is None:
            gc.collect()
            self._fail()
        return result
