"""Shared by all tests: the place of the traces of others, the settings of Hypothesis, the seed, the version under test.

The hot modules exist twice, compiled and as text, and the report's head says which of them a run tests. Where an
extension is older than its text, the text is tested: the extension would be yesterday's code. `make test` compiles
first and sets LICORNE_REQUIRE_COMPILED=1, and then such a run is refused.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import budget
import common.examples  # noqa: F401  loads the profile of Hypothesis
import lost_errors
import rings
import seeds

# A shell that starts the tests in the background has this signal ignored, and programs that they start inherit that; so
# the tests of Ctrl-C would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"
LONG_S = 7200


def stale_extensions() -> list[str]:
    """List the hot modules that were changed after they were compiled."""
    source = ROOT / "src"
    texts = {
        extension: extension.with_name(extension.name.partition(".")[0] + ".py")
        for extension in source.rglob("*" + EXTENSION_SUFFIXES[0])
    }
    return sorted(
        text.relative_to(source).as_posix()
        for extension, text in texts.items()
        if not text.exists() or text.stat().st_mtime > extension.stat().st_mtime
    )


INTERPRETED_WANTED = os.environ.get("LICORNE_INTERPRETED") == "1"
if STALE := stale_extensions():
    os.environ.setdefault("LICORNE_INTERPRETED", "1")  # read when the package is first imported, that is, from here on

from licorne import core  # noqa: E402  see above


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hand the seed to those who draw, and refuse a run that should test the compiled modules and would not."""
    compiled_wanted = os.environ.get("LICORNE_REQUIRE_COMPILED") == "1" and not INTERPRETED_WANTED
    if compiled_wanted and not core.compiled:
        reason = f"compiled before they were last changed: {', '.join(STALE)}" if STALE else "nothing is compiled"
        message = f"{reason}; run `make compile`"
        raise pytest.UsageError(message)
    options = vars(config.option)
    if options.get("randomly_seed") == "default":
        config.option.randomly_seed = seeds.SEED
    if seeds.RANDOM and options.get("hypothesis_seed") is None:
        config.option.hypothesis_seed = seeds.SEED
    config.pluginmanager.register(budget)
    config.pluginmanager.register(rings)
    reports = lost_errors.LostErrors()
    logging.getLogger("asyncio").addHandler(reports)
    config.pluginmanager.register(reports)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave hours to tests that run for minutes: the timeout of all others is too short for them on a slow machine."""
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.timeout(LONG_S))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, in a loop of its own; pytest runs all others."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    fixtures = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**fixtures))
    return True


def pytest_report_header() -> list[str]:
    """Show which version of the hot modules is tested, and the seed."""
    reason = f", as they changed after they were compiled: {', '.join(STALE)}" if STALE else ""
    return [
        f"licorne: hot modules {'compiled' if core.compiled else 'interpreted' + reason}",
        f"licorne: {seeds.to_run_again()}",
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Say below the failures how to run the same again."""
    if exitstatus:
        terminalreporter.write_line(f"licorne: to draw the same again: {seeds.to_run_again()}")


@pytest.fixture
def new_seed() -> int:
    """Return a seed that is another in each run; a failure shows it. LICORNE_SEED takes one of before."""
    sys.stdout.write(f"to run this again: LICORNE_SEED={seeds.SEED}\n")
    return seeds.SEED


@pytest.fixture(scope="session")
def openb() -> Path:
    """The folder of the openb trace (Alibaba; USENIX ATC 2023). It is others', so it is no part of the repository.

    A test that needs it is skipped where it is not found: `shared/traces/openb` beside the repository.
    """
    return _trace("openb", "the openb trace belongs to others and is not here")


@pytest.fixture(scope="session")
def lublin() -> Path:
    """The folder of the logs Lublin-1 and Lublin-2 (RLScheduler; SC '20). They are others', so they are no part of the repository.

    A test that needs them is skipped where they are not found: `shared/traces/lublin` beside the repository.
    """
    return _trace("lublin", "the Lublin logs belong to others and are not here")


def _trace(name: str, missing: str) -> Path:
    folder = TRACES / name
    if not folder.is_dir():
        pytest.skip(f"{missing}: no shared/traces/{name} beside the repository")
    return folder
