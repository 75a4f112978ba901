"""Amounts and durations in the form in which tables show them."""

from __future__ import annotations

import pytest

from licorne.cli.tables import amount, duration


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("vcore", 1500, "1.5 cores"),
        ("vcore", 2_000_000, "2,000 cores"),
        ("memory", 512, "512 B"),
        ("memory", 3 * 2**30, "3 GiB"),
        ("memory", 1.5 * 2**40, "1.5 TiB"),
        ("memory", 2**63, "8 EiB"),
        ("nvidia.com/gpu", 7.64, "7.6"),
        ("pods", 6600, "6,600"),
        ("vcore", 0, "0 cores"),
    ],
)
def test_an_amount_has_its_unit(resource: str, value: float, text: str) -> None:
    assert amount(resource, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.25, "0.25 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (86_399, "23 h 59 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
