"""The messages to a resource manager's scheduler cache, and their moments: *Scheduler Interface Spec*, "Scheduler plugin"."""

from __future__ import annotations

import pytest

from core.bench import Bench, config
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.si import first, v19
from licorne.si.messages import Termination


class Cache(ResourceManagerCallback):
    """A cache that notes all calls, and lets one pod on a node only."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.taken: set[str] = set()

    def re_sync_scheduler_cache(self, args: first.ReSyncSchedulerCacheArgs) -> None:
        self.taken |= {allocation.node_id for allocation in args.assumed_allocations}
        self.calls += [f"assume {a.allocation_key}@{a.node_id}" for a in args.assumed_allocations]
        self.calls += [f"forget {a.allocation_key}" for a in args.forget_allocations]

    def recv_update_response(self, response: first.UpdateResponse) -> None:
        self.calls += [f"new {a.allocation_key}" for a in response.new_allocations]
        self.calls += ["released"] * len(response.released_allocations)

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self.calls += [f"new {a.allocation_key}" for a in response.new]
        self.calls += ["released"] * len(response.released)


class Exclusive(Cache):
    """Predicates that look into the cache."""

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        self.calls.append(f"{args.allocation_key}@{args.node_id}?")
        return "taken" if args.node_id in self.taken else None


def bench(cache: ResourceManagerCallback, *, first_interface: bool = False) -> Bench:
    b = Bench(config("a"), first_interface=first_interface)
    b.api = SchedulerAPI(policy_groups=b.api.policy_groups, clock=lambda: int(b.seconds * 1_000_000_000))
    b.register(cache)
    b.node("n1", vcore=9)
    b.node("n2", vcore=9)
    b.app("x")
    return b


@pytest.mark.parametrize("first_interface", [True, False])
def test_before_the_responses(first_interface: bool) -> None:
    cache = Cache()
    b = bench(cache, first_interface=first_interface)
    b.ask("x", "k1", vcore=1)
    b.ask("x", "k2", vcore=1)
    assert cache.calls == []
    b.run()
    assert cache.calls == ["assume k1@n1", "assume k2@n2", "new k1", "new k2"]
    cache.calls.clear()
    b.release("x", next(iter(b.application("x").allocations)))
    assert cache.calls == ["forget k1", "released"]


def test_before_predicates_are_asked_again() -> None:
    cache = Exclusive()
    b = bench(cache)
    for key in ("k1", "k2", "k3"):
        b.ask("x", key, vcore=1)
    b.run()
    told = ["k1@n1?", "assume k1@n1", "k2@n2?", "assume k2@n2", "k3@n1?", "k3@n2?", "new k1", "new k2"]
    assert cache.calls == told


def test_an_allocation_that_must_be_ended_is_not_forgotten_yet() -> None:
    cache = Cache()
    b = bench(cache, first_interface=True)
    b.ask("x", "k", vcore=1, timeout_ms=1000)
    b.run()
    cache.calls.clear()
    b.run(after=2)
    assert cache.calls == ["released"]
    b.release("x", next(iter(b.application("x").allocations)), termination=Termination.TIMEOUT)
    assert cache.calls == ["released"]


def test_a_cache_that_fails_changes_nothing() -> None:
    class Fails(Cache):
        def re_sync_scheduler_cache(self, args: first.ReSyncSchedulerCacheArgs) -> None:
            raise ValueError("no")

    cache = Fails()
    b = bench(cache)
    b.ask("x", "k", vcore=1)
    b.run()
    assert (cache.calls, b.api.callback_errors) == (["new k"], ["ValueError: no"])
