"""How long `licorne kube` waits before it tries again, and how its times and numbers must compare with each other."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from licorne.core.base.states import COMPLETING_TIMEOUT_NS
from licorne.kube import health, lease, pauses, reflector, writer
from licorne.kube.backoff import Backoff
from licorne.kube.manager import lifecycle


@pytest.mark.parametrize(
    ("failures", "asked_s", "wait_s"),
    [
        (1, None, 1.0),
        (2, None, 2.0),
        (5, None, 16.0),
        (6, None, 20.0),
        (10_000, None, 20.0),
        (1, 7.0, 7.0),
        (6, 7.0, 20.0),
    ],
)
def test_the_wait_doubles_up_to_its_bound_and_is_no_shorter_than_what_was_asked_for(
    failures: int, asked_s: float | None, wait_s: float
) -> None:
    assert Backoff(first_s=1.0, longest_s=20.0, jitter=(0.1, 0.2)).wait_s(failures, asked_s=asked_s) == wait_s


def test_jitter_is_a_factor_of_the_wait() -> None:
    backoff, rng = Backoff(first_s=1.0, longest_s=20.0, jitter=(0.8, 1.2)), random.Random(1)
    waits = [backoff.wait_s(9, rng) for _ in range(200)]
    assert 16.0 <= min(waits) < 17.0
    assert 23.0 < max(waits) <= 24.0


def _longest_s(backoff: Backoff) -> float:
    return backoff.longest_s * backoff.jitter[1]


ORDERS = {
    "a pod that could not be bound is asked for again before its idle application completes": (
        _longest_s(lifecycle.ASK_AGAIN_BACKOFF),
        COMPLETING_TIMEOUT_NS / 1e9,
    ),
    "the lease is renewed, also after a request that was given up, and ends here before another process may take it": (
        lease.RENEW_S,
        lease.RENEW_S + lease.CALL_S,
        lease.HELD_S,
        lease.DURATION_S,
    ),
    "a process that is awake was not paused": (pauses.HEARTBEAT_S, pauses.PAUSE_S),
    "news is not called old while a reflector waits before it tries again": (
        max(map(_longest_s, (reflector.BACKOFF, reflector.FORBIDDEN_BACKOFF, reflector.ABSENT_BACKOFF))),
        health.NEWS_MAX_S,
    ),
    "creations leave workers to victims and conditions": (writer.CREATING_AT_ONCE, writer.AT_ONCE),
}


@pytest.mark.parametrize("rule", ORDERS)
def test_times_and_numbers_that_depend_on_each_other_ascend(rule: str) -> None:
    values = ORDERS[rule]
    assert all(less < more for less, more in pairwise(values)), values
