"""The sample of the demonstration: a cluster of 60 nodes and a busy week of four teams, made from a seed.

It is small enough to read and busy enough to show what queues are for: services that run for days, builds that come
in bursts during working hours, nightly data jobs, and experiments that need GPUs. By day the demand exceeds the cluster, so
that guarantees, quotas and priorities decide which asks wait; by night the backlog is worked off. One job can never run: its
pods need more GPUs than any node has.

All amounts are integers, and random numbers are drawn by `randrange` alone, whose results do not depend on the machine or
on Python's version: the file that ships with the project can be made again, byte for byte.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import msgspec

from licorne.workload.lines import GI, App, Ask, Line, Node
from licorne.workload.workload import Mode, Workload

GPU = "nvidia.com/gpu"
DAYS = 7
HOUR_S = 3600
CONFIGURATION = """\
partitions:
  - name: default
    nodesortpolicy:
      type: binpacking
    queues:
      - name: root
        queues:
          - name: services
            submitacl: shop,search
            properties:
              priority.offset: "100"
            resources:
              guaranteed: {vcore: "300", memory: 1200Gi}
              max: {vcore: "500", memory: 2000Gi}
          - name: batch
            resources:
              max: {vcore: "900", memory: 4000Gi}
            queues:
              - name: builds
                submitacl: "*"
                maxapplications: 40
                properties:
                  application.sort.policy: fair
                resources:
                  guaranteed: {vcore: "150", memory: 400Gi}
                limits:
                  - limit: a developer's builds
                    users: ["*"]
                    maxresources: {vcore: "96"}
              - name: reports
                submitacl: finance,sales
                properties:
                  application.sort.policy: fifo
                resources:
                  guaranteed: {vcore: "200", memory: 1000Gi}
          - name: research
            submitacl: " research"
            properties:
              application.sort.policy: fair
            resources:
              guaranteed: {vcore: "150", memory: 600Gi, nvidia.com/gpu: 16}
              max: {nvidia.com/gpu: 32}
            limits:
              - limit: a researcher's share
                users: ["*"]
                maxresources: {nvidia.com/gpu: 12}
"""


class Kind(NamedTuple):
    """A kind of node: number of nodes, resources of each."""

    name: str
    nodes: int
    vcore: int
    memory_gi: int
    gpus: int = 0


class Job(NamedTuple):
    """A kind of job: its weight among the team's jobs, its number of pods, and needs and running time of each pod.

    Pairs are ranges, given by their first and last value.
    """

    weight: int
    pods: tuple[int, int]
    vcore: int
    memory_gi: int
    minutes: tuple[int, int]
    gpus: int = 0


class Team(NamedTuple):
    """A team: its users and kinds of jobs, and how many jobs it starts.

    `workday`: jobs started in each hour of a working day, in thousandths; `weekend_percent`: the share of that at weekends.
    """

    queue: str
    users: tuple[str, ...]
    groups: tuple[str, ...]
    workday: tuple[int, ...]
    weekend_percent: int
    jobs: tuple[Job, ...]


def _hours(*spans: tuple[int, int]) -> tuple[int, ...]:
    """Return a day's 24 values from (length, value) spans."""
    return tuple(value for length, value in spans for _ in range(length))


KINDS = (
    Kind("general", 36, 16, 64),
    Kind("memory", 16, 16, 128),
    Kind("gpu", 8, 32, 128, gpus=4),
)

TEAMS = (
    Team(
        "root.services",
        ("shop", "search"),
        ("online",),
        _hours((8, 200), (10, 500), (6, 300)),
        40,
        (Job(3, (2, 6), 4000, 16, (1200, 4800)), Job(2, (2, 4), 8000, 32, (2400, 6000))),
    ),
    Team(
        "root.batch.builds",
        ("ada", "bela", "chen", "dana", "emil", "fay"),
        ("developers",),
        _hours((8, 300), (1, 3000), (3, 8000), (1, 4000), (5, 9000), (2, 3000), (4, 500)),
        10,
        (
            Job(6, (1, 4), 8000, 16, (20, 60)),
            Job(3, (4, 16), 8000, 16, (30, 100)),
            Job(1, (12, 30), 4000, 8, (40, 150)),
        ),
    ),
    Team(
        "root.batch.reports",
        ("finance", "sales"),
        ("business",),
        _hours((1, 1500), (4, 3000), (8, 600), (6, 1200), (4, 600), (1, 1500)),
        60,
        (Job(4, (2, 8), 8000, 48, (60, 240)), Job(1, (10, 24), 8000, 32, (120, 420))),
    ),
    Team(
        "root.research",
        ("kim", "lena", "moritz", "nora"),
        ("research",),
        _hours((8, 300), (10, 1500), (6, 700)),
        50,
        (
            Job(5, (1, 3), 4000, 24, (120, 800), gpus=1),
            Job(2, (1, 1), 12000, 64, (300, 1200), gpus=4),
            Job(3, (4, 16), 4000, 16, (60, 480)),
        ),
    ),
)


