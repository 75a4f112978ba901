"""Limits of users and groups: docs/spec/scheduling.md, sections 11, 16.3 and 16.10 to 16.12."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from licorne.config.model import LimitConfig, QueueConfig
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec
from licorne.core.queues.application import Application
from licorne.core.queues.limits import Limits
from licorne.core.queues.tree import Tree


def limit(users: str = "", groups: str = "", apps: int = 0, **resources: int) -> LimitConfig:
    return LimitConfig(tuple(users.split()), tuple(groups.split()), resources or None, apps)


def queue(name: str, *parts: QueueConfig | LimitConfig) -> QueueConfig:
    """A queue with these children and limits."""
    children = tuple(part for part in parts if isinstance(part, QueueConfig))
    limits = tuple(part for part in parts if isinstance(part, LimitConfig))
    return QueueConfig(name, parent=bool(children), children=children, limits=limits)


class Bench:
    """Limits with a tree to stand in; does what the hot path does with trackers."""

    def __init__(self, *parts: QueueConfig | LimitConfig) -> None:
        self.types = Types()
        self.config = queue("root", *parts)
        self.tree = Tree(self.config, self.types)
        self.limits = Limits(self.types)
        self.apps: dict[str, Application] = {}
        self.limits.configure(self.config, [])

    def app(self, id: str, user: str, path: str, *groups: str) -> Application:
        leaf = self.tree.find(path)
        assert leaf is not None
        app = Application(id, len(self.apps), 0, leaf, user)
        app.groups = groups
        self.apps[id] = app
        leaf.apps[id] = app
        return app

    def use(self, app: Application, sign: int = 1, *, placeholder: bool = False, **amounts: int) -> None:
        """Allocate, or with sign -1 release."""
        self.limits.attach(app)
        vec = self.types.vector(amounts)
        for target in [app.placeholders if placeholder else app.allocated, *(t.used for t in app.trackers)]:
            target.plus(vec) if sign > 0 else target.minus(vec)
        if sign > 0:
            for tracker in app.trackers:
                tracker.apps[app] = None

    def reload(self, *parts: QueueConfig | LimitConfig) -> list[str]:
        self.config = queue("root", *parts)
        self.tree.reload(self.config)
        return [app.id for app in self.limits.configure(self.config, self.apps.values())]

    def applying(self, app: Application) -> list[tuple[str, str, dict[str, int] | None, int, bool]]:
        self.limits.attach(app)
        return [
            (t.name, t.path, None if t.limit is None else t.limit.named(self.types), t.max_apps, t.wildcard)
            for t in app.trackers
        ]

    def used(self) -> dict[str, dict[str, int]]:
        """The usage of `user:name@path` and `group:name@path`; users and groups without any are left out."""
        lists = [*self.limits.users().values(), *self.limits.groups().values()]
        found = {f"{t.kind}:{t.name}@{t.path}": t.used.named(self.types) for each in lists for t in each}
        return {name: used for name, used in found.items() if used}

    def validate(self) -> None:
        self.limits.validate(self.apps.values())


# -- which limit applies ---------------------------------------------------------------------------------


def test_a_named_limit_hides_the_wildcard_on_the_same_queue_only() -> None:
    bench = Bench(
        limit("*", apps=9),
        queue("a", limit("alice", vcore=5), limit("*", vcore=2), queue("leaf")),
    )
    alice, bob = bench.app("x1", "alice", "root.a.leaf"), bench.app("x2", "bob", "root.a.leaf")
    assert bench.applying(alice) == [
        ("alice", "root.a.leaf", None, 0, False),
        ("alice", "root.a", {"vcore": 5}, 0, False),
        ("alice", "root", None, 9, True),
    ]
    assert bench.applying(bob)[1] == ("bob", "root.a", {"vcore": 2}, 0, True)
    bench.validate()


GROUP_CASES = [
    # groups of the user, leaf, group that counts
    (("dev",), "root.a.leaf", "dev"),
    (("ops", "dev"), "root.a.leaf", "dev"),  # the order of the configuration decides, not the user's
    (("ops",), "root.a.leaf", "ops"),
    (("sales",), "root.a.leaf", "sales"),  # found at root only
    (("none",), "root.a.leaf", None),
    (("none",), "root.b", "*"),
    (("sales",), "root.b", "*"),  # the wildcard of a lower queue goes before a name of an upper one
    (("dev",), "root.b", "*"),
    (("qa",), "root.b", "qa"),
    ((), "root.b", "*"),
]


@pytest.mark.parametrize(("groups", "path", "expected"), GROUP_CASES)
def test_the_first_configured_group_from_the_leaf_upwards_counts(
    groups: tuple[str, ...], path: str, expected: str | None
) -> None:
    bench = Bench(
        limit(groups="sales", apps=9),
        queue("a", limit(groups="dev", vcore=5), limit(groups="ops", vcore=5), queue("leaf")),
        queue("b", limit(groups="qa *", vcore=3)),
    )
    app = bench.app("x", "u", path, *groups)
    bench.limits.attach(app)
    depth = path.count(".") + 1
    assert len(app.trackers) == depth * (1 if expected is None else 2)
    assert app.group == expected
    assert all(t.name == expected for t in app.trackers[depth:])
    bench.validate()


def test_the_wildcard_group_is_shared_and_the_wildcard_user_is_not() -> None:
    bench = Bench(queue("a", limit("*", groups="g *", apps=1)))
    one, two = bench.app("x1", "u", "root.a"), bench.app("x2", "v", "root.a")
    bench.limits.attach(one)
    bench.limits.attach(two)
    assert one.trackers[0] is not two.trackers[0]
    assert one.trackers[2] is two.trackers[2]


def test_a_queue_spelled_with_capitals_has_its_limits() -> None:
    """docs/spec/config.md, section 6.6: the original never applies them."""
    bench = Bench()
    config = QueueConfig("root", True, (QueueConfig("Big", limits=(limit("u", vcore=1),)),))
    bench.limits.configure(config, [])
    assert [t.path for t in bench.limits.users()["u"]] == ["root.big"]


# -- may it run ------------------------------------------------------------------------------------------


def test_leaf_goes_before_root_and_user_before_group() -> None:
    bench = Bench(limit("u", "g", apps=1), queue("a", limit("u", "g", apps=1)))
    first, second = bench.app("x1", "u", "root.a", "g"), bench.app("x2", "u", "root.a", "g")
    bench.use(first, vcore=1)
    refusal = bench.limits.first_refusal(second)
    assert refusal is not None
    assert (refusal.kind, refusal.path) == ("user", "root.a")
    other = bench.app("x3", "v", "root.a", "g")
    refusal = bench.limits.first_refusal(other)
    assert refusal is not None
    assert (refusal.kind, refusal.path) == ("group", "root.a")


# -- leaving -----------------------------------------------------------------------------------------------


def test_an_application_leaves_when_nothing_is_allocated_or_pending() -> None:
    """16.11, 16.12: it leaves all sets, forgets its group, and wakes who waited."""
    bench = Bench(limit("*", apps=1), limit(groups="g", apps=1), queue("a"))
    x1, x2 = bench.app("x1", "u", "root.a", "g"), bench.app("x2", "u", "root.a", "g")
    bench.use(x1, vcore=1, placeholder=True)
    refusal = bench.limits.first_refusal(x2)
    assert refusal is not None
    refusal.blocked[x2] = None
    bench.use(x1, -1, vcore=1, placeholder=True)
    assert bench.limits.left(x1) == [x2]
    assert not refusal.blocked
    assert not x1.group_chosen
    assert x1.trackers == []
    assert bench.limits.first_refusal(x2) is None
    bench.validate()


def test_one_without_allocations_keeps_its_group_until_it_is_gone() -> None:
    """16.12: the group is kept until the last *allocation* goes, whatever limits come."""
    bench = Bench(queue("a"))
    app = bench.app("x", "u", "root.a", "g")
    bench.limits.attach(app)
    assert bench.limits.left(app) == []
    bench.reload(queue("a", limit(groups="g", apps=1)))
    bench.limits.attach(app)
    assert app.group is None
    bench.limits.left(app, gone=True)
    bench.limits.attach(app)
    assert app.group == "g"


def test_trackers_are_dropped_when_nobody_needs_them() -> None:
    bench = Bench(limit("alice", vcore=1), limit("*", vcore=1), queue("a"))
    apps = [bench.app("x1", "alice", "root.a"), bench.app("x2", "bob", "root.a"), bench.app("x3", "bob", "root.a")]
    for app in apps:
        bench.limits.attach(app)
    assert sorted(bench.limits.users()) == ["alice", "bob"]
    bench.use(apps[1], vcore=1)
    bench.use(apps[1], -1, vcore=1)
    bench.limits.left(apps[1])
    bench.use(apps[2], vcore=1)  # it held the trackers all the time, and counts with those that are registered
    bench.validate()
    for app in (apps[0], apps[2]):
        if app is apps[2]:
            bench.use(app, -1, vcore=1)
        bench.limits.left(app, gone=True)
    assert {name: [t.path for t in trackers] for name, trackers in bench.limits.users().items()} == {"alice": ["root"]}
    bench.validate()


# -- reload ------------------------------------------------------------------------------------------------


def test_a_wildcard_that_goes_is_gone_for_all() -> None:
    """16.10: named limits before and after, the `*` removed."""
    bench = Bench(queue("a", limit("alice", vcore=5), limit("*", vcore=1)))
    bob = bench.app("x", "bob", "root.a")
    bench.use(bob, vcore=1)
    bob.trackers[0].blocked[bob] = None
    assert bench.reload(queue("a", limit("alice", vcore=5))) == ["x"]
    assert bench.applying(bob)[0] == ("bob", "root.a", None, 0, False)
    bench.validate()


RELOADS: list[tuple[str, list[LimitConfig], list[LimitConfig], tuple[Any, ...]]] = [
    ("set", [], [limit("u", vcore=2)], ({"vcore": 2}, 0, False)),
    ("cleared", [limit("u", vcore=2)], [], (None, 0, False)),
    ("changed", [limit("u", vcore=2)], [limit("u", vcore=3, apps=4)], ({"vcore": 3}, 4, False)),
    ("named to wildcard", [limit("u", vcore=2)], [limit("*", vcore=3)], ({"vcore": 3}, 0, True)),
    ("wildcard to named", [limit("*", vcore=2)], [limit("u", apps=3), limit("*", vcore=2)], (None, 3, False)),
    ("wildcard changed", [limit("*", vcore=2)], [limit("*", vcore=9)], ({"vcore": 9}, 0, True)),
]


@pytest.mark.parametrize(("before", "after", "expected"), [case[1:] for case in RELOADS], ids=[c[0] for c in RELOADS])
def test_reload_sets_and_clears_limits_of_users(
    before: list[LimitConfig], after: list[LimitConfig], expected: tuple[Any, ...]
) -> None:
    bench = Bench(queue("a", *before))
    app = bench.app("x", "u", "root.a")
    bench.use(app, vcore=1)
    app.trackers[0].blocked[app] = None
    assert bench.reload(queue("a", *after)) == ["x"]
    assert bench.applying(app)[0][2:] == expected
    assert bench.used() == {"user:u@root.a": {"vcore": 1}, "user:u@root": {"vcore": 1}}
    assert bench.reload(queue("a", *after)) == []
    bench.validate()


def test_usage_moves_to_the_group_that_counts_after_a_reload() -> None:
    """16.3: at every level, for applications at or below the queue that lost the limit, and for no other."""
    before = [
        queue("p", limit(groups="g", vcore=9), limit(groups="h", vcore=9), queue("a"), queue("b")),
        queue("q", limit(groups="g", vcore=9)),
    ]
    bench = Bench(*before)
    xa, xb = bench.app("xa", "u", "root.p.a", "g", "h"), bench.app("xb", "u", "root.p.b", "g")
    xq, idle = bench.app("xq", "u", "root.q", "g", "h"), bench.app("idle", "u", "root.p.a", "h", "g")
    for app in (xa, xb, xq):
        bench.use(app, vcore=2)
    bench.use(xa, memory=1, placeholder=True)
    bench.limits.attach(idle)
    waiting = xa.trackers[-1]
    waiting.blocked[idle] = None
    assert idle.group == "g"
    woken = bench.reload(queue("p", limit(groups="h", vcore=9), queue("a"), queue("b")), before[1])
    assert sorted(woken) == ["idle", "xa", "xb"]
    assert [app.group for app in (xa, xb, xq, idle)] == ["h", None, "g", "h"]
    used = bench.used()
    assert {name: used[name] for name in used if name.startswith("group")} == {
        "group:h@root.p.a": {"memory": 1, "vcore": 2},
        "group:h@root.p": {"memory": 1, "vcore": 2},
        "group:h@root": {"memory": 1, "vcore": 2},
        "group:g@root.q": {"vcore": 2},
        "group:g@root": {"vcore": 2},
    }
    assert used["user:u@root"] == {"memory": 1, "vcore": 6}
    bench.validate()


def test_a_group_that_is_still_configured_higher_up_stays() -> None:
    bench = Bench(limit(groups="g", vcore=9), queue("a", limit(groups="g", vcore=5)))
    app = bench.app("x", "u", "root.a", "g")
    bench.use(app, vcore=1)
    assert bench.reload(limit(groups="g", vcore=9), queue("a")) == []
    assert app.group == "g"
    assert app.trackers[2].limit is None
    bench.validate()


def test_an_answer_of_none_is_kept_whatever_is_added() -> None:
    bench = Bench(queue("a"))
    app = bench.app("x", "u", "root.a", "g")
    bench.use(app, vcore=1)
    bench.reload(queue("a", limit(groups="g", vcore=5)))
    assert app.group is None
    bench.validate()


# -- the law ---------------------------------------------------------------------------------------------

USERS, GROUPS, LEAVES = ["u", "v"], ["g", "h"], ["root.p.a", "root.p.b", "root.q"]


@st.composite
def limit_lists(draw: st.DrawFn) -> list[LimitConfig]:
    users = draw(st.permutations(USERS))[: draw(st.integers(0, 2))] + ["*"] * draw(st.booleans())
    groups = draw(st.permutations(GROUPS))[: draw(st.integers(0, 2))]
    groups += ["*"] * (bool(groups) and draw(st.booleans()))
    number = st.integers(1, 3)
    return [limit(users=user, apps=draw(number)) for user in users] + [
        limit(groups=group, vcore=draw(number)) for group in groups
    ]


@st.composite
def configurations(draw: st.DrawFn) -> tuple[QueueConfig | LimitConfig, ...]:
    lists = [draw(limit_lists()) for _ in range(5)]
    p = queue("p", *lists[1], queue("a", *lists[2]), queue("b", *lists[3]))
    return (*lists[0], p, queue("q", *lists[4]))


ACTIONS = st.tuples(st.sampled_from(["attach", "use", "use", "release", "leave", "gone"]), st.integers(0, 5))


def expected_usage(bench: Bench) -> dict[str, dict[str, int]]:
    """From the applications alone."""
    sums: dict[str, Vec] = {}
    for app in bench.apps.values():
        for path in ("root", "root.p", app.queue.path):
            if app.queue.path == path or app.queue.path.startswith(path + "."):
                for name in [f"user:{app.user}@{path}"] + ([f"group:{app.group}@{path}"] if app.group else []):
                    sums.setdefault(name, Vec()).plus(app.allocated)
    return {name: vec.named(bench.types) for name, vec in sums.items() if not vec.zero()}


@examples(120)
@given(
    first=configurations(),
    steps=st.lists(st.one_of(ACTIONS, configurations().map(lambda c: ("reload", c))), max_size=25),
)
def test_trackers_count_what_applications_use(first: Any, steps: list[tuple[str, Any]]) -> None:
    bench = Bench(*first)
    apps = [bench.app(f"x{i}", USERS[i % 2], LEAVES[i % 3], *GROUPS[: 1 + i % 2]) for i in range(6)]
    for action, argument in steps:
        if action == "reload":
            bench.reload(*argument)
        else:
            act(bench, action, apps[argument])
        bench.validate()
        assert bench.used() == expected_usage(bench)


def act(bench: Bench, action: str, app: Application) -> None:
    if action == "attach":
        refusal = bench.limits.first_refusal(app)
        if refusal is not None:
            refusal.blocked[app] = None
    elif action == "use":
        bench.use(app, vcore=1)
    elif action == "release" and app.allocated.at(0):
        bench.use(app, -1, vcore=1)
    elif action in ("leave", "gone") and app.allocated.zero():
        bench.limits.left(app, gone=action == "gone")
