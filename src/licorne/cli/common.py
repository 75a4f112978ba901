"""Functions that commands share: errors, reading files, options of the form KEY=VALUE, printing JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec


class CommandError(Exception):
    """An error of the user or the system; the text, for a terminal, says what is wrong and what to do about it."""


def read_text(path: Path, what: str) -> str:
    """Read a text file. `what` names its expected content in errors.

    Raises:
        CommandError: there is no such file, it is a folder, or it is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file; give the path of {what}") from None
    except IsADirectoryError:
        raise CommandError(f"{path}: is a folder; give the path of {what}") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: is not UTF-8 text (byte {error.start}); is it {what}?") from None


def pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse an option that is given as KEY=VALUE, any number of times; of equal keys the last one counts.

    Raises:
        CommandError: a text without `=` or without a key.
    """
    values: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise CommandError(f"{option} {text!r}: is written KEY=VALUE")
        values[key] = value
    return values


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
