"""What commands share: how they say what is wrong, read a file, take KEY=VALUE, print JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec


class CommandError(Exception):
    """What went wrong and what to do about it, in words for a terminal."""


def read_text(path: Path, what: str) -> str:
    """The text of a file, or a CommandError that says why not."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file; give the path of {what}") from None
    except IsADirectoryError:
        raise CommandError(f"{path}: is a folder; give the path of {what}") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: is not UTF-8 text (byte {error.start}); is it {what}?") from None


def pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """The values of an option that is given as KEY=VALUE, any number of times; the last one of a key counts."""
    values: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise CommandError(f"{option} {text!r}: is written KEY=VALUE")
        values[key] = value
    return values


def print_json(value: object) -> None:
    """Print a value as JSON for people and programs."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
