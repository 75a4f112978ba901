"""What is said of an ask that terms keep waiting, and what is proposed, which is tried on a copy of the scheduler."""

from __future__ import annotations

import pytest

from answers import scenes
from licorne.answers import Home
from licorne.answers.asks import Wanted
from licorne.answers.proposals import propose
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate

from .helpers import cluster, node_labels, run_all, tags

CONFIG = {
    "partitions": [
        {
            "name": "default",
            "placementrules": [{"name": "provided"}],
            "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}],
        }
    ]
}
WEB, APART = tags("app=web"), tags("app=web", apart="zone app=web")


def test_why_counts_nodes_by_what_their_pods_refuse() -> None:
    bench = cluster("n1:a n2:a n3:b n4")
    assert run_all(bench, ("one", APART), ("two", APART), ("none", tags("app=x", near="zone app=y"))) == "one@n1 two@n3"
    bench.ask("x", "near", tags=tags("app=x", near="zone app=y"), vcore=1)
    bench.ask("x", "spread", tags=tags("app=web", spread="zone app=web", nodeSelector={"host": "n4"}), vcore=1)
    bench.ask("x", "web", tags=WEB, vcore=1)
    bench.run()
    found = {key: bench.why(key)[0].failed for key in ("near", "spread")}  # type: ignore[union-attr]
    assert found == {"near": {"pod affinity": 4}, "spread": {"nodeSelector": 3, "topology spread: no label zone": 1}}
    bench.ask("x", "waits", tags=APART, vcore=1)
    bench.ask("x", "held", tags={**WEB, "licorne/node-constraints": '{"nodeSelector": {"host": "n2"}}'}, vcore=1)
    bench.run()
    assert bench.why("held")[0].failed == {"anti-affinity of running pods": 1, "nodeSelector": 3}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("waits", "ends"),
    [
        (APART, {"one"}),  # the zone of n1 has one pod to end, that of n3 has two
        (tags("app=web", spread="zone app=web affinity=Ignore", nodeSelector={"zone": "b"}), {"three"}),
    ],
)
def test_the_end_of_pods_in_the_way_is_proposed(waits: dict[str, str], ends: set[str]) -> None:
    nodes = [
        NodeUpdate(node_id=name, action=NodeAction.CREATE, capacity={"vcore": 5000}, attributes=node_labels(name, zone))
        for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))
    ]
    app = AddApplication(application_id="app", queue="root.a", user="u", groups=("g",))
    pods = [
        Allocation(key=key, application_id="app", resource={"vcore": 1000}, node_id=node, tags=WEB)
        for key, node in (("one", "n2"), ("two", "n3"), ("three", "n3"))
    ]
    ask = Allocation(key="waits", application_id="app", resource={"vcore": 1000}, tags=waits)
    scene = scenes.Scene(CONFIG, ((*nodes, app, *pods), 0, (ask,), 0))
    found = propose(Home(scene.restored()), Wanted("default", "app", "waits"), effort=100.0).found
    ending = [
        {one.key for one in each.allocations} for made in found for each in made.changes if hasattr(each, "allocations")
    ]
    assert ending and all(some <= {"one", "two", "three"} for some in ending)
    assert ends in ending
