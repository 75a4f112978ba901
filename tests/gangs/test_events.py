"""Events of gangs with placeholders: docs/spec/events.md, section 3."""

from __future__ import annotations

from core.bench import Bench, config
from licorne.si.messages import AddApplication, Allocation, NodeAction, Termination
from plugins.listener import Listener, heard, listening

REPLACED = Termination.PLACEHOLDER_REPLACED
TIMEOUT = Termination.TIMEOUT


def gang(style: str = "Soft") -> tuple[Bench, Listener]:
    """A gang whose placeholder p is placed on n1; the events so far are dropped."""
    b, listener = listening(config("a"))
    b.node("n1", vcore=10)
    total = {"vcore": 4}
    b.send(AddApplication(application_id="x", queue="root.a", user="u", placeholder_ask=total, gang_style=style))
    member(b, "p", placeholder=True)
    b.run()
    heard(b, listener)
    return b, listener


def member(b: Bench, key: str, *, placeholder: bool = False) -> None:
    b.send(Allocation(key=key, application_id="x", resource={"vcore": 2}, task_group="g", placeholder=placeholder))


def test_a_replacement_on_the_same_node_causes_no_event_of_the_node() -> None:
    b, listener = gang()
    member(b, "r")
    b.run()
    assert heard(b, listener) == ["APP x ADD APP_REQUEST r {vcore: 2}"]
    b.release("x", "p", termination=REPLACED)
    assert heard(b, listener) == [
        "APP x REMOVE ALLOC_REPLACED p {vcore: 2}",
        "APP x ADD APP_ALLOC r {vcore: 2}",
        "APP x REMOVE REQUEST_CANCEL p {vcore: 2}",
    ]


def test_a_hard_timeout() -> None:
    b, listener = gang("Hard")
    member(b, "r")
    heard(b, listener)
    b.run(after=15 * 60)
    assert heard(b, listener) == [
        "APP x SET APP_FAILING ResourceReservationTimeout",
        "APP x REMOVE REQUEST_TIMEOUT r {vcore: 2}",
    ]
    b.release("x", "p", termination=TIMEOUT)
    assert heard(b, listener) == [
        "APP x REMOVE ALLOC_TIMEOUT p {vcore: 2}",
        "NODE n1 REMOVE NODE_ALLOC p {vcore: 2}",
        "APP x SET APP_FAILED",
        "QUEUE root.a REMOVE QUEUE_APP x",
        "APP x REMOVE",
    ]


def test_the_node_of_a_replacement_on_its_way_is_lost() -> None:
    b, listener = gang()
    member(b, "r")
    b.run()
    heard(b, listener)
    b.node("n1", NodeAction.DECOMISSION)
    assert [line for line in heard(b, listener) if " r " in line] == []
