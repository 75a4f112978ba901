"""Functions that commands share: errors, reading files, options of the forms KEY=VALUE and 1m30s, printing JSON."""

from __future__ import annotations

import re
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TextIO

import msgspec

from licorne._bounded import DOCUMENT_BYTES, read_all
from licorne._files import file_bytes
from licorne.cli.statuses import Status

STDIN = Path("-")
"""The name that stands for standard input."""
ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("ARGUMENTS", default=())
"""The arguments of the command that runs."""


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, among them line ends and those of the direction of writing, and halves of characters, which no file takes."""


class CommandError(Exception):
    """An error of the user or the system; the text, for a terminal, says what is wrong and what to do about it."""

    def __init__(self, text: str, status: Status = Status.NO) -> None:
        super().__init__(text)
        self.status = status


class UsageError(CommandError):
    """Options or arguments that are wrong, or do not fit together: each command ends with `Status.USAGE` then."""

    def __init__(self, text: str) -> None:
        super().__init__(text, Status.USAGE)


def read_input(path: Path, bytes_max: int = DOCUMENT_BYTES) -> bytes:
    """Read a file, or standard input for the name `-`. Raises OSError, TooLargeError as `licorne._files` and `_bounded` do."""
    return read_all(sys.stdin.buffer.read, bytes_max) if path == STDIN else file_bytes(path, bytes_max, from_shell=True)


def read_text(path: Path, what: str) -> str:
    """Read a text file, or standard input for the name `-`. `what` names its expected content in errors.

    Raises:
        CommandError: there is no such file, it is a folder, it cannot be read, or it is not UTF-8.
    """
    try:
        return read_input(path).decode()
    except FileNotFoundError:
        reason = f"no such file; give the path of {what}"
    except IsADirectoryError:
        reason = f"is a folder; give the path of {what}"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start}); is it {what}?"
    raise CommandError(f"{path}: {reason}", Status.FILE)


class Argument(str):
    """A text from the command line; a subclass names the word, `shown`, that help prints in place of STR."""

    __slots__ = ()

    def __init_subclass__(cls, *, shown: str) -> None:
        super().__init_subclass__()
        cls.__name__ = shown  # help shows the name of the class


class KeyValue(Argument, shown="KEY=VALUE"):
    """A name and a value, as `pairs` reads them."""

    __slots__ = ()


def pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse an option that is given as KEY=VALUE, any number of times; of equal keys the last one counts.

    Raises:
        UsageError: a text without `=` or without a key.
    """
    values: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} {text!r}: is written KEY=VALUE")
        values[key] = value
    return values


def clean(text: str) -> str:
    """Return a text whose characters can do nothing to a terminal: not colour it, not begin a line, not turn the order of letters."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def say(*lines: object, to: TextIO | None = None, style: str = "") -> None:
    """Print lines, by default on standard output. What commands print goes through here, or through `licorne.cli.sheets`.

    `style`: a style of Rich, for a terminal that is to have colours.
    """
    told = "\n".join(clean(str(line)) for line in lines)
    if style and (to or sys.stdout).isatty():
        from rich.console import Console  # noqa: PLC0415  # a file or a pipe need not wait for it

        Console(file=to, highlight=False, markup=False, emoji=False).print(told, style=style, soft_wrap=True)
    else:
        print(told, file=to, flush=True)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    print(_CONTROL.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text))
