"""Which queue, application, ask and node come first, and which asks wait: docs/spec/scheduling.md, sections 4 to 6, 8, 10, 11 and the worked examples of 15,
of which 15.2 is in `core/test_tree.py`."""

from __future__ import annotations

import pytest

from core.bench import SECOND_NS, Bench, cluster, config, limit, parent
from licorne.core.inspection.explain import Backoff

# -- section 15 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "priority", "order"),
    [
        ("", 0, "c a b"),
        ("", 10, "b c a"),
        ("properties: {application.sort.priority: disabled}", 10, "c a b"),
    ],
)
def test_example_1_queues_by_share(root: str, priority: int, order: str) -> None:
    quotas = ("a resources: {guaranteed: {vcore: 8}}", "b resources: {max: {vcore: 5}}", "c")
    b = cluster(config(*quotas, root=root), 10_000)
    for name, used in (("a", 4000), ("b", 3000), ("c", 1000)):
        b.app(name, f"root.{name}")
        b.ask(name, f"{name}0", node="n1", vcore=used)
        b.ask(name, name, vcore=1, priority=priority if name == "b" else 0)
    shares = {q.name: q.share for q in b.partition.tree.root.in_order(None)}
    assert shares == {"a": 0.5, "b": 0.6, "c": 0.1}
    assert " ".join(shares) == order
    assert b.run().replace("@n1", "") == order


def test_example_3_an_accepted_application_with_placeholders_holds_a_slot() -> None:
    b = cluster(config("a maxapplications: 2"), 10)
    for app in ("x1", "x2", "x3"):
        b.app(app)
    b.ask("x1", "k1", vcore=1)
    b.ask("x2", "p2", vcore=1, placeholder=True)
    assert b.run() == "k1@n1 p2@n1"
    b.ask("x3", "k3", vcore=1)
    assert b.run() == ""
    assert b.states() == "x1:Running x2:Accepted x3:Accepted"
    b.remove("x2")
    assert b.run() == "k3@n1"


def test_example_4_a_wildcard_counts_for_each_user_separately() -> None:
    b = cluster(config("a", root=f"limits: [{limit('*', apps=1)}]"), 10)
    for app, user in (("x1", "alice"), ("x2", "bob"), ("x3", "alice")):
        b.app(app, user=user)
        b.ask(app, app, vcore=1)
    assert b.run() == "x1@n1 x2@n1"
    b.remove("x1")
    assert b.run() == "x3@n1"


def test_example_4_resources_and_applications_of_a_wildcard() -> None:
    b = cluster(config("a", root=f"limits: [{limit('*', apps=1, vcore=3)}]"), 10)
    b.app("x1")
    b.app("x2")
    for i in range(5):
        b.ask("x1", f"k{i}", vcore=1)
    b.ask("x2", "other", vcore=1)
    assert b.run() == "k0@n1 k1@n1 k2@n1"
    assert b.states() == "x1:Running x2:Accepted"


def test_example_5_an_application_is_as_old_as_its_oldest_ask() -> None:
    b = cluster(config("a maxapplications: 1"), 10, apps="x1 x2")
    b.ask("x1", "k1", vcore=1)
    b.ask("x2", "k2", vcore=1, age_s=60)
    assert b.run() == "k2@n1"
    assert b.states() == "x1:Accepted x2:Running"


def test_example_6_the_first_of_equal_scores_is_reserved() -> None:
    b = cluster(config("a"), 10, 10, 12, apps="x")
    for node, used in (("n1", 5), ("n2", 5), ("n3", 12)):
        b.ask("x", f"on-{node}", node=node, vcore=used)
    b.ask("x", "small", vcore=11)  # 32 are there, 22 are used: 10 are left
    b.ask("x", "k", vcore=9)
    assert (b.run(), b.reserved()) == ("", "")
    assert (b.run(after=3), b.reserved()) == ("", "k@n1")
    b.ask("x", "tiny", vcore=1)
    assert b.run() == "tiny@n2"  # n1 is closed to others
    b.release("x", "on-n2")
    assert (b.run(), b.reserved()) == ("k@n2", "")


