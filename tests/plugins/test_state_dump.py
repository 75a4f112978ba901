"""The state dump: complete, in a fixed order, fit for JSON, with the part that the resource manager adds (`get_state_dump`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.bench import SECOND_NS, START_S, Bench, config, partition, partitions
from licorne import ResourceManagerCallback, SchedulerAPI
from plugins.listener import Listener

NOW = START_S * SECOND_NS


class Dumps(ResourceManagerCallback):
    def __init__(self, text: str | Exception) -> None:
        self._text = text

    def get_state_dump(self) -> str:
        if isinstance(self._text, Exception):
            raise self._text
        return self._text


def busy(order: int = 1) -> Bench:
    """A bench with something of everything; `order` -1 lets the nodes come the other way round."""
    text = partitions(
        partition("default", "a resources: {max: {vcore: 20}, guaranteed: {vcore: 1}}", "b"), partition("other", "c")
    )
    b = Bench(text)
    for node in ["n1", "n2"][::order]:
        b.node(node, vcore=10, attributes={"zone": "z", "arch": "x"})
    b.app("x", "root.a", "u", "g")
    b.ask("x", "k", vcore=6, tags={"t": "1"}, priority=3)
    b.run()
    b.app("y", "root.b")
    b.ask("y", "waits", vcore=9, age_s=10)
    b.ask("y", "daemon", vcore=9, required="n1")
    b.foreign("f", "n2", vcore=5)
    b.run()
    b.node("o1", vcore=1, partition="other")
    return b


def test_a_dump_has_everything() -> None:
    dump = busy().api.state_dump()
    assert (dump["timestamp"], dump["resourceTypes"]) == (NOW, ["memory", "vcore"])
    (manager,) = dump["resourceManagers"]
    assert [manager[key] for key in ("rmID", "dialect", "events")] == ["rm", "1.9", None]
    assert "rmDiagnostics" not in manager
    main, other = manager["partitions"]
    assert (main["name"], main["state"], main["capacity"]) == ("default", "Active", {"vcore": 20})
    assert (other["name"], [node["nodeID"] for node in other["nodes"]]) == ("other", ["o1"])
    assert [
        (q["queuename"], q["allocatedResource"], q["pendingResource"], q["runningApps"]) for q in main["queues"]
    ] == [
        ("root", {"vcore": 6}, {"vcore": 18}, 1),
        ("root.a", {"vcore": 6}, {}, 1),
        ("root.b", {}, {"vcore": 18}, 0),
    ]
    assert main["queues"][1]["maxResource"] == {"vcore": 20_000}
    assert main["queues"][1]["guaranteedResource"] == {"vcore": 1_000}
    assert [(n["nodeID"], n["available"], n["allocations"]) for n in main["nodes"]] == [
        ("n1", {"vcore": 4}, ["k"]),
        ("n2", {"vcore": 5}, []),
    ]
    assert main["nodes"][1]["foreignAllocations"] == {"f": {"vcore": 5}}
    assert main["reservations"] == [
        {"nodeID": "n1", "allocationKey": "daemon", "applicationID": "y", "since": NOW, "required": True},
        {"nodeID": "n2", "allocationKey": "waits", "applicationID": "y", "since": NOW, "required": False},
    ]


def test_a_dump_has_applications_with_their_asks_and_allocations() -> None:
    (manager,) = busy().api.state_dump()["resourceManagers"]
    x, y = manager["partitions"][0]["applications"]
    assert [x[key] for key in ("applicationID", "queueName", "user", "groups")] == ["x", "root.a", "u", ["g"]]
    assert [entry["applicationState"] for entry in x["stateLog"]] == ["Accepted", "Running"]
    assert x["allocations"] == [
        {
            "allocationKey": "k",
            "allocationID": "k",
            "requestTime": NOW,
            "allocationTime": NOW,
            "resource": {"vcore": 6},
            "priority": 3,
            "taskGroupName": "",
            "placeholder": False,
            "requiredNode": None,
            "allocationTags": {"t": "1"},
            "nodeID": "n1",
            "preempted": False,
            "released": False,
        }
    ]
    assert [(ask["allocationKey"], ask["requiredNode"]) for ask in y["requests"]] == [("waits", None), ("daemon", "n1")]


def test_a_dump_has_completed_applications() -> None:
    b = Bench(config("a"))
    b.node("n1", vcore=1)
    b.app("x")
    b.ask("x", "k", vcore=1)
    b.run()
    b.release("x", "k")
    b.run(after=40)
    (manager,) = b.api.state_dump()["resourceManagers"]
    (gone,) = manager["partitions"][0]["terminated"]
    assert (gone["applicationState"], gone["finishedTime"]) == ("Completed", NOW + 30 * SECOND_NS)


def test_the_same_state_gives_the_same_text() -> None:
    first, second = (json.dumps(busy(order).api.state_dump()) for order in (1, -1))
    assert first == second


def test_a_dump_is_empty_at_first() -> None:
    assert SchedulerAPI().state_dump() == {"timestamp": 0, "resourceTypes": ["memory", "vcore"], "resourceManagers": []}


def test_events_that_wait_are_counted() -> None:
    b = Bench(config("a"), settings={"event.requestCapacity": "1"})
    b.register(Listener())
    (manager,) = b.api.state_dump()["resourceManagers"]
    assert manager["events"] == {"waiting": 1, "dropped": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"pods": [1, {"a": null}]}', {"pods": [1, {"a": None}]}),
        ("{}", {}),
        ("{", "Input data was truncated"),
        ("[1]", "Expected `object`, got `array`"),
        (ValueError("no"), "ValueError: no"),
    ],
)
def test_the_resource_managers_own_part(text: str | Exception, expected: Any) -> None:
    b = Bench(config("a"))
    b.register(Dumps(text))
    (manager,) = b.api.state_dump()["resourceManagers"]
    found = manager["rmDiagnostics"]
    if isinstance(expected, str):
        assert list(found) == ["error"] and expected in found["error"]
        assert len(b.api.callback_errors) == 1
    else:
        assert found == expected
    json.dumps(found)


def test_a_dump_is_not_taken_from_within_a_callback() -> None:
    class Nested(ResourceManagerCallback):
        def get_state_dump(self) -> str:
            return json.dumps(b.api.state_dump())

    b = Bench(config("a"))
    b.register(Nested())
    (manager,) = b.api.state_dump()["resourceManagers"]
    assert "called from within a callback" in manager["rmDiagnostics"]["error"]
