"""Cached answers equal those that would be made now, whatever has happened to the objects that they show."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.core.queues.queue import Queue
from licorne.host.web.rest import allocations, views
from licorne.host.web.rest.answers import encode
from licorne.host.web.rest.pieces import queue_pieces
from licorne.si import rest_objects as objects
from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import Allocation, NodeAction, NodeUpdate, RemoveApplication
from rest.world import CONFIG, World, busy

NODES = "/ws/v1/partition/default/nodes"
QUEUES = "/ws/v1/partition/default/queues"
APPLICATIONS = "/ws/v1/partition/default/queue/{}/applications"
USERS = "/ws/v1/partition/default/usage/users"
STEPS = (
    "ask", "release", "resize", "preempted", "capacity", "attributes", "drain", "undrain", "foreign", "reserve", "nothing",
    "application", "end", "configuration",
)  # fmt: skip
CHANGES = (
    ("max: {memory: 100G, vcore: 10}", "max: {memory: 100G, vcore: 9}"),
    ("priority.offset: '5'", "priority.offset: '6'"),
    ("maxresources: {memory: 10G, vcore: 5}", "maxresources: {memory: 9G}"),
    ("maxapplications: 50", "maxapplications: 40"),
)


def subtree(found: Queue, name: str = "") -> objects.Queue:
    """A queue with all queues below it."""
    view = views.queue(found, name=name)
    view.children = [subtree(found.children[child]) for child in sorted(found.children)]
    return view


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=12))
@settings(deadline=None)
def test_cached_answers_show_the_current_state(steps: list[tuple[str, int]]) -> None:
    world = busy()
    home = next(iter(world.backend.partitions()))
    for _ in act(world, steps):
        nodes = [encode(views.node(home.nodes[name], home)) for name in sorted(home.nodes)]
        assert world.get(NODES) == [msgspec.json.decode(one) for one in nodes]
        assert world.get(QUEUES) == msgspec.json.decode(encode(subtree(home.tree.root, name="default")))
        users = [encode(views.user_usage(home, *one)) for one in home.limits.users().items()]
        assert world.get(USERS) == [msgspec.json.decode(one) for one in users]
        for queue in filter(attrgetter("is_leaf"), home.tree.root.walk()):
            apps = [allocations.application(app, home, "default") for app in queue.apps.values()]
            for view, app in zip(apps, queue.apps.values(), strict=True):
                view.requests = list(allocations.asks(app, home, nodes=False))
                view.allocations = list(allocations.allocations(app))
            assert world.get(APPLICATIONS.format(queue.path)) == [msgspec.json.decode(encode(one)) for one in apps]


def test_a_queue_that_goes_while_the_tree_is_sent_does_not_break_the_answer() -> None:
    world = busy()
    root = next(iter(world.backend.partitions())).tree.root
    pieces = queue_pieces(root, "default")
    first = next(pieces)
    name, _ = root.children.popitem()
    answer = msgspec.json.decode(first + b"".join(pieces))
    assert f"root.{name}" in [child["queuename"] for child in answer["children"]]


def act(world: World, steps: list[tuple[str, int]]) -> Iterator[None]:
    """Do the steps one after the other; a step that cannot be done changes nothing."""
    home = next(iter(world.backend.partitions()))
    for count, (what, number) in enumerate(steps):
        app = next(iter(home.applications.values()), None)
        if app is None:
            return
        running = list(app.allocations.values())
        alloc = running[number % len(running)] if running else None
        node = home.nodes[f"n{number % 2 + 1}"]
        change = NodeUpdate(node_id=node.id, action=NodeAction.UPDATE)
        match what:
            case "ask":
                world.ask(f"new-{count}", app.id, memory=10**6, vcore=10 + number)
            case "release" if alloc is not None:
                world.release(alloc.key, app.id)
            case "resize" if alloc is not None:
                world.submit(Allocation(key=alloc.key, application_id=app.id, resource={"vcore": 10 + number}))
            case "preempted" if alloc is not None and not alloc.preempted:
                home.accounting.preempting(app, alloc)
                home.generation += 1  # as when it evicts
            case "capacity":
                change.capacity = {"memory": 10**12, "vcore": 20_000 + number, "pods": 110}
                world.submit(change)
            case "attributes":
                change.attributes = {"si/hostname": f"h{number}"}
                world.submit(change)
            case "drain" | "undrain":
                change.action = NodeAction.DRAIN_NODE if what == "drain" else NodeAction.DRAIN_TO_SCHEDULABLE
                world.submit(change)
            case "foreign":
                tags = {TAG_FOREIGN: "static" if number % 2 else "default"}
                resource = {"vcore": 1 + number}
                world.submit(Allocation(key=f"f{number // 2}", node_id=node.id, resource=resource, tags=tags))
            case "reserve":
                world.schedule(5.0)
            case "application":
                user, queue = ("alice", "bob")[number % 2], ("root.a", "root.b.dyn")[number // 2]
                world.application(f"app-{count}", queue, user, groups=("dev", "ops")[number % 2 :])
                world.ask(f"first-{count}", f"app-{count}", vcore=10 + number)
            case "end":
                world.submit(RemoveApplication(application_id=list(home.applications)[-1]))
            case "configuration":
                world.api.change_configuration("mycluster", CONFIG.replace(*CHANGES[number]), now_ns=world.now)
        world.schedule(0.5)
        yield