# -- queues (section 4.1) --------------------------------------------------------------------------------


def test_of_equal_shares_the_larger_pending_comes_first_then_the_name() -> None:
    b = cluster(config("a", "b", "c"), 100)
    for name, asks in (("a", 1), ("b", 1), ("c", 2)):
        b.app(name, f"root.{name}")
        for i in range(asks):
            b.ask(name, f"{name}{i}", vcore=1)
    assert b.run().replace("@n1", "") == "c0 a0 b0 c1"


# shares: of guaranteed, else of the fair maximum; 0 of 0 is 1 as soon as anything is used
SHARES = [
    ("a resources: {guaranteed: {vcore: 10m}}", {"vcore": 5}, 0.5),
    ("a resources: {guaranteed: {vcore: 10m, memory: 0}}", {"vcore": 5, "memory": 1}, 1.0),
    ("a resources: {guaranteed: {vcore: 10m, memory: 0}}", {"vcore": 5}, 0.5),
    ("a resources: {guaranteed: {vcore: 0, memory: 0}}", {"vcore": 5}, 0.05),  # nothing above 0 is "not set"
    ("a resources: {guaranteed: {vcore: 10m}, max: {vcore: 20m}}", {"vcore": 5}, 0.5),
    ("a resources: {guaranteed: {vcore: 10m}}", {"vcore": 1, "memory": 50}, 0.5),  # memory: of the cluster's 100
    ("a resources: {max: {vcore: 20m}}", {"vcore": 5}, 0.25),
    ("a", {"vcore": 5}, 0.05),
    ("a", {}, 0.0),
]


@pytest.mark.parametrize(("leaf", "used", "share"), SHARES)
def test_shares(leaf: str, used: dict[str, int], share: float) -> None:
    b = Bench(config(leaf))
    b.node("n1", vcore=100, memory=100)
    b.app("x")
    if used:
        b.ask("x", "k", node="n1", resource=used)
    b.run()
    found = b.partition.tree.find("root.a")
    assert found is not None and found.share == share


def test_a_child_inherits_the_fair_maximum_of_its_parent() -> None:
    b = cluster(config(parent("p resources: {max: {vcore: 20m}}", "leaf")), 100)
    b.app("x", "root.p.leaf")
    b.ask("x", "k", node="n1", vcore=5)
    b.run()
    assert [q.share for path in ("root.p", "root.p.leaf") if (q := b.partition.tree.find(path))] == [0.25, 0.25]


# -- applications (section 5.1) --------------------------------------------------------------------------

# x1 came first and uses 3, x2 uses 1, x3 has the priority; each has one ask
APPLICATION_ORDER = [
    ("fifo", "enabled", "x3 x1 x2"),
    ("fifo", "disabled", "x1 x2 x3"),
    ("fair", "enabled", "x3 x2 x1"),
    ("fair", "disabled", "x2 x3 x1"),
]


@pytest.mark.parametrize(("policy", "priority", "order"), APPLICATION_ORDER)
def test_application_order(policy: str, priority: str, order: str) -> None:
    leaf = f"a properties: {{application.sort.policy: {policy}, application.sort.priority: {priority}}}"
    b = cluster(config(leaf), 100)
    for app, used in (("x1", 3), ("x2", 1), ("x3", 2)):
        b.app(app)
        b.ask(app, f"{app}-0", node="n1", vcore=used)
        b.ask(app, app, vcore=1, priority=5 if app == "x3" else 0)
    assert b.run().replace("@n1", "") == order


