"""The state dump of a running yunikorn-core, restored, has the queues, usage and waiting asks that the core's REST shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cli.conftest import Command, licorne
from licorne.answers import shares
from licorne.core.partition import Partition
from licorne.state.restore import restore
from licorne.state.restored import Restored
from licorne.state.source import fetch
from licorne.workload import lines
from yunikorn.original import PROGRAM, REASON, USERS, Original, ask, beginning, playing

__all__ = ["licorne"]

pytestmark = [pytest.mark.gate, pytest.mark.skipif(not PROGRAM.exists(), reason=REASON)]


def _workload() -> list[lines.Line]:
    made = beginning()
    for number in range(21):
        user = list(USERS.values())[number % 3]
        prio = 10 if number == 20 else 0
        made.append(ask(0.5, f"pod-{number:02}", f"of-{user}", 900 + 10 * number, prio=prio, pre_self=True))
    made += [
        lines.Foreign(at=0.2, key="daemon", node="n1", res={"vcore": 500}),
        ask(0.6, "big", "of-cem", 20_000),
        ask(0.6, "short", "of-bob", 100, duration_s=0.2),
        lines.NodeDrain(at=1.5, id="n2"),
    ]
    return made


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    with playing(_workload(), tmp_path_factory.mktemp("played")) as original:
        original.played()
        original.settles()
        yield original


def restored(core: Original) -> tuple[Restored, Partition]:
    found = restore(fetch(core.url))
    return found, found.partitions[0]


def shown_queues(queue: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {queue["queuename"]: queue}
    for child in queue.get("children", ()):
        found |= shown_queues(child)
    return found


def amounts(found: dict[str, int] | None) -> dict[str, int]:
    return {name: amount for name, amount in (found or {}).items() if amount}


def test_it_has_the_queues_of_the_core(core: Original) -> None:
    shown = shown_queues(core.partition("queues"))
    _, partition = restored(core)
    found = {queue.path: queue for queue in partition.tree.queues()}
    assert set(found) >= set(shown) > {"root.a", "root.b", "root.teams.red"}
    for path, theirs in shown.items():
        ours = found[path]
        assert amounts(ours.allocated_resource()) == amounts(theirs.get("allocatedResource")), path
        assert amounts(ours.pending_resource()) == amounts(theirs.get("pendingResource")), path
        assert amounts(ours.guaranteed_resource()) == amounts(theirs.get("guaranteedResource")), path
        if path != "root":
            assert amounts(ours.max_resource()) == amounts(theirs.get("maxResource")), path


def test_it_has_the_waiting_asks_and_the_allocations_of_the_core(core: Original) -> None:
    shown = core.applications()
    _, partition = restored(core)
    waiting = {(key, app) for key, app, _ in partition.waiting()}
    assert waiting == {(each["allocationKey"], app) for app in shown for each in shown[app].get("requests", ())}
    assert ("big", "of-cem") in waiting
    for name, theirs in shown.items():
        ours = partition.applications[name]
        assert {key: each.node.id for key, each in ours.allocations.items() if each.node is not None} == {
            each["allocationKey"]: each["nodeId"] for each in theirs["allocations"]
        }
        assert (ours.queue.path, ours.user) == (theirs["queueName"], theirs["user"])


def test_shares_are_those_of_the_cores_users(core: Original) -> None:
    answer = shares(restored(core)[0], "default")
    [found] = answer.partitions
    for each in core.partition("usage/users"):
        name = each["userName"]
        ours = {row.resource: row.used for row in found.people if (row.kind, row.name) == ("user", name) and row.used}
        assert ours == amounts(each["queues"].get("resourceUsage")), name


def test_why_explains_what_the_core_keeps_waiting(core: Original, licorne: Command) -> None:
    done = licorne("why", "big", "--from", core.url, "--no-prove")
    assert done.status == 0, done.err
    assert "vcore" in done.out
    everything = licorne("why", "--from", core.url)
    assert f"{core.count('requests')} asks waiting, {core.count('allocations')} allocations running" in everything.out


def test_dump_has_no_member_that_the_specification_lacks(core: Original) -> None:
    assert fetch(core.url).unknown == ()
