"""The commands of `licorne`, by name.

Each is a file of its own, which is imported when the command is called, so that `licorne --help` does not wait for the
import of a scheduler.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsPanel, UnknownCommandError

from licorne.cli.help import Help
from licorne.cli.standard_input import MARKED
from licorne.cli.statuses import Status, epilogue
from licorne.cli.version import describe

if TYPE_CHECKING:
    from cyclopts import CycloptsError
    from rich.panel import Panel


def _panel(error: CycloptsError) -> Panel:
    """Return the panel that shows an error of usage, in which an argument `-` is told as the user gave it, not as the parser got it."""
    told = _unknown(error) if isinstance(error, UnknownCommandError) else str(error)
    return CycloptsPanel(told.replace(f'"{MARKED}"', '"-"'))


def _unknown(error: UnknownCommandError) -> str:
    """Return what to say of an unknown command; the library's own text imports all commands to find those that are shown."""
    word = (error.unused_tokens or [""])[0]
    names = [name for name in error.app or () if not name.startswith("-")]
    near = get_close_matches(word, names, n=1)
    return f'Unknown command "{word}".' + (f' Did you mean "{near[0]}"?' if near else f" Commands: {', '.join(names)}.")


app = App(
    name="licorne",
    help="A cluster resource scheduler: serve, simulate workloads, check queue configurations, ask where applications go.",
    version=describe,
    version_flags=("--version", "-V"),
    help_format="plaintext",
    help_formatter=Help(),
    error_formatter=_panel,
)
app.register_install_completion_command(help="Install completion for this shell: bash, zsh, fish or PowerShell.")


def _add(to: App, name: str, where: str, told: str, statuses: str) -> None:
    to.command(f"licorne.cli.{where}", name=name, help=told, help_epilogue=statuses)


_add(
    app,
    "simulate",
    "simulate:simulate",
    "Run a workload or trace under a virtual clock.",
    epilogue("the workload cannot be used", Status.FILE, Status.CONFIGURATION, strict="an ask was never placed"),
)
_add(
    app,
    "reproduce",
    "reproduce:reproduce",
    "Make the table of a paper again, from its data.",
    epilogue("a cell does not agree", Status.FILE, done="all cells agree"),
)
_add(
    app,
    "compare",
    "compare:compare",
    "Run a workload under two queue configurations, and say what changes for whom.",
    epilogue("the workload cannot be used", Status.FILE, Status.CONFIGURATION),
)
_add(
    app,
    "report",
    "report:report",
    "Put runs that have a report side by side, on one page.",
    epilogue("it could not be done", Status.PACKAGES, Status.FILE, done="the report is written"),
)
_add(
    app,
    "record",
    "record:record",
    "Make a workload from a running YuniKorn or licorne.",
    epilogue("the names of its configuration cannot be replaced", Status.FILE, done="the workload is written"),
)
_add(
    app,
    "import",
    "import_:import_command",
    "Make a workload from what `kubectl get pods,nodes -o json` prints.",
    epilogue(
        "the names of its configuration cannot be replaced",
        Status.PACKAGES,
        Status.FILE,
        done="the workload is written",
    ),
)
_add(
    app,
    "sweep",
    "sweep:sweep",
    "Simulate many combinations of workloads, configurations, loads and policies, and compare them.",
    epilogue(
        "no point could be simulated",
        Status.PACKAGES,
        Status.FILE,
        Status.CONFIGURATION,
        done="done; points that failed are in the table",
    ),
)
_add(
    app,
    "serve",
    "serve:serve",
    "Run a scheduler for resource managers, by gRPC.",
    epilogue("it could not start, or failed", Status.PACKAGES, done="it was ended by a signal"),
)
_add(
    app,
    "kube",
    "kube:kube",
    "Schedule the pods of a Kubernetes cluster.",
    epilogue("it could not start, or failed", Status.PACKAGES, Status.FILE, done="it was ended by a signal"),
)
_add(
    app,
    "health",
    "health:health",
    "Ask whether a service serves.",
    epilogue("it does not, or cannot be reached", Status.PACKAGES, Status.FILE, done="it serves"),
)
_add(
    app,
    "place",
    "place:place",
    "Say which queue an application would be placed in, and why.",
    epilogue(
        "there is no queue for it",
        Status.FILE,
        Status.CONFIGURATION,
        done="there is a queue",
        strict="the configuration has warnings",
    ),
)
_add(
    app,
    "why",
    "why:why_command",
    "Say why an ask or an application waits, and what would let it run.",
    epilogue("nothing has this name", Status.FILE, Status.CONFIGURATION, done="answered"),
)
_add(
    app,
    "replay",
    "replay:replay",
    "Repeat what --record recorded, and compare the decisions.",
    epilogue("the decisions are others", Status.PACKAGES, Status.FILE, done="they are the same"),
)
_add(
    app,
    "shares",
    "shares:shares",
    "Say who has what of which guarantee and max, and who borrows from whom.",
    epilogue("there is no such partition", Status.FILE, Status.CONFIGURATION, done="answered"),
)
_add(
    app,
    "mcp",
    "mcp:mcp",
    "Serve `why`, `shares`, `check` and `place` to a chat assistant (MCP).",
    epilogue("it failed", Status.PACKAGES, done="its input has ended"),
)
_add(app, "version", "version:version", "Print the version, and whether it is compiled.", epilogue("it failed"))
configuration = App(name="config", help="Work with queue configurations.")
_add(
    configuration,
    "check",
    "config:check",
    "Check queue configurations.",
    epilogue(
        "a scheduler would refuse one",
        Status.FILE,
        Status.CONFIGURATION,
        done="all are accepted",
        strict="there are warnings",
    ),
)
app.command(configuration)
scenarios = App(name="scenario", help="Work with scenarios: generated workloads that a YAML file describes.")
_add(
    scenarios,
    "check",
    "scenario:check",
    "Check a scenario, and say what it comes to.",
    epilogue("it has mistakes", Status.FILE, done="it can be simulated"),
)
_add(
    scenarios,
    "workload",
    "scenario:workload",
    "Write the workload of a scenario.",
    epilogue("the scenario cannot be used", Status.FILE),
)
_add(scenarios, "schema", "scenario:schema", "Print the JSON Schema, for editors.", epilogue("it failed"))
app.command(scenarios)
