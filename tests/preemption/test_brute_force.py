"""Against a reference that tries all sets of victims: small full clusters with guarantees, fences, offsets and quotas.

Every decision must agree, so the best set is met in all cases, not in 95 of 100; and with it the laws that the reference
words (`reference.preempting`): no victim takes a queue below its guarantee, is outside the fence or of higher priority, free
space counts first, and no victim can be left out. LICORNE_CONTESTS scenarios from LICORNE_REFERENCE_SEED on.
"""

from __future__ import annotations

import os

import pytest

import seeds
from common.examples import scaled
from common.plain_python import printed_by
from preemption.contests import FAULTS, compare
from rings import first_in_gate

CONTESTS = int(os.environ.get("LICORNE_CONTESTS") or scaled(150))


def test_the_best_set_is_chosen() -> None:
    met, fault = compare(CONTESTS)
    assert not fault, fault
    if seeds.MEETS_ALL:
        wanted = [
            "nobody",
            "1 victims",
            "2 victims",
            "somebody bad",
            "elsewhere",
            "nested queues",
            "a budget kept",
            "a budget broken",
            "beside a node that has too little",
            "beside a claim",
            "a member of a gang",
            "within the queue",
            "more than one within the queue",
        ]
        assert not [name for name in wanted if not met[name]], met


@pytest.mark.parametrize("name", first_in_gate(FAULTS))
def test_a_planted_fault_is_caught(name: str) -> None:
    printed = printed_by("preemption.contests", name)
    assert printed.startswith("caught after"), printed
