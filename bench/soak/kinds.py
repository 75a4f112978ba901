"""The kinds of things that are created and removed in a soak: one `Kind` for each sort of input to a scheduler.

The n-th thing of a kind is unlike any other of it: other keys, amounts, names. Whatever `come` creates, `go` removes, with
everything that it caused, so that afterwards the scheduler need not remember anything of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from bench.soak.world import (
    CONFIG,
    CORES,
    NODES,
    RM_ID,
    World,
    application,
    ask,
    constrained,
    gone,
    node,
    removed,
)
from licorne.si import v19
from licorne.si.constants import TAG_FOREIGN, TAG_REQUIRED_NODE
from licorne.si.messages import Allocation, Release

Act = Callable[[World, int], None]
TYPES = 50
"""Number of different resource types."""
SHARE_OF_SLOW = 0.02
"""Number of things of a kind that is slow to create, as a share of that of other kinds."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of things. At most `alive` exist at a time. `share`: how many are created for each one of other kinds."""

    name: str
    what: str
    come: Act
    go: Act
    alive: int = 1_000
    share: float = 1.0


# -- asks ------------------------------------------------------------------------------------------------


def _end(app_id: str) -> Act:
    """Return an act that ends the ask, or its allocation, of the application."""

    def go(world: World, n: int) -> None:
        world.release(f"k{n}", app_id)

    return go


def _fits(world: World, n: int) -> None:
    world.tell(ask(f"k{n}", "plain"))


def _waits(world: World, n: int) -> None:
    world.tell(ask(f"k{n}", "plain", {"vcore": CORES + 1}))


