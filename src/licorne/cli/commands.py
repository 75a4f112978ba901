"""The commands of `licorne`, by name.

Each is a file of its own, which is imported when the command is called, so that `licorne --help` does not wait for the
import of a scheduler.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from cyclopts import (
    App,
    CycloptsPanel,
    Group,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from licorne.cli.help import Help
from licorne.cli.standard_input import MARKED
from licorne.cli.statuses import Status, epilogue
from licorne.cli.version import describe

if TYPE_CHECKING:
    from cyclopts import CycloptsError
    from rich.panel import Panel


def _panel(error: CycloptsError) -> Panel:
    """Return the panel that shows an error of usage, in which an argument `-` is told as the user gave it, not as the parser got it."""
    return CycloptsPanel(_told(error).replace(f'"{MARKED}"', '"-"'))


_CALLS = {
    "place": "licorne place --config queues.yaml --user NAME; it reads no dump and asks no scheduler (--from)",
    "config check": "licorne config check queues.yaml; --from besides names a cluster that it is checked beside",
    "shares": "licorne shares; it takes no name and tells of all queues, --from says of which scheduler or file",
}
"""Commands that first calls get wrong, as they are written."""


def _told(error: CycloptsError) -> str:
    command = " ".join(error.command_chain or ())
    call = f"Write: {_CALLS[command]}." if command in _CALLS else ""
    match error:
        case UnknownCommandError():
            return _unknown(error)
        case UnusedCliTokensError():
            words = ", ".join(f'"{word}"' for word in error.unused_tokens or ())
            return f"{words}: more than the command takes. {call or f'See: licorne {command} --help'}"
        case UnknownOptionError() if command == "place" and error.token.keyword == "--from":
            return f"Unknown option: --from. {call}"
        case MissingArgumentError():
            return f"{error} {call}".rstrip()
    return str(error)


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


_GROUPS = {
    "Run a scheduler": {
        "serve": (
            "Run a scheduler for resource managers, by gRPC.",
            epilogue("it could not start, or failed", Status.PACKAGES, done="it was ended by a signal"),
        ),
        "kube": (
            "Schedule the pods of a Kubernetes cluster.",
            epilogue(
                "it could not start, or failed",
                Status.PACKAGES,
                Status.FILE,
                Status.CONFIGURATION,
                done="it was ended by a signal",
            ),
        ),
        "health": (
            "Ask whether a service serves.",
            epilogue("it does not, or cannot be reached", Status.PACKAGES, Status.FILE, done="it serves"),
        ),
    },
    "Ask": {
        "why": (
            "Say why an ask or an application waits, and what would let it run.",
            epilogue("nothing has this name", Status.FILE, Status.CONFIGURATION, done="answered"),
        ),
        "shares": (
            "Say who has what of which guarantee and max, and who borrows from whom.",
            epilogue("there is no such partition", Status.FILE, Status.CONFIGURATION, done="answered"),
        ),
        "page": (
            "Show a recording, a state dump or a running scheduler in a browser.",
            epilogue("it could not be served", Status.PACKAGES, Status.FILE, done="it was ended"),
        ),
        "place": (
            "Say which queue an application would be placed in, and why.",
            epilogue(
                "there is no queue for it",
                Status.FILE,
                Status.CONFIGURATION,
                done="there is a queue",
                strict="the configuration has warnings",
            ),
        ),
        "mcp": (
            "Serve `why`, `shares`, `check` and `place` to a chat assistant (MCP).",
            epilogue("it failed", Status.PACKAGES, done="its input has ended"),
        ),
    },
    "Simulate": {
        "simulate": (
            "Run a workload under a virtual clock.",
            epilogue(
                "the workload cannot be used", Status.FILE, Status.CONFIGURATION, strict="an ask was never placed"
            ),
        ),
        "compare": (
            "Run a workload under two queue configurations, and say what changes for whom.",
            epilogue("the workload cannot be used", Status.FILE, Status.CONFIGURATION),
        ),
        "sweep": (
            "Simulate many combinations of workloads, configurations, loads and policies, and compare them.",
            epilogue(
                "no point could be simulated",
                Status.PACKAGES,
                Status.FILE,
                Status.CONFIGURATION,
                done="done; points that failed are in the table",
            ),
        ),
        "report": (
            "Put runs that have a report side by side, on one page.",
            epilogue("it could not be done", Status.PACKAGES, Status.FILE, done="the report is written"),
        ),
        "replay": (
            "Repeat what --record recorded, and compare the decisions.",
            epilogue("the decisions are others", Status.PACKAGES, Status.FILE, done="they are the same"),
        ),
        "reproduce": (
            "Make the table of a paper again, from its data.",
            epilogue("a cell does not agree", Status.FILE, done="all cells agree"),
        ),
    },
    "Workloads and configuration": {
        "convert": (
            "Make a workload of a trace, a log, a cluster, a running scheduler or a scenario.",
            epilogue(
                "the source cannot be used, or the names of its configuration cannot be replaced",
                Status.PACKAGES,
                Status.FILE,
                done="the workload is written",
            ),
        ),
        "scenario check": (
            "Check a scenario, and say what it comes to.",
            epilogue("it has mistakes", Status.FILE, done="it can be simulated"),
        ),
        "scenario schema": ("Print the JSON Schema, for editors.", epilogue("it failed")),
        "config check": (
            "Check queue configurations.",
            epilogue(
                "a scheduler would refuse one",
                Status.FILE,
                Status.CONFIGURATION,
                done="all are accepted",
                strict="there are warnings",
            ),
        ),
    },
}
"""The commands in the groups of `licorne --help`, each with its help and exit statuses; `scenario` and `config` have some below them."""
_PARENTS = {
    "scenario": "Work with scenarios: generated workloads that a YAML file describes.",
    "config": "Work with queue configurations.",
}


def _add(name: str, told: str, statuses: str, group: Group) -> None:
    parent, _, word = name.rpartition(" ")
    if parent and parent not in app:
        app.command(App(name=parent, help=_PARENTS[parent], group=group))
    to, panel = (app[parent], None) if parent else (app, group)
    to.command(f"licorne.cli.{parent or word}:{word}", name=word, help=told, help_epilogue=statuses, group=panel)


for _place, (_title, _commands) in enumerate(_GROUPS.items()):
    _group = Group(_title, sort_key=_place)
    for _name, _texts in _commands.items():
        _add(_name, *_texts, _group)
_group = Group("Options", sort_key=len(_GROUPS))
for _name in ("--help", "--version", "--install-completion"):
    app[_name].group = _group
