"""Whatever a workload holds of gangs and evictions, the numbers of its report agree with each other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from hypothesis import Phase, given
from hypothesis import strategies as st

from common.examples import examples
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.sim.times import ALL_QUEUES
from licorne.workload.lines import App, Ask, Line, Node, Release, ReleaseApp, Reload, TaskGroup
from licorne.workload.workload import Mode, Workload

QUEUES = """
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            properties: {preemption.delay: 5s}
            resources: {guaranteed: {vcore: 3}}
          - name: b
            properties: {quota.preemption.delay: 5s}
            resources: {max: {vcore: 6}}
          - name: c
"""
LOWER = QUEUES.replace("max: {vcore: 6}", "max: {vcore: 2}")
NODES = ("n0", "n1", "n2")
apps = st.sampled_from(("a0", "a1", "b0", "c0"))
durations = st.none() | st.integers(0, 60)


@st.composite
def gangs(draw: st.DrawFn) -> list[Line]:
    name, resource = draw(st.sampled_from((("g0", {"vcore": 1000}), ("g1", {"vcore": 2000}), ("g2", {"vcore": 3000}))))
    needed = draw(st.integers(1, 4))
    app = App(
        id=name,
        queue=f"root.{draw(st.sampled_from('abc'))}",
        user="u",
        gang=(TaskGroup(name="w", min=needed, res=resource),),
        atomic=draw(st.booleans()),
        style=draw(st.sampled_from(("Soft", "Hard"))),
        ph_timeout_ms=draw(st.sampled_from((0, 5_000, 30_000))),
    )
    duration = draw(durations)
    asks = [
        Ask(key=f"{name}-{i}", app=name, res=resource, group="w", duration_s=duration, pre_self=True)
        for i in range(draw(st.integers(0, needed + 1)))
    ]
    return [app, *asks]


@st.composite
def steps(draw: st.DrawFn) -> list[Line]:
    match draw(st.integers(0, 9)):
        case 0:
            return draw(gangs())
        case 1:
            return [Reload(yaml=draw(st.sampled_from((QUEUES, LOWER))))]
        case 2:
            app = draw(apps)
            return [Release(app=app, key=f"{app}-{draw(st.integers(0, 9))}")]
        case 3:
            return [ReleaseApp(app=draw(st.sampled_from(("c0", "g0"))))]
        case _:
            app = draw(apps)
            required = draw(st.sampled_from((None, None, None, *NODES)))
            number = draw(st.integers(0, 30))
            return [
                Ask(
                    key=f"{app}-{number}",
                    app=app,
                    res={"vcore": 1000 * (1 + number % 3)},  # a key that comes again makes nothing larger that runs
                    prio=draw(st.integers(0, 2)),
                    tags={"yunikorn.apache.org/requiredNode": required} if required else None,
                    pre_self=draw(st.booleans()),
                    pre_other=draw(st.booleans()),
                    duration_s=draw(durations),
                    max=draw(st.sampled_from((1, 1, 1, 2))),
                )
            ]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    lines: list[Line] = [Node(id=name, res={"vcore": 3000}) for name in NODES]
    lines += [App(id=name, queue=f"root.{name[0]}", user="u") for name in ("a0", "a1", "b0", "c0")]
    now = 0
    for step in draw(st.lists(steps(), max_size=14)):
        now += draw(st.sampled_from((0, 0, 1, 7, 40)))
        for line in step:
            line.at = now
        lines += step
    return Workload(
        name="w",
        mode=Mode.TIMED,
        config=QUEUES,
        lines=lines,
        grace_s=draw(st.sampled_from((0, 1, 20))),
        resubmit=draw(st.booleans()),
    )


def copied(workload: Workload) -> Workload:
    return msgspec.structs.replace(workload, lines=[msgspec.structs.replace(line) for line in workload.lines])


def agree(workload: Workload, result: Result) -> None:
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
    peaks: Counter[Any] = Counter({row.queue: row.peak for row in result.queues if row.resource == "vcore"})
    assert peaks["root"] <= 9000, "no key comes again with more, so nothing that runs became larger than what was free"


# To shrink a whole simulation takes minutes: what fails is shown as it was found.
@examples(40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(workloads())
def test_the_numbers_of_a_report_agree(workload: Workload) -> None:
    result = simulate(copied(workload))
    agree(workload, result)
    again = simulate(copied(workload))
    assert msgspec.structs.replace(result, real_s=0) == msgspec.structs.replace(again, real_s=0)