def _reserves(world: World, n: int) -> None:
    """Every tenth ask fills a node for a while; the others need more than half a node."""
    world.tell(ask(f"k{n}", "plain", {"vcore": CORES // 2 + 1 if n % 10 else CORES}))


def _shape(world: World, n: int) -> None:
    """Each ask has other amounts; every second one fits no node."""
    world.tell(ask(f"k{n}", "plain", {"vcore": 1 + n % 7, "memory": 1 + n % 30 if n % 2 else CORES + n}))


def _constraints(world: World, n: int) -> None:
    """Each ask has other constraints; all nodes meet those of every second one, no node meets the others."""
    without = json.dumps({"nodeAffinity": [[{"key": f"z{n}", "operator": "DoesNotExist", "values": []}]]})
    world.tell(constrained(f"k{n}", "plain", json.dumps({"nodeSelector": {"z": f"{n}"}}) if n % 2 else without))


def _texts(world: World, n: int) -> None:
    """The asks have the same constraints in different texts, which differ in their spaces."""
    world.tell(constrained(f"k{n}", "plain", '{"nodeSelector":' + " " * (n % 6_000) + '{"only":"n1"}}'))


def _required(world: World, n: int) -> None:
    """The ask waits for a node that does not exist."""
    world.tell(ask(f"k{n}", "plain", tags={TAG_REQUIRED_NODE: f"absent{n}"}))


def _evicts(world: World, n: int) -> None:
    """An allocation on a node is evicted for an ask that requires this node."""
    world.tell(constrained(f"v{n}", "plain", '{"nodeSelector":{"only":"n0"}}', {"vcore": CORES}))
    world.decide()
    daemon = ask(f"k{n}", "plain", {"vcore": CORES}, tags={TAG_REQUIRED_NODE: "node0"}, priority=9)
    world.tell(daemon)
    world.decide()
    world.release(f"k{n}", "plain")


def _promised(world: World, n: int) -> None:
    """The queue of the ask is below its guarantee, but no allocation may be evicted for it."""
    world.tell(ask(f"k{n}", "due", {"vcore": CORES + 1 + n % 3}, allow_preempt_other=True))


def _timed(world: World, n: int) -> None:
    """The ask may run for an hour, and is released after a minute at the latest."""
    world.tell(Allocation(key=f"k{n}", application_id="plain", resource={"vcore": 1}, timeout_ms=3_600_000))


def _refused(world: World, n: int) -> None:
    world.tell(ask(f"k{n}", f"nobody{n}"), application(f"a{n}", "root.plain", user=""))


def _nothing(world: World, n: int) -> None:
    """Do nothing, as the thing is gone already."""


# -- applications ----------------------------------------------------------------------------------------


def _application(queue: str, amounts: dict[str, int] | None = None) -> Act:
    """Return an act that creates an application with an ask."""

    def come(world: World, n: int) -> None:
        world.tell(application(f"a{n}", queue.format(n)), ask(f"k{n}", f"a{n}", amounts))

    return come


def _ask_of_application(world: World, n: int) -> None:
    """End the ask, so that the application completes after a while."""
    world.release(f"k{n}", f"a{n}")


def _remove(world: World, n: int) -> None:
    world.tell(removed(f"a{n}"))


def _user(world: World, n: int) -> None:
    world.tell(application(f"a{n}", "root.plain", f"user{n}"), ask(f"k{n}", f"a{n}"))


def _remove_or_complete(world: World, n: int) -> None:
    if n % 2:
        world.tell(removed(f"a{n}"))
    else:
        world.release(f"k{n}", f"a{n}")


def _groups_tag(n: int) -> dict[str, str]:
    groups = [{"name": f"g{n}", "minMember": 2, "minResource": {"cpu": "1"}}]
    return {"gang.scheduling": "atomic", "yunikorn.apache.org/task-groups": json.dumps(groups)}


def _atomic(world: World, n: int) -> None:
    """Every second of these gangs, which start as a whole, can start."""
    amounts = {"vcore": 1 if n % 2 else CORES // 2 + 1 + n % 5, "memory": 1}
    world.tell(application(f"a{n}", "root.plain", tags=_groups_tag(n)))
    world.tell(*(ask(f"k{n}-{i}", f"a{n}", amounts, task_group=f"g{n}") for i in range(2 if n % 2 else 2 * NODES)))


def _gang(world: World, n: int) -> None:
    """A gang with two placeholders, one of which is replaced."""
    app_id = f"a{n}"
    world.tell(application(app_id, "root.plain", placeholder_ask={"vcore": 2}, execution_timeout_ms=60_000))
    world.tell(*(ask(f"p{n}-{i}", app_id, task_group=f"g{n}", placeholder=True) for i in range(2)))
    world.decide()
    world.tell(ask(f"k{n}", app_id, task_group=f"g{n}"))


def _gang_ends(world: World, n: int) -> None:
    for key in (f"k{n}", f"p{n}-0", f"p{n}-1"):
        world.release(key, f"a{n}")


def _placeholder(world: World, n: int) -> None:
    """Another placeholder of an application that never ends."""
    world.tell(ask(f"k{n}", "plain", task_group=f"g{n}", placeholder=True))


# -- nodes, types, configurations, resource managers -----------------------------------------------------


def _node(world: World, n: int) -> None:
    """A node with labels of its own, and for a moment an ask that requires it."""
    world.tell(
        node(f"x{n}", {"vcore": 2}, {"label/zone": f"z{n}"}), ask(f"k{n}", "plain", tags={TAG_REQUIRED_NODE: f"x{n}"})
    )
    world.decide()
    world.release(f"k{n}", "plain")


def _node_goes(world: World, n: int) -> None:
    world.tell(gone(f"x{n}"))


def _foreign(world: World, n: int) -> None:
    world.tell(
        Allocation(key=f"f{n}", node_id=f"node{n % NODES}", resource={"vcore": 1}, tags={TAG_FOREIGN: "default"})
    )


def _foreign_ends(world: World, n: int) -> None:
    world.tell(Release(key=f"f{n}"))


def _type(world: World, n: int) -> None:
    kind = f"type{n % TYPES}"
    world.tell(node(f"x{n}", {"vcore": 2, kind: 1}), ask(f"k{n}", "plain", {"vcore": 1, kind: 1 + n % 2}))


def _type_goes(world: World, n: int) -> None:
    world.release(f"k{n}", "plain")
    world.tell(gone(f"x{n}"))


def _reload(world: World, n: int) -> None:
    """A configuration with another queue, and a limit of another user there."""
    more = f"          - {{name: q{n}, limits: [{{limit: x, users: [u{n}], maxresources: {{vcore: 1}}}}]}}\n"
    _configure(world, CONFIG + more)
    world.tell(application(f"a{n}", f"root.q{n}", f"u{n}"), ask(f"k{n}", f"a{n}"))


def _reload_back(world: World, n: int) -> None:
    world.tell(removed(f"a{n}"))
    _configure(world, CONFIG)


def _configure(world: World, text: str) -> None:
    request = v19.UpdateConfigurationRequest(rm_id=RM_ID, config=text)
    world.api.update_configuration(request, now_ns=world.now_ns)


def _manager(world: World, n: int) -> None:
    world.register(f"rm{n}")
    world.api.submit(f"rm{n}", [node("x", {"vcore": 9}), application("a", "root.plain"), ask("k", "a")])


def _manager_stops(world: World, n: int) -> None:
    world.api.stop(f"rm{n}", now_ns=world.now_ns)


def _kinds() -> list[Kind]:
    plain = _end("plain")
    large = {"vcore": CORES + 1}
    return [
        Kind("asks", "asks that fit", _fits, plain),
        Kind("waiting", "asks that fit no node", _waits, plain),
        Kind("reserving", "asks that may reserve a node", _reserves, plain, alive=40),
        Kind("shapes", "asks of ever other amounts", _shape, plain),
        Kind("constraints", "asks with ever other constraints", _constraints, plain),
        Kind("texts", "constraints in ever other words", _texts, plain),
        Kind("required", "asks that require absent nodes", _required, plain),
        Kind("evictions", "asks that evict on their node", _evicts, _nothing),
        Kind("preempting", "asks below a guarantee", _promised, _end("due"), alive=100),
        Kind("timed", "asks with an execution timeout", _timed, plain),
        Kind("refused", "asks and applications refused", _refused, _nothing),
        Kind("applications", "applications removed", _application("root.plain"), _remove),
        Kind("completing", "applications completed", _application("root.plain"), _ask_of_application),
        Kind("unplaced", "applications never placed", _application("root.plain", large), _ask_of_application),
        Kind("blocked", "applications above a quota", _application("root.small", large), _ask_of_application),
        Kind("shy", "applications that back off", _application("root.shy", large), _remove_or_complete),
        Kind("users", "users and groups", _user, _remove_or_complete),
        Kind("queues", "dynamic queues", _application("root.dynamic.q{}"), _remove_or_complete),
        Kind("promised", "queues with a guarantee", _application("root.promised.q{}", large), _remove, alive=100),
        Kind("atomic", "gangs that start as a whole", _atomic, _remove, alive=20),
        Kind("gangs", "gangs with placeholders", _gang, _gang_ends),
        Kind("groups", "task groups of one application", _placeholder, plain),
        Kind("nodes", "nodes with ever other labels", _node, _node_goes),
        Kind("foreign", "foreign allocations", _foreign, _foreign_ends),
        Kind("types", "resource types within their limit", _type, _type_goes),
        Kind("reloads", "configurations", _reload, _reload_back, alive=1, share=SHARE_OF_SLOW),
        Kind("managers", "resource managers", _manager, _manager_stops, alive=10, share=SHARE_OF_SLOW),
    ]


KINDS = {kind.name: kind for kind in _kinds()}


def events(world: World, kind: Kind, first: int, count: int, since: int = 0) -> None:
    """Create `count` things of the kind, from number `first` on, and remove those that are due; none is older than `since`."""
    for n in range(first, first + count):
        world.step()
        kind.come(world, n)
        world.decide()
        if n - kind.alive >= since:
            kind.go(world, n - kind.alive)
            world.decide()


def end(world: World, kind: Kind, count: int, rest_s: int) -> None:
    """Remove all things that still exist of `count`, and let `rest_s` seconds of virtual time pass."""
    for n in range(max(0, count - kind.alive), count):
        world.step()
        kind.go(world, n)
        world.decide()
    world.rest(rest_s)
