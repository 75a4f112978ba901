"""Acts of one tenant that should cost the others nothing: each takes a bench and a number of times.

The tenant's queue is `root.a`, with a quota of 5; two hundred nodes, and more, hold the work of the others in `root.b`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from core.bench import Bench, config
from licorne.si.messages import AddApplication, Allocation, Release, RemoveApplication

HUGE = (1 << 62) - 1
RULES = (
    "placementrules: [{name: tag, value: namespace, create: true, parent: {name: fixed, value: root.dynamic}}, "
    "{name: provided, create: true}]"
)


def world(nodes: int = 20) -> Bench:
    """A cluster with a tenant of each kind."""
    b = Bench(config("a resources: {max: {vcore: 5m}}", "b", "dynamic parent: true", "deep parent: true", more=RULES))
    for i in range(nodes):
        b.node(f"n{i}", vcore=16, memory=64)
    b.app("x", "root.a")
    b.app("y", "root.b", "other")
    return b


def one_cycle(b: Bench, number: int) -> bool:
    """Submit another tenant's ask, decide, and end it; tell whether it was placed."""
    b.api.submit("rm", [Allocation(key=f"y{number}", application_id="y", resource={"vcore": 1, "memory": 1})])
    made = b.api.schedule()
    b.api.submit("rm", [Release(application_id="y", key=f"y{number}")])
    b.api.schedule()
    return made == 1


def _asks(b: Bench, app: str, *asks: tuple[str, dict[str, int], dict[str, str]], priority: int = 0) -> None:
    messages = [
        Allocation(key=key, application_id=app, resource=resource, tags=tags or None, priority=priority)
        for key, resource, tags in asks
    ]
    b.api.submit("rm", messages)


def _applications(b: Bench, count: int, queue: str = "root.a", user: str = "u", namespace: str = "") -> None:
    """Submit applications, each with an ask that is larger than every node; `{}` is the number of each."""
    for i in range(count):
        tags = {"namespace": namespace.format(i)} if namespace else {}
        add = AddApplication(application_id=f"x{i}", queue=queue.format(i), user=user.format(i), tags=tags)
        b.api.submit("rm", [add])
        _asks(b, f"x{i}", (f"k{i}", {"vcore": 1000}, {}))


def huge_amounts(b: Bench, count: int) -> None:
    """Asks for all that can be asked for."""
    _asks(b, "x", *((f"k{i}", {"vcore": HUGE, "memory": HUGE}, {}) for i in range(count)))


def invented_types(b: Bench, count: int) -> None:
    """A type for each ask."""
    _asks(b, "x", *((f"k{i}", {"vcore": 1, f"t{i}": 1}, {}) for i in range(count)))


def many_shapes(b: Bench, count: int) -> None:
    """No two asks alike."""
    _asks(b, "x", *((f"k{i}", {"vcore": 1000 + i, "memory": 1 + i}, {}) for i in range(count)))


def many_priorities(b: Bench, count: int) -> None:
    """A priority for each ask."""
    for i in range(count):
        _asks(b, "x", (f"k{i}", {"vcore": 1000}, {}), priority=i)


def many_applications(b: Bench, count: int) -> None:
    """Applications that wait, of one user."""
    _applications(b, count)


def many_users(b: Bench, count: int) -> None:
    """Applications that wait, each of its own user."""
    _applications(b, count, user="user{}")


def many_queues(b: Bench, count: int) -> None:
    """Dynamic queues with long names, an application in each."""
    _applications(b, count, "", namespace="{:064d}")


def deep_queues(b: Bench, count: int) -> None:
    """Dynamic queues, one below the other."""
    _applications(b, max(1, count // 50), "root.deep.q{}" + ".d" * 200)


def no_such_node(b: Bench, count: int) -> None:
    """Each ask requires a node of its own, which is not there."""
    _asks(b, "x", *((f"k{i}", {"vcore": 1}, {"yunikorn.apache.org/requiredNode": f"z{i}"}) for i in range(count)))


def no_such_label(b: Bench, count: int) -> None:
    """Each ask has constraints of its own, which no node meets."""
    selectors = [json.dumps({"nodeSelector": {f"l{i}": "v"}}) for i in range(count)]
    _asks(b, "x", *((f"k{i}", {"vcore": 1}, {"licorne/node-constraints": text}) for i, text in enumerate(selectors)))


def old_and_young(b: Bench, count: int) -> None:
    """Asks with times of creation in the past and the future."""
    for i in range(count):
        _asks(b, "x", (f"k{i}", {"vcore": 1000}, {"creationTime": str(1 + i if i % 2 else 9_999_999_999 - i)}))


def many_changes(b: Bench, count: int) -> None:
    """One ask, changed again and again."""
    for i in range(count):
        _asks(b, "x", ("k", {"vcore": 1000 + i}, {}))


def many_placeholders(b: Bench, count: int) -> None:
    """Gangs whose placeholders find no room."""
    for i in range(count):
        add = AddApplication(application_id=f"x{i}", queue="root.a", user="u", placeholder_ask={"vcore": 5})
        ask = Allocation(
            key=f"k{i}", application_id=f"x{i}", resource={"vcore": 1000}, placeholder=True, task_group="g"
        )
        b.api.submit("rm", [add, ask])


def releases_of_nothing(b: Bench, count: int) -> None:
    """Releases that name what is not there."""
    b.api.submit("rm", [Release(application_id="x", key=f"k{i}") for i in range(count)])


ACTS: list[Callable[[Bench, int], None]] = [
    huge_amounts,
    invented_types,
    many_shapes,
    many_priorities,
    many_applications,
    many_users,
    many_queues,
    deep_queues,
    no_such_node,
    no_such_label,
    old_and_young,
    many_changes,
    many_placeholders,
    releases_of_nothing,
]


def leave(b: Bench) -> None:
    """The tenant goes with all that it has."""
    gone = [RemoveApplication(application_id=name) for name in b.partition.applications if name != "y"]
    b.api.submit("rm", gone)
    b.api.schedule()
