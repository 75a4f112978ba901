"""The command `licorne`: the names of its commands, and how errors become messages.

Each command is a file of its own, which is imported when the command is called, so that `licorne --help` does not wait
for the import of a scheduler.

An error that a user can cause ends in one plain message on standard error and exit status 1, without a traceback. Exit
status 2 means wrong usage, or what the help of the command says (`simulate --strict`).
"""

from __future__ import annotations

import os
import sys

from cyclopts import App

from licorne.cli.common import CommandError
from licorne.cli.version import describe

app = App(
    name="licorne",
    help="A cluster resource scheduler: serve, simulate workloads, check queue configurations, ask where applications go.",
    version=describe,
    version_flags=("--version",),
    help_format="plaintext",
)
app.command("licorne.cli.simulate:simulate", name="simulate", help="Run a workload or trace under a virtual clock.")
app.command("licorne.cli.serve:serve", name="serve", help="Run a scheduler for resource managers, by gRPC.")
app.command("licorne.cli.health:health", name="health", help="Ask whether a service serves.")
app.command("licorne.cli.place:place", name="place", help="Say which queue an application would be placed in, and why.")
app.command("licorne.cli.generate:generate", name="generate", help="Make a workload file from a seed.")
app.command("licorne.cli.bench:bench", name="bench", help="Measure how fast the scheduler decides.")
app.command("licorne.cli.version:version", name="version", help="Print the version, and whether it is compiled.")
configuration = App(name="config", help="Work with queue configurations.")
configuration.command("licorne.cli.config:check", name="check", help="Check a queue configuration.")
app.command(configuration)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line, and return its exit status."""
    try:
        status = app(arguments, result_action="return_value")
        sys.stdout.flush()
    except CommandError as error:
        return _fail(str(error))
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
