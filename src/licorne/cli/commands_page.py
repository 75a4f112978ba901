"""The page of the commands, in Markdown, made of the commands themselves: `python docs/generate_commands.py` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from licorne.cli.commands import app

if TYPE_CHECKING:
    from cyclopts import App

_PAGE = """\
# Commands

All commands with their options, as `--help` shows them. [Exit statuses](exit-statuses.md) has what the statuses mean for
every command. This page is made from the code by `python docs/generate_commands.py`.
"""
_SAYS_NOTHING = re.compile(r' \*\[default: (?:\(\)|""|None|False)\]\*')
_OPPOSITE = re.compile(r", --(?:empty|no)-[\w-]+(?=`)")
_TUPLE = re.compile(r"\('([^']*)',\)")


def commands_page() -> str:
    """Return the page of all commands: what each does, its arguments and options with defaults, and its exit statuses."""
    return _PAGE + "".join(f"\n{_section(name, one)}" for name, one in _commands(app, "licorne"))


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
