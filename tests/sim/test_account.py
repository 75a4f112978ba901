"""Whatever a workload holds, the numbers of its report agree with each other and with the records of its pods."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from common.examples import examples
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.sim.times import ALL_QUEUES
from licorne.workload.lines import Ask
from licorne.workload.workload import Mode, Workload
from sim.random_workloads import Writer


def numbers_agree(workload: Workload, result: Result) -> None:
    assert 0 <= result.never_placed == result.asks - result.placed
    assert sum(row.asks for row in result.reasons) == result.never_placed, result.reasons
    assert sum(row.pods for row in result.evictions) == result.preempted
    assert result.resubmitted <= result.preempted - sum(row.placeholders for row in result.evictions)
    assert result.resubmitted == 0 or workload.resubmit
    assert sum(row.placed for row in result.waiting_times if row.queue != ALL_QUEUES) == result.placed
    for gang in result.gangs:
        assert 0 <= gang.started <= gang.gangs and gang.timed_out <= gang.gangs
        assert gang.p50_s <= gang.p95_s <= gang.longest_s
    for row in result.evictions:
        assert row.lost_pod_s >= 0 and (row.lost_pod_s == 0 or row.placeholders < row.pods)


def records_agree(workload: Workload, result: Result) -> None:
    for record in result.pods:
        if record.end_s is not None:
            parts = record.arrival_s + record.waiting_s + record.lost_s + record.run_s
            assert parts == pytest.approx(record.end_s)
    asks = [line for line in workload.lines if isinstance(line, Ask)]
    never = result.waiting_times[-1].never_placed  # of pods; a placeholder is none
    assert 0 <= result.never_placed - never <= sum(ask.max for ask in asks if ask.ph)
    assert never == sum(record.pods for record in result.pods if record.outcome in ("waiting", "withdrawn", "refused"))
    done = result.completions[-1]
    assert done.completed <= sum(record.outcome in ("ended", "released") for record in result.pods)
    # What was reported as running counts for none; an ask may have had its key before.
    reported = {(ask.app, ask.key) for ask in asks if ask.node}
    others = sum(record.pods for record in result.pods if (record.application, record.key) not in reported)
    assert others <= done.completed + done.not_completed <= sum(record.pods for record in result.pods)
    # The rows count the whole grace period of a pod that ends before it is over, with its node or by a line.
    more = sum(row.lost_pod_s for row in result.evictions) - sum(record.lost_s for record in result.pods)
    assert -1e-6 < more < result.preempted * workload.grace_s + 1e-6


# To shrink a whole simulation takes minutes: what fails is shown as it was found.
@examples(80, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 10**6))
def test_the_numbers_of_a_report_agree(seed: int) -> None:
    workload = Writer(seed).workload()
    result = simulate(workload)
    numbers_agree(workload, result)
    if workload.mode is Mode.TIMED:
        records_agree(workload, result)
