"""Simulate once more, and say where two runs differ first.

The scheduler decides the same whenever it is given the same. A policy of a user may not: it may draw random numbers, read a
clock, keep something from one run to the next, or go through a set, whose order depends on the process. So the second run is
made in a process of its own, with another seed of Python's hashes, on the same workload.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from licorne.sim.policies.interface import PolicyError
from licorne.sim.runner import simulate
from licorne.workload.workload import Workload

_SEED = "PYTHONHASHSEED"


class Run(NamedTuple):
    """What decides about the outcome of a simulation; the arguments of `licorne.simulate`, policies by their names."""

    workload: Workload
    config: str | None
    settings: Mapping[str, str]
    policies: Sequence[str]
    policy_timeout_s: float | None


class Difference(NamedTuple):
    """The first line of two files of decisions that differs: its number, from 1, and what stands there; "" after the end."""

    number: int
    first: str
    second: str


def repeat(run: Run, decisions: Path) -> str:
    """Simulate in a process of its own, write the decision lines to a file, and return their digest.

    Raises:
        PolicyError: a policy went wrong there, or the process has ended.
    """
    with _other_hashes(), ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_digest, run, decisions).result()
        except BrokenProcessPool:
            raise PolicyError("the second run has ended without a result") from None
        except (ValueError, OSError) as error:
            raise PolicyError(f"in the second run: {error}") from None


def _digest(run: Run, decisions: Path) -> str:
    return simulate(
        run.workload,
        config=run.config,
        settings=run.settings,
        policies=run.policies,
        policy_timeout_s=run.policy_timeout_s,
        pods=False,
        decisions=decisions,
    ).digest


@contextmanager
def _other_hashes() -> Iterator[None]:
    """Have processes that are started now hash texts with another seed than this one."""
    before = os.environ.get(_SEED)
    os.environ[_SEED] = "2" if before == "1" else "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEED]
        else:
            os.environ[_SEED] = before


def first_difference(one: Path, other: Path) -> Difference | None:
    """Return where two files of decision lines differ first; None if they do not."""
    with one.open(encoding="utf-8") as first, other.open(encoding="utf-8") as second:
        for number, (left, right) in enumerate(zip_longest(first, second, fillvalue=""), 1):
            if left != right:
                return Difference(number, left.rstrip("\n"), right.rstrip("\n"))
    return None
