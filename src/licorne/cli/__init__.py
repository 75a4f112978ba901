"""The command `licorne`: how it is run, and how errors become messages.

An error that a user can cause ends in one plain message on standard error and exit status 1, without a traceback. Exit
status 2 means wrong usage, or what the help of the command says (`simulate --strict`); 3 means that packages are not
installed which the command needs (`licorne._extras`).
"""

from __future__ import annotations

import os
import sys

from licorne._extras import MissingExtraError, require
from licorne.cli.common import CommandError


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line, and return its exit status."""
    try:
        require("cli")
        from licorne.cli.commands import app  # noqa: PLC0415  # its packages may be missing

        status = app(arguments, result_action="return_value")
        sys.stdout.flush()
    except CommandError as error:
        return _fail(str(error))
    except ImportError as error:
        cause = error.__cause__ or error  # cyclopts raises an error of its own when a command cannot be imported
        if not isinstance(cause, MissingExtraError):
            raise
        return _fail(str(cause), status=3)
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Without this Python would report it again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename is not None else str(error))
    except KeyboardInterrupt:
        return _fail("interrupted", status=130)
    return status if isinstance(status, int) else 0


def _fail(message: str, status: int = 1) -> int:
    print(f"licorne: {message}", file=sys.stderr)
    return status
