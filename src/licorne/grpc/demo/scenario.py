"""The scenario of the demonstration's cluster: an endless stream of lines, made from a seed.

Teams submit applications, each at its own rate; nodes are drained, removed, and come back; now and then an application
is faulty. More resources are requested than exist, so there are always asks that wait, and queues get their guarantees
only by preemption. The first lines come quickly, so that each feature has been seen after a minute.

The same seed gives the same lines. The decisions on them depend on real time, and on other clients of the service.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from itertools import count
from operator import itemgetter
from typing import NamedTuple

import msgspec

from licorne.si.constants import (
    ATTRIBUTE_LABEL_PREFIX,
    ATTRIBUTE_TAINTS,
    FAILURE_DOMAIN_ZONE,
    HOST_NAME,
    INSTANCE_TYPE,
    TAG_NAMESPACE,
    TAG_NODE_CONSTRAINTS,
    TAG_REQUIRED_NODE,
)
from licorne.workload.lines import (
    GI,
    App,
    Ask,
    Foreign,
    Line,
    Node,
    NodeDrain,
    NodeRemove,
    NodeUndrain,
    NodeUpdate,
    TaskGroup,
)

Moment = tuple[float, list[Line]]
"""Seconds since the beginning, and the lines that are due then, together."""

GPU = "nvidia.com/gpu"


class Kind(NamedTuple):
    """A kind of node: number of nodes, resources of each."""

    name: str
    nodes: int
    vcore: int
    memory_gi: int
    gpus: int = 0


KINDS = (Kind("general", 12, 16, 64), Kind("memory", 6, 16, 128), Kind("gpu", 6, 32, 128, gpus=4))
AGENTS = "node-agents"
STYLES = ("Soft", "Hard")
TOLERATION = {"tolerations": [{"key": GPU, "operator": "Exists"}]}


class Team(NamedTuple):
    """A team and its applications.

    The first application comes at `first_s`, the next ones `every_s` seconds apart (a range). An application has `pods`
    pods (a range), each with a choice of `vcore` (thousandths of a core), with `memory_gi` GiB, for `seconds` (a
    range). `victim`: its pods may be preempted.
    """

    name: str
    queue: str
    users: tuple[str, ...]
    group: str
    first_s: float
    every_s: tuple[int, int]
    pods: tuple[int, int]
    vcore: tuple[int, ...]
    memory_gi: int
    seconds: tuple[int, int]
    gpus: int = 0
    gang: str = ""
    priority: int = 0
    victim: bool = True


TEAMS = (
    Team("builds", "root.batch.builds", ("ada", "bela", "chen", "dana"), "developers", 1, (5, 8), (3, 9), (2000, 4000),
         8, (20, 50)),
    Team("reports", "root.batch.reports", ("finance", "sales"), "business", 2, (12, 20), (3, 7), (6000,), 40, (20, 45)),
    Team("bulk", "root.batch.reports", ("finance",), "business", 8, (20, 30), (1, 3), (14000,), 50, (15, 30)),
    Team("shop", "root.services", ("shop", "search"), "online", 12, (30, 45), (10, 16), (6000,), 24, (25, 40),
         priority=10, victim=False),
    Team("training", "root.research.training", ("kim", "lena"), "research", 2, (9, 14), (3, 6), (8000,), 32, (15, 30),
         gpus=2, gang="placeholders"),
    Team("sweep", "root.research.sweeps", ("moritz", "nora"), "research", 4, (12, 20), (3, 5), (4000,), 16, (15, 30),
         gpus=1, gang="atomic"),
    Team("notebook", "root.research.notebooks", ("kim", "nora"), "research", 6, (6, 12), (1, 2), (2000,), 16, (20, 60),
         gpus=1, priority=5),
    Team("tenant", "", ("olga", "piet", "quinn"), "guests", 1, (4, 8), (1, 4), (1000, 2000), 4, (10, 30)),
)  # fmt: skip
NAMESPACES = ("blue", "green", "amber")


def scenario(seed: int = 1) -> Iterator[Moment]:
    """Yield all moments of the scenario in order of time, without end."""
    yield 0.0, _beginning()

    def drawn(what: str) -> random.Random:
        return random.Random(f"{seed} {what}")

    sources = [_team(team, drawn(team.name)) for team in TEAMS]
    sources += [_nodes(drawn("nodes")), _daemons(drawn("daemons")), _oddities()]
    yield from heapq.merge(*sources, key=itemgetter(0))


# -- the cluster -------------------------------------------------------------------------------------------


def _beginning() -> list[Line]:
    nodes = [_node(kind, number) for kind in KINDS for number in range(kind.nodes)]
    made: list[Line] = [*nodes]
    made += [_others(node.id) for node in nodes]
    made.append(App(id=AGENTS, queue="root.system", user="cluster", groups=("operators",)))
    made += [_agent(node.id, 0) for node in nodes]
    return made


def _node(kind: Kind, number: int) -> Node:
    name = f"{kind.name}-{number:02d}"
    attributes = {
        HOST_NAME: name,
        FAILURE_DOMAIN_ZONE: f"zone-{'abc'[number % 3]}",
        INSTANCE_TYPE: kind.name,
        ATTRIBUTE_LABEL_PREFIX + "disk": "ssd" if number % 2 else "hdd",
    }
    resource = {"vcore": kind.vcore * 1000, "memory": kind.memory_gi * GI, "pods": 110}
    if kind.gpus:
        resource[GPU] = kind.gpus
        attributes[ATTRIBUTE_TAINTS] = _json([{"key": GPU, "effect": "NoSchedule"}])
    return Node(id=name, res=resource, attrs=attributes)


def _others(node: str) -> Foreign:
    """Return an allocation of another scheduler on a node."""
    return Foreign(key=f"proxy-{node}", node=node, res={"vcore": 500, "memory": GI})


def _agent(node: str, number: int) -> Ask:
    return _daemon(f"agent-{node}-{number}", AGENTS, node, 250, None)


def _daemon(key: str, app: str, node: str, vcore: int, duration_s: float | None) -> Ask:
    return Ask(
        key=key,
        app=app,
        res={"vcore": vcore, "memory": GI, "pods": 1},
        tags={TAG_REQUIRED_NODE: node, TAG_NODE_CONSTRAINTS: _json(TOLERATION)},
        prio=100,
        duration_s=duration_s,
    )


def _nodes(rng: random.Random) -> Iterator[Moment]:
    """Drain, remove and shrink a node in turn; each change is undone after 8 s."""
    at = 5.0
    for turn in count(1):
        kind = rng.choice(KINDS[:2])
        node = _node(kind, rng.randrange(kind.nodes))
        less = NodeUpdate(id=node.id, res={**node.res, "vcore": node.res["vcore"] // 2})
        back: list[Line] = [node, _others(node.id), _agent(node.id, turn)]
        away: list[tuple[Line, list[Line]]] = [
            (NodeDrain(id=node.id), [NodeUndrain(id=node.id)]),
            (NodeRemove(id=node.id), back),
            (less, [NodeUpdate(id=node.id, res=node.res)]),
        ]
        first, then = away[(turn - 1) % len(away)]
        yield at, [first]
        yield at + 8, then
        at += rng.randrange(10, 16)


def _daemons(rng: random.Random) -> Iterator[Moment]:
    """Submit scans of some nodes: pods with a required node, for which others may be evicted."""
    at = 15.0
    for turn in count():
        app = f"scan-{turn:05d}"
        made: list[Line] = [App(id=app, queue="root.system", user="cluster", groups=("operators",))]
        for number in rng.sample(range(KINDS[0].nodes), 3):
            node = f"{KINDS[0].name}-{number:02d}"
            made.append(_daemon(f"{app}-{node}", app, node, 4000, rng.randrange(5, 10)))
        yield at, made
        at += rng.randrange(25, 40)


# -- teams -------------------------------------------------------------------------------------------------


def _team(team: Team, rng: random.Random) -> Iterator[Moment]:
    at = team.first_s
    for turn in count():
        yield at, _application(team, turn, rng)
        at += rng.randrange(team.every_s[0] * 10, team.every_s[1] * 10 + 1) / 10


def _application(team: Team, turn: int, rng: random.Random) -> list[Line]:
    app = f"{team.name}-{turn:05d}"
    pods = rng.randrange(team.pods[0], team.pods[1] + 1)
    resource = {"vcore": rng.choice(team.vcore), "memory": team.memory_gi * GI, "pods": 1}
    constraints = None
    if team.gpus:
        resource[GPU] = team.gpus
        constraints = {TAG_NODE_CONSTRAINTS: _json(TOLERATION)}
    group = "workers" if team.gang else ""
    line = App(
        id=app,
        queue=team.queue,
        user=rng.choice(team.users),
        groups=(team.group,),
        tags=None if team.queue else {TAG_NAMESPACE: rng.choice(NAMESPACES)},
        ph_timeout_ms=12_000 if team.gang == "placeholders" else 0,
        style=STYLES[turn % 2] if team.gang == "placeholders" else "",
        gang=(TaskGroup(name=group, min=pods, res=resource),) if group else (),
        atomic=team.gang == "atomic",
    )
    asks = [
        Ask(
            key=f"{app}-{number:02d}",
            app=app,
            res=resource,
            prio=team.priority,
            tags=constraints,
            group=group,
            pre_self=team.victim,
            pre_other=True,
            originator=number == 0,
            duration_s=rng.randrange(team.seconds[0] * 10, team.seconds[1] * 10 + 1) / 10,
        )
        for number in range(pods)
    ]
    return [line, *asks]


# -- what goes wrong ---------------------------------------------------------------------------------------


def _oddities() -> Iterator[Moment]:
    """Submit applications that are rejected, that can never run, or that fail."""
    kinds: tuple[Callable[[str], list[Line]], ...] = (_nowhere, _stranger, _misspelt, _giant, _hopeless)
    at = 1.0
    for turn in count():
        yield at, kinds[turn % len(kinds)](f"odd-{turn:05d}")
        at += 1.5 if turn < len(kinds) else 12.0


def _nowhere(app: str) -> list[Line]:
    """Make an application with a queue that does not exist, and no namespace."""
    return [App(id=app, queue="root.nowhere", user="ada", groups=("developers",))]


def _stranger(app: str) -> list[Line]:
    """Make an application whose user may not submit to its queue."""
    return [App(id=app, queue="root.services", user="mallory", groups=("guests",))]


def _misspelt(app: str) -> list[Line]:
    """Make an application of which one ask has an unknown operator in its constraints."""
    wrong = {TAG_NODE_CONSTRAINTS: _json({"tolerations": [{"key": GPU, "operator": "Exsits"}]})}
    return [*_single(app, {"vcore": 500}), Ask(key=f"{app}-1", app=app, res={"vcore": 500}, tags=wrong, duration_s=5)]


def _giant(app: str) -> list[Line]:
    """Make an ask that is larger than any node; it waits until its application is withdrawn."""
    return _single(app, {"vcore": 36_000, "memory": 8 * GI})


def _hopeless(app: str) -> list[Line]:
    """Make a gang that is larger than the cluster, and fails at its timeout."""
    group = TaskGroup(name="all", min=10, res={"vcore": 2000, "memory": 8 * GI, GPU: 4})
    line = App(
        id=app, queue="root.research.training", user="lena", groups=("research",), gang=(group,), style="Hard",
        ph_timeout_ms=10_000,
    )  # fmt: skip
    tags = {TAG_NODE_CONSTRAINTS: _json(TOLERATION)}
    return [
        line,
        *(Ask(key=f"{app}-{i}", app=app, res=group.res, group="all", tags=tags, duration_s=5) for i in range(10)),
    ]


def _single(app: str, resource: dict[str, int]) -> list[Line]:
    owner = App(id=app, queue="root.batch.builds", user="ada", groups=("developers",))
    return [owner, Ask(key=f"{app}-0", app=app, res=resource, duration_s=5)]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


__all__ = ["Moment", "scenario"]
