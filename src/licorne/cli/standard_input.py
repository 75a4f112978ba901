"""`-` as an argument of a command: standard input.

The parser's library takes a `-` for an option, unless it may take every text that begins with `-` for an argument, which
would make arguments of misspelled options. So an argument `-` is handed to it as `./-`, which as a path is the same.
Options that take `-` for a value, such as --config, say so themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from licorne.cli.common import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import App

MARKED: Final = "./-"
"""What the parser is given in place of an argument `-`, which it would take for an option."""
COMMANDS: Final = ("simulate", "compare", "config check", "convert")
"""The commands with an argument for which `-` may stand."""


def mark(app: App, words: Sequence[str]) -> list[str]:
    """Return the words of a command line with `MARKED` in place of each `-` that is an argument.

    Raises:
        UsageError: the command has no argument that may be `-`, or standard input would be read twice.
    """
    given = list(words)
    places = [place for place, word in enumerate(given) if word == "-" or word.endswith("=-")]
    if not places:
        return given
    chain, apps, _ = app.parse_commands(given)
    if not chain or apps[-1].default_command is None:
        return given
    command, arguments = " ".join(chain), apps[-1].assemble_argument_collection()
    flags = {name for argument in arguments if argument.hint is bool for name in argument.names}
    marked = [place for place in places if given[place] == "-" and not _takes_the_next_word(given[place - 1], flags)]
    if marked and command not in COMMANDS:
        raise UsageError(f"{command}: - (standard input) is not read here; see licorne {command} --help")
    if len(places) > 1:
        raise UsageError(f"{command}: standard input (-) is given {len(places)} times, and can be read only once")
    for place in marked:
        given[place] = MARKED
    return given


def _takes_the_next_word(word: str, flags: set[str]) -> bool:
    """Return whether a word is an option whose value is the next word."""
    return word.startswith("-") and word != "-" and "=" not in word and word not in flags