def test_fair_usage_is_a_share_of_the_leafs_guaranteed_and_leaves_placeholders_out() -> None:
    leaf = "a properties: {application.sort.policy: fair}, resources: {guaranteed: {vcore: 10m}}"
    b = Bench(config(leaf))
    b.node("n1", vcore=100, memory=100)
    for app in ("x1", "x2"):
        b.app(app)
    b.ask("x1", "x1-0", node="n1", vcore=8)  # 0.8
    b.ask("x2", "x2-0", node="n1", memory=1)  # no guarantee: 1, as it is
    b.ask("x1", "x1-p", node="n1", vcore=30, placeholder=True)
    b.ask("x2", "second", vcore=1)
    b.ask("x1", "first", vcore=1)
    assert b.run() == "first@n1 second@n1"


# -- max applications (section 10) -----------------------------------------------------------------------


def test_max_applications_of_an_ancestor_and_the_next_application() -> None:
    b = cluster(config(parent("p maxapplications: 2", "a maxapplications: 2", "b maxapplications: 2")), 100)
    for app, path in (("x1", "a"), ("x2", "b"), ("x3", "a"), ("x4", "b")):
        b.app(app, f"root.p.{path}")
        b.ask(app, app, vcore=1)
    assert b.run() == "x1@n1 x2@n1"
    b.ask("x1", "more", vcore=1)  # one that runs is not asked again
    assert b.run() == "more@n1"
    b.release("x2")
    assert b.run() == "x4@n1"  # nothing is used in b, so its share is smaller
    assert b.states() == "x1:Running x2:Completing x3:Accepted x4:Running"


# -- users and groups (section 11) -----------------------------------------------------------------------


def test_limits_of_users_and_groups_apply_together() -> None:
    limits = f"limits: [{limit('alice', vcore=3)}, {limit(groups='dev', vcore=4)}]"
    b = cluster(config("a", root=limits), 100)
    for app, user in (("x1", "alice"), ("x2", "bob"), ("x3", "carol")):
        b.app(app, "root.a", user, "dev" if user != "carol" else "other")
        for i in range(5):
            b.ask(app, f"{app}-{i}", vcore=1)
    made = b.run().split()
    assert [sum(key.startswith(app) for key in made) for app in ("x1", "x2", "x3")] == [3, 1, 5]
    b.release("x1", "x1-0")
    assert b.run() == "x1-3@n1"  # alice and the group have 1 each again


def test_a_limit_keeps_back_only_what_does_not_fit() -> None:
    b = cluster(config("a", root=f"limits: [{limit('u', vcore=5)}]"), 100, apps="x")
    b.ask("x", "large", vcore=6, priority=1)
    b.ask("x", "small", vcore=5)
    assert b.run() == "small@n1"


# -- headroom (section 8) --------------------------------------------------------------------------------


def test_headroom_is_the_smallest_of_the_way_up_and_counts_only_what_is_listed() -> None:
    text = config(parent("p resources: {max: {vcore: 6m}}", "a resources: {max: {memory: 50}}", "b"))
    b = Bench(text)
    b.node("n1", vcore=100, memory=100)
    b.app("x", "root.p.a")
    b.app("y", "root.p.b")
    b.ask("y", "other", node="n1", vcore=2)
    b.ask("x", "much-memory", memory=51)
    b.ask("x", "much-vcore", vcore=5)
    b.ask("x", "fits", vcore=4, memory=50)
    assert b.run() == "fits@n1"


def test_root_refuses_a_type_that_no_node_has() -> None:
    b = cluster(config("a"), 100, apps="x")
    b.ask("x", "k", vcore=1, gpu=1)
    b.ask("x", "zero", vcore=1, gpu=0)
    assert b.run() == "zero@n1"
    b.node("n2", vcore=1, gpu=1)
    assert b.run() == "k@n2"
    b.ask("x", "again", gpu=1)
    b.node("n3", gpu=1)
    assert b.run() == "again@n3"


# -- backoff (section 6.1) -------------------------------------------------------------------------------

BACKOFF = "a properties: {application.unschedasks.backoff: '2', application.unschedasks.backoff.delay: 10s}"


