"""A fault that a test plants is caught by a broken law alone, and not by an error of the test's own code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from common import plain_python
from common.planting import PRODUCT, PYTEST, Counted, a_law_breaks, raised_by_a_law
from licorne import InvariantError
from licorne.config.quantity import parse_queue_quantity

HERE = Path(__file__)
PLACE = {
    "law": HERE,
    "test": HERE.with_name("driver.py"),
    "product": PRODUCT / "core" / "somewhere.py",
    "pytest": PYTEST / "somewhere.py",
}
LAWS = (sys.modules[__name__], plain_python)


def raised(error: Exception, *places: str) -> Exception:
    """Raise an error in the last of some places, each of which is called by the one before; return it."""

    def fails() -> None:
        raise error

    call = fails
    for place in reversed(places):
        names: dict[str, Any] = {"call": call, "error": error}
        body = "raise error" if call is fails else "call()"
        exec(compile(f"def here():\n    {body}", str(PLACE[place]), "exec"), names)  # noqa: S102  a made-up place
        call = names["here"]
    with pytest.raises(type(error)) as found:
        call()
    return found.value


@pytest.mark.parametrize(
    ("error", "places", "crashes", "expected"),
    [
        (AssertionError(), "law", AssertionError, True),
        (AssertionError(), "product law", AssertionError, True),
        (AssertionError(), "law test", Exception, False),
        (AssertionError(), "law product", AssertionError, True),
        (AssertionError(), "law pytest", AssertionError, True),
        (AssertionError(), "law test pytest", Exception, False),
        (InvariantError(), "test", AssertionError, True),
        (KeyError(), "law", Exception, False),
        (KeyError(), "product test", Exception, False),
        (KeyError(), "law product", AssertionError, False),
        (KeyError(), "law product", LookupError, True),
        (KeyError(), "law product", ValueError, False),
    ],
)
def test_what_catches_a_fault(error: Exception, places: str, crashes: type[Exception], expected: bool) -> None:
    assert raised_by_a_law(raised(error, *places.split()), *LAWS, crashes=crashes) is expected


def test_each_error_of_a_group_must_be_one_of_a_law() -> None:
    broken, own = raised(AssertionError(), "law"), raised(KeyError(), "test")
    assert raised_by_a_law(ExceptionGroup("", [ExceptionGroup("", [broken]), broken]), *LAWS)
    assert not raised_by_a_law(ExceptionGroup("", [ExceptionGroup("", [own]), broken]), *LAWS)


@pytest.mark.parametrize("laws", [(), (plain_python,)])
def test_an_assertion_of_no_law_catches_nothing(laws: tuple[ModuleType, ...]) -> None:
    assert not raised_by_a_law(raised(AssertionError(), "law"), *laws)


def test_a_crash_of_the_product_is_known_by_its_files() -> None:
    with pytest.raises(ValueError, match="x") as found:
        parse_queue_quantity("x", "vcore")
    assert raised_by_a_law(found.value, crashes=ValueError)
    assert not raised_by_a_law(found.value)


def test_a_compiled_module_is_known_by_its_file_wherever_the_test_runs() -> None:
    code = compile("raise KeyError", "somewhere.py", "exec")
    with pytest.raises(KeyError) as found:
        exec(code, {"__file__": str(PRODUCT / "core" / "somewhere.so")})  # noqa: S102  a made-up place
    assert raised_by_a_law(found.value, crashes=KeyError)


def test_the_end_of_a_block_must_be_a_broken_law() -> None:
    with a_law_breaks(*LAWS):
        raise AssertionError
    with a_law_breaks(*LAWS), pytest.raises(KeyError):
        pass
    with pytest.raises(KeyError), a_law_breaks(*LAWS):
        raise KeyError
    with pytest.raises(pytest.fail.Exception, match="breaks no law"), a_law_breaks(*LAWS):
        pass


def test_examples_are_counted_up_to_the_first_that_breaks_the_law() -> None:
    def law(number: int) -> None:
        assert number < 3

    counted = Counted(law)
    counted(1)
    assert counted.looked_at == "1 example"
    counted(2)
    for _ in range(2):  # as Hypothesis repeats it
        with pytest.raises(AssertionError):
            counted(3)
    assert counted.looked_at == "3 examples"
