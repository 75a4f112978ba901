"""Functions that commands share: errors, reading files, options of the forms KEY=VALUE and 1m30s, printing JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from licorne._bounded import DOCUMENT_BYTES, TooLargeError, read_all
from licorne._files import file_bytes
from licorne.cli.statuses import Status

STDIN = Path("-")
"""The name that stands for standard input."""


class CommandError(Exception):
    """An error of the user or the system; the text, for a terminal, says what is wrong and what to do about it."""

    def __init__(self, text: str, status: Status = Status.NO) -> None:
        super().__init__(text)
        self.status = status


class UsageError(CommandError):
    """Options or arguments that are wrong, or do not fit together: each command ends with `Status.USAGE` then."""

    def __init__(self, text: str) -> None:
        super().__init__(text, Status.USAGE)


def read_text(path: Path, what: str) -> str:
    """Read a text file, or standard input for the name `-`. `what` names its expected content in errors.

    Raises:
        CommandError: there is no such file, it is a folder, it cannot be read, or it is not UTF-8.
    """
    try:
        return (read_all(sys.stdin.buffer, DOCUMENT_BYTES) if path == STDIN else file_bytes(path, shell=True)).decode()
    except FileNotFoundError:
        reason = f"no such file; give the path of {what}"
    except IsADirectoryError:
        reason = f"is a folder; give the path of {what}"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start}); is it {what}?"
    except TooLargeError as error:
        reason = str(error)
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


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
