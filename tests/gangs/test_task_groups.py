"""Which asks belong to a task group, which placeholder a real ask replaces, and how many groups are remembered.

Source: docs/spec/scheduling.md, section 9.4; docs/understand/gangs.md.
"""

from __future__ import annotations

from gangs.gang import TIMEOUT, Gangs
from licorne.core.gangs.placeholders import GROUPS_KEPT

TAKES = "released {} PLACEHOLDER_REPLACED: replacing allocationKey: {}"


def on(node: str) -> dict[str, str]:
    """The tag of an ask that requires the node."""
    return {"yunikorn.apache.org/requiredNode": node}


def on_two_nodes() -> Gangs:
    """A gang whose placeholders p1 and p2 fill the nodes n1 and n2."""
    b = Gangs(2, 2)
    b.gang(total=4)
    b.places("p1", 2, tags=on("n1"))
    b.places("p2", 2, tags=on("n2"))
    assert b.run() == "p1@n1 p2@n2"
    return b


def test_an_ask_that_requires_a_node_replaces_the_placeholder_on_that_node() -> None:
    """Difference 120: the original takes the first placeholder, p1, and the real ask runs on n1."""
    b = on_two_nodes()
    b.member("r", 2, tags=on("n2"))
    assert b.hear() == [TAKES.format("p2", "r")]
    assert b.confirm("p2") == ["new r@n2"]


def test_an_ask_that_requires_a_node_without_placeholders_uses_free_room_there() -> None:
    """Difference 120: p1 is replaced, as the first that is large enough, but the real ask runs on the node it requires."""
    b = on_two_nodes()
    b.node("n3", vcore=2)
    b.member("r", 2, tags=on("n3"))
    assert b.hear() == [TAKES.format("p1", "r")]
    assert b.confirm("p1") == ["new r@n3"]


def test_an_ask_that_requires_a_full_node_without_placeholders_replaces_none() -> None:
    """Difference 120: the original replaces p1, and the real ask runs on n1."""
    b = on_two_nodes()
    b.node("n3", vcore=1)
    b.node("n4", vcore=2)  # it has room, and is not the required node either
    b.member("r", 2, tags=on("n3"))
    assert b.hear() == []
    assert b.pending() == {"vcore": 2}


def test_a_placeholder_without_a_task_group_is_an_ask_like_others() -> None:
    """Difference 121: the original drops it without a message."""
    b = Gangs(10)
    b.gang()
    assert b.member("p", 2, group="", placeholder=True) == ["x Accepted: runApplication"]
    assert b.pending() == {"vcore": 2}
    assert b.hear() == ["x Running: runApplication", "new p@n1"]
    b.member("r", 2, group="")  # it does not wait for p, nor replace it
    assert b.run() == "r@n1"
    assert b.allocated("root.a") == {"vcore": 4}


def reported(b: Gangs) -> list[str]:
    """The names of the task groups that the state dump reports for the application x."""
    (manager,) = b.api.state_dump()["resourceManagers"]
    (application,) = manager["partitions"][0]["applications"]
    return [group["taskGroupName"] for group in application["placeholderData"]]


def test_the_oldest_task_group_without_placeholders_is_forgotten_when_there_are_too_many() -> None:
    """Difference 105: the original reports all task groups that ever had placeholders."""
    b = Gangs(GROUPS_KEPT + 1)
    b.gang()
    names = [f"g{number}" for number in range(GROUPS_KEPT)]
    for name in names:
        b.member(f"p-{name}", placeholder=True, group=name)
    b.run()
    for name in ("g1", "g2"):
        b.confirm(f"p-{name}", TIMEOUT)
    assert reported(b) == names  # 100 are not too many
    b.member("p-new", placeholder=True, group="new")
    assert reported(b) == [name for name in names if name != "g1"] + ["new"]
