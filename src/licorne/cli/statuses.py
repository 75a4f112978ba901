"""The exit statuses of the commands. `docs/reference/exit-statuses.md` has the same table; a test compares the two."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Status(IntEnum):
    """An exit status."""

    DONE = 0
    NO = 1
    USAGE = 2
    PACKAGES = 3
    FILE = 4
    CONFIGURATION = 5
    STRICT = 6
    INTERRUPTED = 130
    PIPE = 141
    ENDED = 143


MEANINGS: Final = {
    Status.DONE: "done, or the answer is yes",
    Status.NO: "the answer is no, or it could not be done, for a reason without a status of its own",
    Status.USAGE: "wrong usage: a command, option or argument is unknown, missing, not allowed or does not fit the others",
    Status.PACKAGES: "packages are not installed that the command needs",
    Status.FILE: "a file cannot be read or written",
    Status.CONFIGURATION: "a queue configuration that was given is refused",
    Status.STRICT: "--strict: there were warnings, or asks that were never placed",
    Status.INTERRUPTED: "interrupted (Ctrl-C)",
    Status.PIPE: "the reader of the output has closed the pipe",
    Status.ENDED: "ended by SIGTERM; `serve` and `kube` end in good order then, with 0",
}


def epilogue(no: str, *others: Status, done: str = "done", strict: str = "") -> str:
    """Return the end of a command's help: its exit statuses. The texts say what 0, 1 and that of --strict mean there."""
    shown = {Status.DONE: done, Status.NO: no, Status.USAGE: "wrong usage"}
    shown |= {status: MEANINGS[status] for status in others}
    if strict:
        shown[Status.STRICT] = f"--strict, and {strict}"
    return "Exit status: " + "; ".join(f"{status:d} {meaning}" for status, meaning in shown.items()) + ".\n"