def week(seed: int = 1) -> Workload:
    """Return the cluster and its week as a timed workload; `seed` chooses among weeks of the same character."""
    rng = random.Random(seed)
    lines: list[Line] = [*_nodes()]
    arrivals: list[tuple[int, int, Team, Job]] = []
    for day in range(DAYS):
        for hour in range(24):
            for team in TEAMS:
                arrivals += _jobs_of_hour(rng, team, day, hour, len(arrivals))
    arrivals.sort(key=lambda arrival: arrival[:2])
    for number, (at_s, _, team, job) in enumerate(arrivals):
        lines += _lines_of(rng, number, at_s, team, job)
    lines += _impossible(len(arrivals), arrivals[-1][0])
    return Workload(name=f"week-s{seed}", mode=Mode.TIMED, config=CONFIGURATION, lines=lines)


def _nodes() -> list[Node]:
    nodes: list[Node] = []
    for kind in KINDS:
        for i in range(kind.nodes):
            name = f"{kind.name}-{i:02d}"
            resource = {"vcore": kind.vcore * 1000, "memory": kind.memory_gi * GI, "pods": 110}
            attributes = {"si/hostname": name, "si/zone": f"zone-{i % 3}"}
            if kind.gpus:
                resource[GPU] = kind.gpus
                # Pods that need no GPU are kept off these nodes.
                attributes["taints"] = _json([{"key": GPU, "value": "present", "effect": "NoSchedule"}])
            nodes.append(Node(id=name, res=resource, attrs=attributes))
    return nodes


def _jobs_of_hour(rng: random.Random, team: Team, day: int, hour: int, first: int) -> list[tuple[int, int, Team, Job]]:
    """Return the jobs that a team starts in an hour, each with its second, a rank that breaks ties, and its kind."""
    expected = team.workday[hour] * (team.weekend_percent if day >= 5 else 100) // 100
    count = expected // 1000 + (rng.randrange(1000) < expected % 1000)
    start_s = (day * 24 + hour) * HOUR_S
    return [(start_s + rng.randrange(HOUR_S), first + i, team, _pick(rng, team.jobs)) for i in range(count)]


def _pick(rng: random.Random, jobs: tuple[Job, ...]) -> Job:
    ticket = rng.randrange(sum(job.weight for job in jobs))
    for job in jobs:
        ticket -= job.weight
        if ticket < 0:
            return job
    raise AssertionError("a ticket is below the sum of the weights")


def _lines_of(rng: random.Random, number: int, at_s: int, team: Team, job: Job) -> list[Line]:
    """Return a job as an application and its asks, all submitted at once."""
    user = team.users[rng.randrange(len(team.users))]
    name = f"{team.queue.rpartition('.')[2]}-{number:04d}"
    lines: list[Line] = [App(at=at_s, id=name, queue=team.queue, user=user, groups=team.groups)]
    resource = {"vcore": job.vcore, "memory": job.memory_gi * GI, "pods": 1}
    tags = None
    if job.gpus:
        resource[GPU] = job.gpus
        tags = {"licorne/node-constraints": _json({"tolerations": [{"key": GPU, "operator": "Exists"}]})}
    for pod in range(rng.randrange(job.pods[0], job.pods[1] + 1)):
        # The running times of a job's pods differ by up to a fifth.
        minutes = rng.randrange(job.minutes[0], job.minutes[1] + 1)
        seconds = minutes * 48 + rng.randrange(minutes * 12 + 1)
        # No pod runs beyond the end of the week.
        seconds = min(seconds, max(60, DAYS * 24 * HOUR_S - at_s))
        lines.append(Ask(at=at_s, key=f"{name}-{pod:02d}", app=name, res=resource, tags=tags, duration_s=seconds))
    return lines


def _impossible(number: int, at_s: int) -> list[Line]:
    """Return a job whose pods need eight GPUs on one node, although no node has more than four."""
    name = f"research-{number:04d}"
    resource = {"vcore": 16000, "memory": 64 * GI, "pods": 1, GPU: 8}
    tags = {"licorne/node-constraints": _json({"tolerations": [{"key": GPU, "operator": "Exists"}]})}
    lines: list[Line] = [App(at=at_s, id=name, queue="root.research", user="kim", groups=("research",))]
    lines += [
        Ask(at=at_s, key=f"{name}-{pod:02d}", app=name, res=resource, tags=tags, duration_s=HOUR_S) for pod in range(2)
    ]
    return lines


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
