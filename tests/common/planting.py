"""Planting faults: a function that a law looks for is registered by its name, and replaces a part of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

import _pytest
import pytest
from hypothesis import Phase, given

import licorne
from common.examples import examples
from licorne.core.inspection.validate import InvariantError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

PRODUCT = Path(licorne.__file__).resolve().parent
PYTEST = Path(_pytest.__file__).resolve().parent
Plant = Callable[[], None]
LOOKED_AT = "looked at"
"""The property under which a test records how many examples it has looked at when a planted fault is caught."""


class Faults(dict[str, Plant]):
    """Planted faults by name; as a decorator, `add` takes in the function that plants one."""

    def add(self, plant: Plant) -> Plant:
        """Register a function under its name."""
        self[plant.__name__] = plant
        return plant


def replace(owner: Any, name: str, broken: Any) -> None:
    """Give a class or module another attribute, where it is looked up when the product runs.

    Raises:
        AttributeError: it has no such attribute, so that the fault would break nothing.
    """
    getattr(owner, name)
    setattr(owner, name, broken)


def raised_by_a_law(error: BaseException, *laws: ModuleType, crashes: type[Exception] = AssertionError) -> bool:
    """Tell whether a broken law raised an error, so that a planted fault is caught; else the test itself is wrong.

    A law is an assertion in one of the modules `laws`, or one of the product's own: its `validate` functions. Errors of the
    type `crashes` count too where the product's own code raises them. An error counts where it is raised: an assertion of
    the code that plants a fault or drives the product is no law. What `pytest.raises` or `pytest.fail` raises counts as
    raised by its caller. Of a group of errors each one must count, so that an error of the test cannot hide behind a law.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(raised_by_a_law(each, *laws, crashes=crashes) for each in error.exceptions)
    if isinstance(error, InvariantError):
        return True
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    # The code of a compiled module has a relative path; the module itself knows where it is.
    files = [Path(frame.f_globals.get("__file__", frame.f_code.co_filename)).resolve() for frame in frames]
    where = [file for file in files if not file.is_relative_to(PYTEST)][-1:]
    asserted = isinstance(error, AssertionError | pytest.fail.Exception)
    if any(file.is_relative_to(PRODUCT) for file in where):
        return asserted or isinstance(error, crashes)
    return asserted and where in [[Path(law.__file__ or "").resolve()] for law in laws]


@contextmanager
def a_law_breaks(*laws: ModuleType, crashes: type[Exception] = AssertionError) -> Iterator[None]:
    """Expect that a broken law ends the block, as `raised_by_a_law` tells it; any other error is raised.

    Example: `with a_law_breaks(laws): laws.check(world)`.
    """
    try:
        yield
    except (Exception, BaseExceptionGroup, pytest.fail.Exception) as error:
        if not raised_by_a_law(error, *laws, crashes=crashes):
            raise
    else:
        pytest.fail("the planted fault breaks no law")


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun: 1 day, 3 days."""
    return f"{count} {noun}{'s' if count > 1 else ''}"


class Counted:
    """A law that counts for how many examples it is asked, up to the first that breaks it; Hypothesis repeats that one."""

    def __init__(self, law: Callable[..., None]) -> None:
        self._law = law
        self._broken = False
        self._count = 0

    def __call__(self, *given: Any) -> None:
        """Ask the law."""
        self._count += not self._broken
        try:
            self._law(*given)
        except Exception:
            self._broken = True
            raise

    @property
    def looked_at(self) -> str:
        """How many examples the law was asked for, as the table of planted faults shows it."""
        return number_of(self._count, "example")

    def search(self, drawn: SearchStrategy[Any], number: int) -> None:
        """Ask the law for so many drawn examples, in proportion to the profile, or until one breaks it; none is made smaller."""

        @examples(number, phases=(Phase.generate,), report_multiple_bugs=False)
        @given(drawn)
        def holds(example: Any) -> None:
            self(example)

        holds()
