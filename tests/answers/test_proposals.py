"""What `licorne why` proposes, against brute force: each change works, nothing smaller of its kind does, none is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, note
from msgspec.structs import replace

from answers.clusters import clusters, is_placed, is_placed_later
from common.examples import examples, scaled
from licorne.answers import Home, changes, proposals, read_dump, restore, trials
from licorne.answers.proposals import Proposal, propose
from licorne.answers.trials import Outcome, Wanted

DUMP = Path(__file__).resolve().parents[2] / "examples" / "pods-wait" / "dump.json"
GRID = 500
"""All amounts are multiples of this."""


Placed = Callable[[bytes, Iterable[changes.Change], str], bool]


@pytest.mark.timeout(scaled(600))
@examples(60)
@given(clusters(quiet=True))
def test_what_is_proposed_works_and_nothing_smaller_does(dump: bytes) -> None:
    check(dump, is_placed)


@pytest.mark.timeout(scaled(600))
@examples(60)
@given(clusters(quiet=False))
def test_so_it_is_where_nodes_are_reserved_and_allocations_evicted(dump: bytes) -> None:
    check(dump, is_placed_later)


def check(dump: bytes, placed: Placed) -> None:
    """Check all proposals for all asks that wait in a cluster."""
    home = Home(restore(read_dump(dump)))
    partition = home.partition("default")
    for app in partition.applications.values():
        for key in list(app.asks):
            found = propose(home, Wanted("default", app.id, key))
            note(f"{key}: {found}")
            assert placed(dump, (), key) == found.by_itself, key
            if found.by_itself:
                continue
            assert found.complete
            assert found.found, f"nothing is proposed for {key}"
            for proposal in found.found:
                assert placed(dump, proposal.changes, key), f"{key}: {proposal.text} does not help"
                if proposal.smallest:
                    for smaller in _smaller(dump, proposal):
                        assert not placed(dump, smaller, key), f"{key}: {smaller} does, not {proposal.text}"
    home.restored.api.validate()


def _smaller(dump: bytes, proposal: Proposal) -> Iterator[list[changes.Change]]:
    """Yield all that is smaller in one place: a change left out, a lower number, fewer allocations of any kind."""
    for index, change in enumerate(proposal.changes):
        before, after = proposal.changes[:index], proposal.changes[index + 1 :]
        yield [*before, *after]
        for less in _less(dump, change):
            yield [*before, less, *after]


def _less(dump: bytes, change: changes.Change) -> Iterator[changes.Change]:
    match change:
        case changes.QueueMax() | changes.LimitMax():
            assert set(change.more) == {"vcore"}
            for amount in range(GRID, change.more["vcore"], GRID):
                yield replace(change, more={"vcore": amount})
            yield replace(change, more={"vcore": change.more["vcore"] - 1})
        case changes.MoreNodes():
            for count in range(1, change.count):
                yield replace(change, count=count)
        case changes.MaxApplications():
            for more in range(1, change.more):
                yield replace(change, more=more)
        case changes.End():
            home = restore(read_dump(dump))
            running = [
                changes.Running(key, app.queue.path, alloc.node.id)
                for app in home.partitions[0].applications.values()
                for key, alloc in app.allocations.items()
                if alloc.node is not None
            ]
            for size in range(1, len(change.allocations)):
                for some in combinations(running, size):
                    yield changes.End(tuple(sorted(some)))


def _not_the_least(most: int, _: Callable[[int], bool]) -> int:
    return most


def _never_tried(*_: object) -> Outcome:
    return Outcome("cpu-0")


def test_a_search_ends_when_the_process_that_asked_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(restore(read_dump(DUMP.read_bytes())))
    assert propose(home, Wanted("default", "index", "index-0")).complete
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert not propose(home, Wanted("default", "index", "index-0")).complete


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        (proposals, "_least", _not_the_least),
        (trials._Played, "change", _never_tried),
    ],
    ids=["more than is needed is proposed", "a change is not tried"],
)
def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Any) -> None:
    @examples(100, phases=(Phase.generate,), report_multiple_bugs=False)
    @given(clusters(quiet=True))
    def holds(dump: bytes) -> None:
        check(dump, is_placed)

    monkeypatch.setattr(where, name, fault)
    with pytest.raises(AssertionError):
        holds()
