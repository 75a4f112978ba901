"""Writes the workloads of the three examples: `python examples/make.py`. Nothing is drawn, so they come out the same.

What each shows, and what comes out, is in the README beside it.
"""

from __future__ import annotations

from pathlib import Path

from licorne.workload.lines import GI, App, Ask, Line, Node, Reload, Resources, TaskGroup
from licorne.workload.workload import Mode, Workload, write_workload

HERE = Path(__file__).resolve().parent
MINUTE_S, HOUR_S = 60, 3600
GPU = "nvidia.com/gpu"

# -- two teams share a GPU cluster, and one returns from holiday -----------------------------------------

HOLIDAY = """\
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: vision
            submitacl: "*"
            resources:
              guaranteed: {nvidia.com/gpu: 16}
          - name: language
            submitacl: "*"
            properties:
              preemption.delay: 1m
            resources:
              guaranteed: {nvidia.com/gpu: 16}
"""
TRAINING: Resources = {"vcore": 6000, "memory": 48 * GI, "pods": 1, GPU: 1}


def gpu_holiday() -> Workload:
    """Eight nodes with four GPUs. Vision takes them all, hour by hour; at 6 h language wants its half for 4 h."""
    lines: list[Line] = [
        Node(id=f"gpu-{i}", res={"vcore": 32_000, "memory": 256 * GI, "pods": 110, GPU: 4}) for i in range(8)
    ]
    lines.append(App(at=0, id="sweep", queue="root.vision", user="vera"))
    lines += [
        pod(f"sweep-{hour}-{i}", "sweep", hour * HOUR_S, 20 * HOUR_S, pre_self=True)
        for hour in range(6)
        for i in range(4)
    ]
    lines.append(App(at=5 * HOUR_S + 1800, id="paper", queue="root.vision", user="victor"))
    lines += [pod(f"paper-{i}", "paper", 5 * HOUR_S + 1800, 20 * HOUR_S) for i in range(8)]
    lines.append(App(at=6 * HOUR_S, id="translate", queue="root.language", user="lena"))
    lines += [pod(f"translate-{i:02d}", "translate", 6 * HOUR_S, 4 * HOUR_S, pre_self=True) for i in range(16)]
    return Workload(name="gpu-holiday", mode=Mode.TIMED, config=HOLIDAY, lines=lines, grace_s=30)


def pod(key: str, app: str, at: int, duration_s: int, *, pre_self: bool = False) -> Ask:
    """A training pod with one GPU; without `pre_self` it asks not to be evicted."""
    return Ask(at=at, key=key, app=app, res=TRAINING, duration_s=duration_s, pre_self=pre_self, pre_other=True)


# -- a big gang behind a stream of small jobs ------------------------------------------------------------

STREAM = """\
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: stream
            submitacl: "*"
            properties:
              application.sort.policy: fifo
          - name: simulation
            submitacl: "*"
"""
LENGTHS_MIN = (5, 10, 15, 45)
EVERY_S = 36


