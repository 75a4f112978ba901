"""The command `licorne`: how it is run, and how errors become messages.

An error that a user can cause ends in one plain message on standard error, without a traceback, and an exit status that
says which kind of error it is (`statuses`).

A command has a module of its name: `compare`, `config`, `convert`, `health`, `kube`, `mcp`, `page`, `place`, `replay`,
`report`, `reproduce`, `scenario`, `serve`, `shares`, `simulate`, `sweep`, `why`. `commands` has them by name, `help` shows
them, `version` is what --version prints. `serving`, `scheduling`, `showing`, `mcp_server` and `demo` do the work of serve, kube,
page, mcp and `serve --demo`, which need extras; `capturing` and `objects` are sources of convert.

What several commands need: `parameters` are their options, `standard_input` is `-`; `sources`, `recordings` and `configurations`
read what they are given; `tables`, `compare_text`, `shares_text` and `why_text` print what they answer, by `sheets`; `reports`
writes reports, `progress` is a bar. `refusals` makes of what others raise the errors that `common` has.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from licorne._bounded import TooLargeError
from licorne._extras import MissingExtraError, require
from licorne.cli.common import ARGUMENTS, CommandError, say
from licorne.cli.statuses import Status


class _EndedError(SystemExit):
    """SIGTERM has come. Whatever cleans up when an exception passes by does so now too."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    status = run(arguments)
    if signals := sys.modules.get("licorne.host.signals"):  # a command that runs until a signal has loaded it
        signals.leave(status)
    sys.exit(status)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line, and return its exit status."""
    try:
        require("cli")
        from licorne.cli.commands import app  # noqa: PLC0415  # its packages may be missing
        from licorne.cli.standard_input import mark  # noqa: PLC0415

        given = sys.argv[1:] if arguments is None else arguments
        ARGUMENTS.set(tuple(given))
        with _sigterm_raises():
            status = app(mark(app, given), result_action="return_value")
            sys.stdout.flush()
    except CommandError as error:
        return _fail(str(error), error.status)
    except ImportError as error:
        cause = error.__cause__ or error  # cyclopts raises an error of its own when a command cannot be imported
        if not isinstance(cause, MissingExtraError):
            raise
        return _fail(str(cause), Status.PACKAGES)
    except TooLargeError as error:
        return _fail(f"standard input {error}", Status.FILE)
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Without this Python would report it again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.PIPE
    except OSError as error:
        if error.filename is None:
            return _fail(str(error), Status.NO)
        return _fail(f"{error.filename}: {error.strerror}", Status.FILE)
    except _EndedError:
        return _fail("ended by SIGTERM", Status.ENDED)
    except SystemExit as error:
        # Rich, which prints tables and help, makes this of a closed pipe, and has seen to standard output.
        if isinstance(error.__context__, BrokenPipeError):
            return Status.PIPE
        raise
    except KeyboardInterrupt:
        return _fail("interrupted", Status.INTERRUPTED)
    return status if isinstance(status, int) else 0


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Make an exception of SIGTERM within the `with` block; a second one ends the process at once.

    Commands that run until a signal handle it themselves.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are handled in the main thread alone
        yield
        return

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise _EndedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _fail(message: str, status: Status) -> int:
    say(*f"licorne: {message}".split("\n"), to=sys.stderr)
    return status
