"""Errors of YAML files: what is wrong where, as a path in the document, which the reader turns into file, line and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from licorne.workload.workload import WorkloadError

Path = tuple[str | int, ...]
"""The keys and indices that lead to a value of a document."""


class Problem(NamedTuple):
    """Something wrong: the file, line and column (0 where there is no text), the path of the value, and what is wrong."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: "
        return f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"


class YamlFileError(WorkloadError):
    """A YAML file that is not usable; `problems` has all that is wrong with it, in the order of the text."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class DocumentError(Exception):
    """One thing that is wrong with a document, at the path of a value."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path, self.message = path, message


class DocumentErrors(Exception):  # noqa: N818  # not an error of its own, but several
    """Several things that are wrong with a document, which were found together."""

    def __init__(self, faults: tuple[DocumentError, ...]) -> None:
        super().__init__(*faults)
        self.faults = faults


def together(*makes: Callable[[], Any]) -> list[Any]:
    """Call all of these, and return what they return, so that a fault of one does not hide those of the others.

    Raises:
        DocumentErrors: what was wrong with any of them.
    """
    made: list[Any] = []
    faults: list[DocumentError] = []
    for make in makes:
        try:
            made.append(make())
        except DocumentError as fault:
            faults.append(fault)
        except DocumentErrors as several:
            faults += several.faults
    if faults:
        raise DocumentErrors(tuple(faults))
    return made


def spoken(path: Path) -> str:
    """Return a path as it is written in messages, keys with points between them and indices in brackets."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
