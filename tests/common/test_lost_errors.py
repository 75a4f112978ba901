"""What asyncio reports fails a test, unless it is known that nobody waits for it."""

from __future__ import annotations

import logging

import pytest

from lost_errors import LostErrors

POLLER = "Exception in callback PollerCompletionQueue._handle_events()()\nhandle: <Handle ...>"
CLOSED = RuntimeError("Event loop is closed")


@pytest.mark.parametrize(
    ("message", "error", "fails"),
    [
        (POLLER, CLOSED, False),
        (POLLER, RuntimeError("another"), True),
        (POLLER, OSError("Event loop is closed"), True),
        ("Exception in callback ours()", CLOSED, True),
        ("Task exception was never retrieved", CLOSED, True),
    ],
)
def test_only_events_of_closed_loops_are_passed_over(message: str, error: Exception, fails: bool) -> None:
    reports = LostErrors()
    reports.emit(logging.LogRecord("asyncio", logging.ERROR, "", 1, message, (), (type(error), error, None)))
    call = reports.pytest_runtest_call()
    next(call)
    ended = pytest.fail.Exception if fails else StopIteration
    with pytest.raises(ended):
        call.send(None)


def test_a_report_without_an_error_fails_too() -> None:
    reports = LostErrors()
    reports.emit(logging.LogRecord("asyncio", logging.ERROR, "", 1, "%s was destroyed", ("Task",), None))
    call = reports.pytest_runtest_call()
    next(call)
    with pytest.raises(pytest.fail.Exception, match="Task was destroyed"):
        call.send(None)
