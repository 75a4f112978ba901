"""The rings of tests; as a pytest plugin this notes the ring of each collected test, before any is left out.

`test_rings.py` says what belongs to which.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

MARKERS = ("gate", "nightly")
RINGS = pytest.StashKey[dict[str, list[str]]]()
"""By test, its markers of rings; one of `make test` has none."""


def first_in_gate(values: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test that the gate runs for the first of these, and the night for all others."""
    first, *others = values
    return [
        pytest.param(first, marks=pytest.mark.gate),
        *(pytest.param(other, marks=pytest.mark.nightly) for other in others),
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note the markers."""
    config.stash[RINGS] = {
        item.nodeid: [marker for marker in MARKERS if item.get_closest_marker(marker)] for item in items
    }
