"""Writes the pages of docs/reference that are made from tables in the code: `.venv/bin/python tools/pages.py`.

That of settings is made of their table, that of states of the tables of states, and that of commands of the commands
themselves. A test compares each with the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from licorne.core.base.states import (
    APPLICATION,
    APPLICATION_FIRST,
    APPLICATION_FIRST_NO_STARTING,
    APPLICATION_STARTING,
    OBJECT,
    PLACEHOLDER_TIMEOUT_NS,
    SECOND_NS,
    STATE_TIMERS,
)
from licorne.host.setting_table import SETTINGS

if TYPE_CHECKING:
    from cyclopts import App

_SETTINGS = """\
# Settings of `licorne serve`

Each may stand in the settings file, in the environment and on the command line ([service](../use/service.md#settings)); those
without an option are given as `--setting KEY=VALUE`. "Changes": when another value takes effect.

Made from the table in `src/licorne/host/setting_table.py` by `tools/pages.py`; a test compares the two.

| key | type | default | changes | what it does | option | variable |
|---|---|---|---|---|---|---|
"""
_STATES = """# State machines

Printed from the tables in `src/licorne/core/base/states.py` by `tools/pages.py`; a test compares the two.
Rows are states, columns are events, a cell is the state that follows. An empty cell: the event changes nothing.
"""
_OF_PODS = "Printed from `src/licorne/kube/manager/stages.py`. An event in an empty cell is a fault."
_COMMANDS = """\
# Commands

All commands with their options, as `--help` shows them. [Exit statuses](exit-statuses.md) has what the statuses mean for
every command. This page is made from the code by `python tools/pages.py`.
"""
_SAYS_NOTHING = re.compile(r' \*\[default: (?:\(\)|""|None|False)\]\*')
_OPPOSITE = re.compile(r", --(?:empty|no)-[\w-]+(?=`)")
_TUPLE = re.compile(r"\('([^']*)',\)")

# -- settings ------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Return the page of all settings, in Markdown."""
    rows = (
        f"| `{one.key}` | {one.kind.name} | {f'`{one.default}`' if one.default else '–'} | {one.applies} | {one.what} | "
        f"{f'`--{one.option}`' if one.option else '–'} | {f'`{one.environment}`' if one.environment else '–'} |\n"
        for one in SETTINGS
    )
    return _SETTINGS + "".join(rows)


# -- states --------------------------------------------------------------------------------------------------


def states_page() -> str:
    """Return the page of all tables of states and their timers, in Markdown."""
    from licorne.kube.manager.stages import STAGES  # noqa: PLC0415  the other pages do not need the extra kube

    grids = {
        "Application, the 1.9 interface": grid(APPLICATION),
        "Application, the 1.9 interface with `application.state.starting`": grid(APPLICATION_STARTING),
        "Application, the first interface": grid(APPLICATION_FIRST),
        "Application, the first interface without `application.state.starting`": grid(APPLICATION_FIRST_NO_STARTING),
        "Queue and partition": grid(OBJECT),
        "Timers of application states": _timers(),
        "Pod of `licorne kube`": f"{_OF_PODS}\n\n{grid(STAGES)}",
    }
    return "\n".join([_STATES, *(f"## {title}\n\n{text}" for title, text in grids.items())])


def grid(table: Mapping[tuple[Any, Any], Any]) -> str:
    """Format one table with a row for each state that occurs in it, in the order in which the states are declared."""
    sample_state, sample_event = next(iter(table))
    used = {state for state, _ in table} | set(table.values())
    states = [state for state in type(sample_state) if state in used]
    events = [event for event in type(sample_event) if any(key[1] is event for key in table)]
    lines = ["| | " + " | ".join(events) + " |", "|---" * (len(events) + 1) + "|"]
    for state in states:
        cells = [str(table.get((state, event), "")) for event in events]
        lines.append(f"| **{state}** | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _timers() -> str:
    rows = [f"| {state} | {timer.length_ns // SECOND_NS} | {timer.event} |" for state, timer in STATE_TIMERS.items()]
    placeholder = (
        f"The placeholders of a gang time out {PLACEHOLDER_TIMEOUT_NS // SECOND_NS} seconds after the first of them was placed,"
        " unless their application gives another time, its execution timeout."
    )
    return "\n".join(["| state | seconds | event |", "|---|---|---|", *rows, "", placeholder]) + "\n"


# -- commands ------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Return the page of all commands: what each does, its arguments and options with defaults, and its exit statuses."""
    from licorne.cli.commands import app  # noqa: PLC0415  nor the extra cli

    return _COMMANDS + "".join(f"\n{_section(name, one)}" for name, one in _commands(app, "licorne"))


def _commands(parent: App, prefix: str) -> Iterator[tuple[str, App]]:
    """Yield the commands below `parent` with their full names, those in groups such as `config` too."""
    for name, one in sorted(parent.resolved_commands().items()):
        if name.startswith("-"):
            continue
        if one.default_command is None:
            yield from _commands(one, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", one


def _section(name: str, one: App) -> str:
    told = one.generate_docs(output_format="markdown", include_hidden=False)
    usage = re.search(r"```console\n\S+(.*?)\n```", told, re.DOTALL)
    return "\n\n".join(
        part
        for part in (
            f"## {name}",
            one.help,
            f"```text\n{name}{usage[1] if usage else ''}\n```",
            _options(told[told.index("\n**") :] if "\n**" in told else ""),
            one.help_epilogue,
        )
        if part
    )


def _options(told: str) -> str:
    """Return the lists of arguments and options, each item in one line, without defaults that say nothing."""
    lines = re.sub(r"\n +", " ", told).replace("<", "&lt;")
    titled = re.sub(r"^\*\*(\w+)\*\*:$", r"\1:", lines, flags=re.MULTILINE)
    return _TUPLE.sub(r"\1", _OPPOSITE.sub("", _SAYS_NOTHING.sub("", titled))).strip()


PAGES = {"settings.md": settings_page, "states.md": states_page, "commands.md": commands_page}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (Path(__file__).parents[1] / "docs" / "reference" / name).write_text(made(), encoding="utf-8")