def big_gang(name: str, *, whole: bool = True, limits: bool = True) -> Workload:
    """Ten nodes of 16 cores. Every 36 s a job of 4 cores comes, for four hours; after one hour a gang of 8 whole nodes.

    The jobs run for 5 to 45 minutes. `limits`: each names a limit of its running time, a fifth more than it will need.
    `whole`: the gang is one, and not an ordinary application with eight pods.
    """
    lines: list[Line] = [Node(id=f"node-{i}", res={"vcore": 16_000, "memory": 64 * GI, "pods": 110}) for i in range(10)]
    small: Resources = {"vcore": 4000, "memory": 8 * GI, "pods": 1}
    big: Resources = {"vcore": 16_000, "memory": 32 * GI, "pods": 1}
    lines.append(App(at=0, id="jobs", queue="root.stream", user="sam"))
    for number in range(4 * HOUR_S // EVERY_S):
        at = number * EVERY_S
        if at == HOUR_S:
            gang = (TaskGroup(name="rank", min=8, res=big),) if whole else ()
            lines.append(App(at=at, id="ocean", queue="root.simulation", user="olga", gang=gang, atomic=whole))
            lines += [
                Ask(
                    at=at,
                    key=f"ocean-{rank}",
                    app="ocean",
                    res=big,
                    group="rank" if whole else "",
                    duration_s=HOUR_S // 2,
                )
                for rank in range(8)
            ]
        length_s = LENGTHS_MIN[number % len(LENGTHS_MIN)] * MINUTE_S
        limit_ms = length_s * 1200 if limits else 0
        lines.append(
            Ask(at=at, key=f"job-{number:03d}", app="jobs", res=small, duration_s=length_s, timeout_ms=limit_ms)
        )
    return Workload(name=name, mode=Mode.TIMED, config=STREAM, lines=lines)


# -- a quota lowered during the day ----------------------------------------------------------------------

DAY_AND_NIGHT = """\
partitions:
  - name: default
    preemption:
      quotapreemptionenabled: true
    queues:
      - name: root
        queues:
          - name: shop
            submitacl: "*"
            resources:
              guaranteed: {{vcore: 96}}
          - name: batch
            submitacl: "*"
            properties:
              quota.preemption.delay: 10m
            resources:
              max: {{vcore: {max}}}
            queues:
              - name: reports
                submitacl: "*"
                resources:
                  guaranteed: {{vcore: 32}}
              - name: research
                submitacl: "*"
                resources:
                  guaranteed: {{vcore: 16}}
"""
NIGHT, DAY = DAY_AND_NIGHT.format(max=160), DAY_AND_NIGHT.format(max=64)


def lowered_quota() -> Workload:
    """Ten nodes of 16 cores. At night batch may have all of them; at 8 o'clock its max becomes 64 cores.

    The clock starts at 6 o'clock, with batch all over the cluster. At 8 the shop wants 96 cores for the day.
    """
    cores: Resources = {"vcore": 4000, "memory": 16 * GI, "pods": 1}
    lines: list[Line] = [Node(id=f"node-{i}", res={"vcore": 16_000, "memory": 64 * GI, "pods": 110}) for i in range(10)]
    lines += [
        App(at=0, id="ledger", queue="root.batch.reports", user="rita"),
        App(at=0, id="folding", queue="root.batch.research", user="raul"),
    ]
    lines += [
        Ask(at=0, key=f"ledger-{i:02d}", app="ledger", res=cores, duration_s=4 * HOUR_S, pre_self=True)
        for i in range(20)
    ]
    for i in range(20):
        # The first four end by themselves at 8:05; the last six ask not to be evicted.
        seconds = 2 * HOUR_S + 5 * MINUTE_S if i < 4 else 6 * HOUR_S
        lines.append(Ask(at=0, key=f"folding-{i:02d}", app="folding", res=cores, duration_s=seconds, pre_self=i < 14))
    lines += [Reload(at=2 * HOUR_S, yaml=DAY), App(at=2 * HOUR_S, id="till", queue="root.shop", user="shop")]
    lines += [Ask(at=2 * HOUR_S, key=f"till-{i:02d}", app="till", res=cores, duration_s=10 * HOUR_S) for i in range(24)]
    return Workload(name="lowered-quota", mode=Mode.TIMED, config=NIGHT, lines=lines, grace_s=30)


# --------------------------------------------------------------------------------------------------------

TEXTS = {
    "gpu-holiday/no-preemption.yaml": HOLIDAY.replace(
        "    queues:", "    preemption: {enabled: false}\n    queues:", 1
    ),
}
FILES = {
    "gpu-holiday/workload.jsonl": gpu_holiday,
    "big-gang/workload.jsonl": lambda: big_gang("big-gang"),
    "big-gang/no-limits.jsonl": lambda: big_gang("big-gang-no-limits", limits=False),
    "big-gang/in-pieces.jsonl": lambda: big_gang("big-gang-in-pieces", whole=False),
    "lowered-quota/workload.jsonl": lowered_quota,
}


def main() -> None:
    """Write all files."""
    for name, make in FILES.items():
        with (HERE / name).open("wb") as stream:
            write_workload(make(), stream)
    for name, text in TEXTS.items():
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
