"""How help is shown: as the parser's library shows it, without what says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

_SAY_NOTHING = ("()", '""', "None", "False")
"""Defaults that mean that the option is not given."""


class Help:
    """The formatter of help: each description is one paragraph, and only defaults that say something are named."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Show a panel: arguments, options or commands."""
        from cyclopts.help import DefaultFormatter, InlineText  # noqa: PLC0415  # only for who asks for help
        from rich.text import Text  # noqa: PLC0415

        entries = []
        for entry in panel.entries:
            told = entry.description
            if isinstance(told, InlineText) and isinstance(told.primary_renderable, Text):
                told = InlineText(Text(" ".join(told.primary_renderable.plain.split())))
            default = None if entry.default in _SAY_NOTHING else entry.default
            entries.append(entry.copy(description=told, default=default))
        DefaultFormatter()(console, options, panel.copy(entries=entries))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: object) -> None:
        """Show the line that begins with `Usage:`."""
        from cyclopts.help import DefaultFormatter  # noqa: PLC0415  # only for who asks for help

        DefaultFormatter().render_usage(console, options, usage)
