"""A pytest plugin that ends a run in time: with LICORNE_MINUTES=30 no test starts, and none goes on, after 30 minutes.

A test that runs at that moment is skipped where it is, unless Hypothesis has found a failing example by then. Tests that
had no turn have no result. So the run fails only if a test failed, and the last line says how many tests had their turn.
The tests' order is random (`seeds`), and in the end every test has had its turn in one run or another.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis.errors import UnsatisfiedAssumption

MINUTES = float(os.environ.get("LICORNE_MINUTES") or "inf")
CUT = "LICORNE_MINUTES are over"
INTERRUPTS = hasattr(signal, "setitimer")
AGAIN_S = 5.0
"""What runs at the moment may be the code of a library that catches everything: then the test is interrupted once more."""


class Budget:
    """The clock of one process, and in the process that prints the results, their count."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes
        self._minutes = minutes
        self._chosen = 0
        self._done: set[str] = set()
        self._cut: set[str] = set()

    def _left_s(self) -> float:
        return self._end - time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Run no further test once the time is over."""
        return True if self._left_s() <= 0 else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Skip the test that runs when the time is over, unless its own timeout comes first.

        Both use the same timer: what pytest-timeout has set is put back.
        """
        left = self._left_s()
        own, _ = signal.getitimer(signal.ITIMER_REAL) if INTERRUPTS else (0.0, 0.0)
        if not INTERRUPTS or threading.current_thread() is not threading.main_thread() or 0 < own <= left:
            return (yield)

        def interrupt(*_: object) -> None:
            pytest.skip(CUT)

        unraisable_hook = sys.unraisablehook

        def without_cuts(unraisable: Any) -> None:
            """Pass over an interruption that met a function whose exceptions go nowhere, such as a callback of `gc`."""
            if not isinstance(unraisable.exc_value, pytest.skip.Exception):
                unraisable_hook(unraisable)

        sys.unraisablehook = without_cuts
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), AGAIN_S)
        try:
            with _watched(item) as failures:
                return (yield)
        except (Exception, pytest.skip.Exception) as error:
            if self._left_s() > 0:
                raise
            if failures:
                text = f"{CUT}, and Hypothesis was making a failing example smaller, which raised {failures[0]!r}"
                raise pytest.fail.Exception(text, pytrace=False) from error
            raise pytest.skip.Exception(CUT) from error  # what the interrupted test made of it
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = unraisable_hook
            if own:
                signal.setitimer(signal.ITIMER_REAL, max(own - left + self._left_s(), 0.001))

    # -- in the process that prints ------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the tests of a run in one process."""
        self._chosen = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the tests of a run in several processes; each of them lists all."""
        self._chosen = len(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that had its turn."""
        self._done.add(report.nodeid)
        if report.skipped and CUT in str(report.longrepr):
            self._cut.add(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Say, after everything else, how far the time was enough."""
        yield
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            cut = f", {len(self._cut)} of them not to their end" if self._cut else ""
            turns = f"{len(self._done)} of {self._chosen} tests had their turn{cut}"
            reporter.write_line(f"within {self._minutes:g} minutes {turns}")


@contextlib.contextmanager
def _watched(item: pytest.Item) -> Iterator[list[Exception]]:
    """Note the first failure of an example, which Hypothesis would report when it has made the example smaller."""
    failures: list[Exception] = []
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is None:
        yield failures
        return
    inner = handle.inner_test

    @functools.wraps(inner)
    def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            return inner(*args, **kwargs)
        except UnsatisfiedAssumption:
            raise
        except Exception as error:
            if not failures:
                failures.append(error)
            raise

    handle.inner_test = watched
    try:
        yield failures
    finally:
        handle.inner_test = inner


def pytest_configure(config: pytest.Config) -> None:
    """Watch the time where it is limited."""
    if math.isfinite(MINUTES):
        config.pluginmanager.register(Budget(MINUTES), "licorne-budget")
