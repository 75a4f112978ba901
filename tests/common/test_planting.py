"""A fault that a test plants is caught by a broken law alone, and not by an error of the test's own code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from common import plain_python
from common.planting import PRODUCT, raised_by_a_law
from licorne import InvariantError
from licorne.config.quantity import parse_quantity

HERE = Path(__file__)
PLACE = {"law": HERE, "test": HERE.with_name("driver.py"), "product": PRODUCT / "core" / "somewhere.py"}
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
        (AssertionError(), "law", False, True),
        (AssertionError(), "product law", False, True),
        (AssertionError(), "law test", True, False),
        (AssertionError(), "law product", False, True),
        (InvariantError(), "test", False, True),
        (KeyError(), "law", True, False),
        (KeyError(), "product test", True, False),
        (KeyError(), "law product", False, False),
        (KeyError(), "law product", True, True),
    ],
)
def test_what_catches_a_fault(error: Exception, places: str, crashes: bool, expected: bool) -> None:
    assert raised_by_a_law(raised(error, *places.split()), *LAWS, crashes=crashes) is expected


@pytest.mark.parametrize("laws", [(), (plain_python,)])
def test_an_assertion_of_no_law_catches_nothing(laws: tuple[ModuleType, ...]) -> None:
    assert not raised_by_a_law(raised(AssertionError(), "law"), *laws)


def test_a_crash_of_the_product_is_known_by_its_files() -> None:
    with pytest.raises(ValueError, match="x") as found:
        parse_quantity("x", "vcore")
    assert raised_by_a_law(found.value, crashes=True)
    assert not raised_by_a_law(found.value)
