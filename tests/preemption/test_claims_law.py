"""Evictions lead to something: random small clusters with quotas, limits, daemons and late asks (`preemption.clusters`).

By default the same clusters each time, from LICORNE_CLAIMS_SEED on. `make nightly PART=long` takes 20,000 others, from the seed of the run,
which is printed (`seeds`).
"""

from __future__ import annotations

import sys
from collections import Counter

import pytest

import seeds
from common.plain_python import printed_by
from preemption import clusters, faults
from rings import first_in_gate

SHORT = 150
LONG, PARTS = 20_000, 10


def lived(first: int, count: int) -> Counter[str]:
    """Run clusters of each kind, some of them without parking too; return the outcomes of all evictions."""
    met: Counter[str] = Counter()
    for seed in range(first, first + count):
        for kind in clusters.KINDS:
            try:
                cluster = clusters.lived(seed, kind)
                if seed % 3 == 0:
                    assert cluster.b.said == clusters.lived(seed, kind, parking=False).b.said, "parking decides"
            except AssertionError as error:
                raise AssertionError(f"{kind} cluster {seed}: {error}") from error
            met.update(f"{kind}: {each.outcome}" for each in cluster.b.partition.evictions)
    return met


@pytest.mark.gate
def test_each_eviction_leads_to_its_ask_being_placed_or_giving_up_for_a_cause() -> None:
    met = lived(seeds.first_seed("LICORNE_CLAIMS_SEED"), SHORT)
    assert met["calm: the ask was placed"] > SHORT / 4, met
    assert not seeds.MEETS_ALL or len(met) >= 6, met


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_each_eviction_of_thousands_more_seeds_leads_to_its_ask(part: int, new_seed: int) -> None:
    first = new_seed + part * (LONG // PARTS)
    sys.stdout.write(f"{dict(lived(first, LONG // PARTS))}\n")


@pytest.mark.parametrize("name", first_in_gate(faults.FAULTS))
def test_a_planted_fault_is_caught(name: str) -> None:
    """In a process of its own, with the hot modules as plain Python, where every function can be replaced."""
    printed = printed_by("preemption.faults", name)
    assert printed.startswith("caught after"), printed


def test_amounts_given_back_wake_an_application_that_may_preempt() -> None:
    """The queue may be entitled to more, though its quota still leaves no room: found by a comparison with parking off."""
    lived(333553533, 1)


def test_a_node_that_an_eviction_opens_is_offered_to_parked_asks_first() -> None:
    """A claim gives up for an ask that requires a node, and its own node opens between two passes of one decision."""
    lived(801762849, 1)


def test_room_that_victims_leave_to_others_is_offered_to_asks_that_require_the_node() -> None:
    lived(452322297, 1)