def test_backoff_leaves_the_application_alone_for_its_delay() -> None:
    b = cluster(config(BACKOFF), 10, 10, apps="x y", reservation_enabled="false")
    for node in ("n1", "n2"):
        b.ask("x", f"on-{node}", node=node, vcore=5)
    for vcore in (11, 8, 7):  # 11 are not there at all: that is headroom, and not counted
        b.ask("x", f"k{vcore}", vcore=vcore)
    assert b.run() == ""
    b.ask("x", "late", vcore=1)  # 8 and 7 fit no node: before this one they are two
    assert b.run() == ""
    b.ask("y", "other", vcore=1)
    assert b.run(after=9) == "other@n1"
    assert b.why("late") == [Backoff(b.partition.now + SECOND_NS)]
    b.release("x", "on-n2")
    assert b.run(after=0.5) == ""  # not even what would fit now
    assert b.api.next_deadline_ns() == int((b.seconds + 0.5) * SECOND_NS)
    assert b.run(after=0.5) == "k8@n2 late@n1"


@pytest.mark.parametrize(("last", "placed"), [("allocated", "k8@n1 k7@n2"), ("pending", "")])
def test_an_allocated_request_after_the_last_pending_one_starts_no_backoff(last: str, placed: str) -> None:
    """Difference 53: in the original any request that is tried after the failures starts the back-off."""
    b = cluster(config(BACKOFF), 10, 10, apps="x", reservation_enabled="false")
    for number in (1, 2):
        b.ask("x", f"on-n{number}", node=f"n{number}", vcore=5, priority=-1)
    for vcore in (8, 7):
        b.ask("x", f"k{vcore}", vcore=vcore)
    if last == "pending":
        b.ask("x", "late", vcore=1, priority=-2)
    assert b.run() == ""  # the two failures that are allowed
    for number in (1, 2):
        b.release("x", f"on-n{number}")
    assert b.run(after=1) == placed


def test_backoff_is_not_counted_for_asks_without_headroom() -> None:
    b = cluster(config(BACKOFF, root=f"limits: [{limit('u', vcore=5)}]"), 10, apps="x", reservation_enabled="false")
    for i in range(5):
        b.ask("x", f"large{i}", vcore=6)
    b.ask("x", "small", vcore=1)
    assert b.run() == "small@n1"


# -- node order (section 7.5) ----------------------------------------------------------------------------

NODE_ORDER = [("fair", "n3 n3 n1 n3"), ("binpacking", "n2 n2 n2 n1")]
"""n1 uses 4 of 10 vcore and no memory, n2 3 of 10 of both, n3 nothing; each ask wants 2 vcore."""


@pytest.mark.parametrize(("policy", "nodes"), NODE_ORDER)
def test_node_order_in_use(policy: str, nodes: str) -> None:
    b = cluster(config("a", more=f"nodesortpolicy: {{type: {policy}}}"), apps="x")
    for node in ("n1", "n2", "n3"):
        b.node(node, vcore=10, memory=10)
    b.ask("x", "on-n1", node="n1", vcore=4)
    b.ask("x", "on-n2", node="n2", vcore=3, memory=3)
    b.ask("x", "k1", vcore=2)
    b.ask("x", "k2", vcore=2)
    b.ask("x", "k3", vcore=2)
    b.ask("x", "k4", vcore=2)
    assert b.run() == " ".join(f"k{i}@{node}" for i, node in enumerate(nodes.split(), 1))


def test_the_score_follows_foreign_allocations_and_resizes_at_once() -> None:
    b = cluster(config("a"), 10, 10, apps="x")
    b.foreign("f", "n1", vcore=1)
    b.ask("x", "k1", vcore=2)
    assert b.run() == "k1@n2"
    b.ask("x", "k1", vcore=1)  # 1 on each: by name
    b.ask("x", "k2", vcore=1)
    assert b.run() == "k2@n1"
