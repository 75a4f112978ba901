"""What reproducing a published table returns: each of its cells with what was published, and what came out here.

A reproduction is a function that takes the folder with the data, which are not part of licorne, and returns a `Reproduced`
(`licorne.cli.reproduce` has the table of all). It raises WorkloadError for data that are not what it expects, and OSError.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from licorne.lab.processes import results
from licorne.workload.workload import Progress

_Key = TypeVar("_Key")
_Group = TypeVar("_Group")
_Run = TypeVar("_Run")


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of a published table. It agrees if what came out differs from what was expected by at most the tolerance.

    `decimals`: with how many it is shown, and rounded before it is compared; as many as were published.
    """

    row: str
    column: str
    expected: float
    got: float
    tolerance: float = 0
    decimals: int = 2
    agrees: bool = False

    def compared(self) -> Cell:
        """Return the cell with `got` rounded, and whether it agrees."""
        got = round(self.got, self.decimals)
        # Both are decimal fractions, so a difference of exactly the tolerance may come out a trifle above it.
        agrees = abs(got - self.expected) <= self.tolerance + 10**-9
        return msgspec.structs.replace(self, got=got, agrees=agrees)


class DataFile(msgspec.Struct, frozen=True):
    """A file that was read: its name and the SHA-256 of its bytes."""

    name: str
    sha256: str


class Reproduced(msgspec.Struct, frozen=True, kw_only=True):
    """A published table, made again.

    `source`: what to cite for the table; `data`: the files that were read, and `data_source` where they are published.
    `digest`: SHA-256 over the digests of all simulations, in order, so that two runs can be compared as a whole. `notes`:
    what a reader must know, such as what was left out.
    """

    name: str
    title: str
    source: str
    data_source: str
    data: list[DataFile]
    cells: list[Cell]
    simulations: int
    digest: str
    notes: list[str] = []


Part = Literal["small", "usual", "all"]
"""Which runs are made: a few, for a quick check; those that the table needs; or all for which there are data."""
Reproduction = Callable[[Path, Part, int, Progress | None], Reproduced]
"""Makes a table from the data in a folder, with that part of the runs, and as many processes at a time; the last argument is told
the runs done and their number."""


def run_groups(
    groups: Mapping[_Key, _Group],
    run: Callable[[_Group], list[_Run]],
    total: int,
    at_once: int,
    progress: Progress | None,
) -> dict[_Key, list[_Run]]:
    """Make groups of runs, `total` in all, each group in one process and `at_once` at a time; return the results of each.

    Raises:
        CrashedError: a process has ended too early.
    """
    keys = list(groups)
    found: dict[_Key, list[_Run]] = {}
    with closing(results(list(groups.values()), run, at_once)) as ended:
        for number, runs in ended:
            found[keys[number]] = runs
            if progress is not None:
                progress(sum(map(len, found.values())), total)
    return found


def data_file(path: Path) -> DataFile:
    """Return name and digest of a file of data."""
    return DataFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def digest_of(digests: Iterable[str]) -> str:
    """Return one digest of many, in their order."""
    return hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()
