"""Queue properties: meaning, defaults and inheritance (docs/spec/config.md, section 7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config.properties import (
    PROPERTIES,
    QueueProperties,
    bad_properties,
    inherit_properties,
    parse_duration_ns,
    parse_properties,
)

SECOND = 10**9


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("application.sort.policy", "fair", "sort_policy", "fair"),
        ("application.sort.policy", "stateaware", "sort_policy", "stateaware"),
        ("application.sort.policy", "Fair", "sort_policy", "fifo"),
        ("application.sort.policy", "", "sort_policy", "fifo"),
        ("application.sort.priority", "Disabled", "sort_by_priority", False),
        ("application.sort.priority", "no", "sort_by_priority", True),
        ("application.unschedasks.backoff", "7", "backoff", 7),
        ("application.unschedasks.backoff", "-7", "backoff", 0),
        ("application.unschedasks.backoff", "18446744073709551616", "backoff", 0),
        ("application.unschedasks.backoff.delay", "1m", "backoff_delay_ns", 60 * SECOND),
        ("application.unschedasks.backoff.delay", "0s", "backoff_delay_ns", 30 * SECOND),
        ("priority.policy", "FENCE", "priority_fence", True),
        ("priority.policy", "fenced", "priority_fence", False),
        ("priority.offset", "-5", "priority_offset", -5),
        ("priority.offset", "+5", "priority_offset", 5),
        ("priority.offset", "2147483648", "priority_offset", 0),
        ("priority.offset", "-2147483648", "priority_offset", -(2**31)),
        ("priority.offset", " 5", "priority_offset", 0),
        ("preemption.policy", "Disabled", "preemption_policy", "disabled"),
        ("preemption.policy", "fence", "preemption_policy", "fence"),
        ("preemption.policy", "none", "preemption_policy", "default"),
        ("preemption.within-queue", "Priority", "preempts_within", True),
        ("preemption.within-queue", "default", "preempts_within", False),
        ("preemption.within-queue", "yes", "preempts_within", False),
        ("preemption.delay", "1h30m", "preemption_delay_ns", 5400 * SECOND),
        ("preemption.delay", "-1s", "preemption_delay_ns", 30 * SECOND),
        ("quota.preemption.delay", "10m", "quota_preemption_delay_ns", 600 * SECOND),
        ("quota.preemption.delay", "soon", "quota_preemption_delay_ns", 0),
        ("no.such.key", "1", "backoff", 0),
    ],
)
def test_meaning(key: str, text: str, field: str, value: object) -> None:
    assert getattr(parse_properties({key: text}), field) == value


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1.5s", 1_500_000_000),
        ("1h30m", 5400 * SECOND),
        ("100ms", 100_000_000),
        ("2us", 2000),
        ("2\u00b5s", 2000),
        ("3ns", 3),
        (".5s", 500_000_000),
        ("1.s", SECOND),
        ("0", 0),
        ("-1.5h", -5400 * SECOND),
        ("+2s", 2 * SECOND),
        ("1m1m", 120 * SECOND),
        ("0.1ns", 0),
        ("", None),
        ("5", None),
        ("s", None),
        (".s", None),
        ("1 s", None),
        ("1d", None),
        ("--1s", None),
        ("1e3s", None),
        ("3000000h", None),
        ("1" * 1000 + "s", None),
    ],
)
def test_durations(text: str, nanoseconds: int | None) -> None:
    assert parse_duration_ns(text) == nanoseconds


def test_inheritance() -> None:
    parent = {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
        "application.unschedasks.backoff": "3",
        "application.unschedasks.backoff.delay": "1s",
        "priority.policy": "fence",
        "priority.offset": "5",
        "preemption.policy": "fence",
        "preemption.delay": "2s",
        "quota.preemption.delay": "3s",
        "of.their.own": "x",
    }
    assert inherit_properties(parent, {"preemption.delay": "9s", "priority.offset": "1"}) == {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
        "application.unschedasks.backoff": "3",
        "application.unschedasks.backoff.delay": "1s",
        "priority.policy": "default",
        "priority.offset": "1",
        "preemption.policy": "default",
        "preemption.delay": "9s",
        "quota.preemption.delay": "3s",
        "of.their.own": "x",
    }
    assert inherit_properties({"preemption.policy": "disabled"}, {}) == {"preemption.policy": "disabled"}
    assert inherit_properties({"preemption.policy": "disabled"}, {"preemption.policy": "fence"}) == {
        "preemption.policy": "fence"
    }


@given(st.dictionaries(st.sampled_from(sorted(PROPERTIES)) | st.text(max_size=5), st.text(max_size=12)))
def test_any_text_has_a_meaning(properties: dict[str, str]) -> None:
    """Reading never fails, and a property that is not given has its default."""
    meaning = parse_properties(properties)
    for key, _, _ in bad_properties(properties):
        field = PROPERTIES[key].field
        assert getattr(meaning, field) == getattr(QueueProperties(), field)
