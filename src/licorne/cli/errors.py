"""The one exception by which a command says what the user should know."""

from __future__ import annotations

from pathlib import Path


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
