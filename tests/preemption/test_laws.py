"""Preemption ends: evicted pods do not evict in their turn, and no chain of queues goes on for ever."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from licorne.config import load
from licorne.core.cluster import Cluster
from licorne.core.constants import UNLIMITED
from licorne.si.messages import Allocation, Release, Released, Termination
from reference.contests import Contest

SECOND_NS = 10**9
_load = lru_cache(maxsize=256)(load)


class Play:
    """A full cluster with guarantees, in which victims end as soon as their release is requested."""

    def __init__(self, seed: int) -> None:
        self.scenario = scenario = Contest(seed, _load)
        (manager,) = scenario.managers
        reference = scenario.reference
        reference.register(manager.rm_id, manager.texts[0], manager.settings, None, first_interface=False)
        self.cluster = Cluster()
        self.now_ns = scenario.now_ns
        self.cluster.advance(self.now_ns)
        self.cluster.register(manager.rm_id, manager.texts[0], manager.settings, None, first_interface=False)
        for _, rm_id, messages in scenario.beginning():
            reference.submit(rm_id, messages)
            self.cluster.submit(rm_id, messages)
        (partition,) = reference.partitions()
        for _ in range(3):
            self.cluster.submit("one", scenario.do_asks(partition))
        self.partition = self.cluster.partition("one")
        self.gone: list[Allocation] = []

    def pass_time(self) -> int:
        """Decide, let victims end and time pass; how many there were."""
        self.cluster.schedule(UNLIMITED)
        self.cluster.validate()
        evicted = 0
        for _, outputs in self.cluster.outputs():
            for output in outputs:
                if isinstance(output, Released) and output.termination is Termination.PREEMPTED_BY_SCHEDULER:
                    evicted += 1
                    self._end(output)
        self.now_ns += 16 * SECOND_NS
        self.cluster.advance(self.now_ns)
        return evicted

    def _end(self, output: Released) -> None:
        app = self.partition.applications[output.application_id]
        alloc = app.allocations[output.key]
        again = Allocation(
            key=f"{output.key}'",
            application_id=app.id,
            resource=dict(alloc.shape.resource),
            priority=alloc.priority,
            allow_preempt_self=alloc.allow_self,
            allow_preempt_other=True,
            originator=alloc.originator,
        )
        self.gone.append(again)
        release = Release(application_id=app.id, key=output.key, termination=Termination.PREEMPTED_BY_SCHEDULER)
        self.cluster.submit("one", [release])

    def settle(self, rounds: int = 60) -> int:
        """Until four rounds in a row have had no victims; how many there were."""
        total = quiet = 0
        for _ in range(rounds):
            evicted = self.pass_time()
            total += evicted
            quiet = 0 if evicted else quiet + 1
            if quiet == 4:
                return total
        raise AssertionError("it does not end")

    def resubmit(self) -> None:
        """Submit all victims again, at once."""
        gone, self.gone = self.gone, []
        self.cluster.submit("one", [pod for pod in gone if pod.application_id in self.partition.applications])


@examples(60)
@given(st.integers(0, 10**6))
def test_victims_that_are_submitted_again_evict_nothing(seed: int) -> None:
    play = Play(seed)
    if any(queue.settings.preempts_within for queue in play.partition.tree.queues()):
        return  # by its priority a victim may evict others of its queue
    play.settle()
    for app in list(play.partition.applications.values()):  # who still waits has its own right to evict
        play.cluster.submit("one", [Release(application_id=app.id, key=key, what="ask") for key in list(app.asks)])
    play.resubmit()
    assert play.settle() == 0


@examples(40)
@given(st.integers(0, 10**6))
def test_preemption_ends_although_victims_are_submitted_again_at_once(seed: int) -> None:
    play = Play(seed)
    for _ in range(40):
        before = len(play.gone)
        play.settle()
        if len(play.gone) == before == 0:
            return
        play.resubmit()
    raise AssertionError("it does not end")
