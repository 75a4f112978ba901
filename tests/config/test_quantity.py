"""Quantities of resources (docs/spec/config.md, section 4 and 13.9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config.quantity import MAX_QUANTITY, QueueQuantityError, parse_queue_quantity


@pytest.mark.parametrize(
    ("text", "resource_type", "value"),
    [
        ("10", "vcore", 10_000),
        ("500m", "vcore", 500),
        ("1k", "vcore", 1_000_000),
        ("0", "vcore", 0),
        ("007", "memory", 7),
        ("10", "memory", 10),
        ("10k", "memory", 10_000),
        ("10M", "memory", 10_000_000),
        ("10G", "memory", 10**10),
        ("10T", "memory", 10**13),
        ("10P", "memory", 10**16),
        ("9E", "memory", 9 * 10**18),
        ("1Ki", "memory", 2**10),
        ("1Mi", "memory", 2**20),
        ("1Gi", "memory", 2**30),
        ("1Ti", "memory", 2**40),
        ("1Pi", "memory", 2**50),
        ("7Ei", "memory", 7 * 2**60),
        ("9223372036854775807", "memory", MAX_QUANTITY),
        ("9223372036854775807m", "vcore", MAX_QUANTITY),
        (" 4 Gi\n", "memory", 4 * 2**30),
        ("\u20034\u00a0", "memory", 4),
        ("4\t\f\r\n G", "memory", 4 * 10**9),
    ],
)
def test_quantities(text: str, resource_type: str, value: int) -> None:
    assert parse_queue_quantity(text, resource_type) == value


@pytest.mark.parametrize(
    ("text", "resource_type", "rule"),
    [
        ("", "memory", "quantity-invalid"),
        (" ", "memory", "quantity-invalid"),
        ("-1", "vcore", "quantity-invalid"),
        ("+1", "vcore", "quantity-invalid"),
        ("1.5", "vcore", "quantity-invalid"),
        ("1e3", "memory", "quantity-invalid"),
        ("10KB", "memory", "quantity-invalid"),
        ("Gi", "memory", "quantity-invalid"),
        ("1\u00a0G", "memory", "quantity-invalid"),
        ("1\vG", "memory", "quantity-invalid"),
        ("\u0661", "memory", "quantity-invalid"),
        ("1\x1c", "memory", "quantity-invalid"),
        ("10K", "memory", "quantity-suffix"),
        ("10ki", "memory", "quantity-suffix"),
        ("10mi", "vcore", "quantity-suffix"),
        ("100m", "memory", "quantity-suffix"),
        ("10E", "memory", "quantity-overflow"),
        ("9223372036854775808", "memory", "quantity-overflow"),
        ("9223372036854776", "vcore", "quantity-overflow"),
        ("9223372036854775808K", "memory", "quantity-overflow"),
        ("9" * 100_000, "memory", "quantity-overflow"),
    ],
)
def test_no_quantities(text: str, resource_type: str, rule: str) -> None:
    with pytest.raises(QueueQuantityError) as error:
        parse_queue_quantity(text, resource_type)
    assert error.value.rule == rule


@given(st.integers(0, MAX_QUANTITY), st.sampled_from(["memory", "nvidia.com/gpu", "Vcore"]))
def test_a_number_without_suffix_is_itself(number: int, resource_type: str) -> None:
    assert parse_queue_quantity(str(number), resource_type) == number


@given(st.text("0123456789mkKMGTPEi. +-\t\n", max_size=24), st.sampled_from(["vcore", "memory"]))
def test_any_text_is_a_quantity_or_refused(text: str, resource_type: str) -> None:
    try:
        value = parse_queue_quantity(text, resource_type)
    except QueueQuantityError:
        return
    assert 0 <= value <= MAX_QUANTITY
