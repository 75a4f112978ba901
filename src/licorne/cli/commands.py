"""The commands of `licorne`, by name.

Each is a file of its own, which is imported when the command is called, so that `licorne --help` does not wait for the
import of a scheduler.
"""

from __future__ import annotations

from cyclopts import App

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
