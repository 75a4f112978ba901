"""Answers are about the moment that was asked: all doors tell the same numbers, and a decision that is still to come counts nowhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import licorne
from answers.dumps import full_state
from core.bench import config
from licorne.answers import AskAnswer, Home, Overview, running_partitions, why
from licorne.cli import run
from licorne.cli.configurations import reports
from licorne.cli.why_text import show
from licorne.core.gangs.atomic import GROUPS_TAG
from licorne.si.messages import Allocation
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from licorne.state.restored import UnknownNameError
from rest.world import World

CONFIG = config(
    "a properties: {application.sort.policy: fifo}, resources: {max: {vcore: 6}}",
    "b resources: {guaranteed: {vcore: 2}}",
    more="placementrules: [{name: provided}]",
)


def _mixed() -> World:
    """Return a cluster with running asks, waiting ones, reservations, and placeholders; and one ask that would be placed next."""
    world = World().register(text=CONFIG, **{"reservation.enabled": "true", "reservation.delay": "2s"})
    world.node("n1", vcore=4_000).node("n2", vcore=4_000).node("n3", vcore=3_000)
    world.application("gang", "root.a", "alice", placeholder_ask={"vcore": 3_000})
    for number in range(3):
        world.submit(
            Allocation(
                key=f"p{number}", application_id="gang", resource={"vcore": 1_000}, task_group="g", placeholder=True
            )
        )
    world.application("small", "root.b", "bob").ask("s0", "small", vcore=2_000)
    world.schedule(1.0)
    world.application("large", "root.b", "bob").ask("l0", "large", vcore=4_000).ask("l1", "large", vcore=9_000)
    world.schedule(1.0)
    world.schedule(5.0)  # a node is reserved by now
    assert world.api.cluster.partition("mycluster").reservations
    world.ask("next", "small", vcore=100)
    return world


def _told(page: str) -> tuple[int, int]:
    found = re.search(r"(\d+) pods wait, (\d+) run", page)
    assert found is not None, page
    return int(found[1]), int(found[2])


def _used_and_pending(shares: dict[str, Any]) -> dict[str, tuple[int, int]]:
    [part] = shares["partitions"]
    return {row["queue"]: (row["used"], row["pending"]) for row in part["queues"] if row["resource"] == "vcore"}


def _tree(queue: dict[str, Any]) -> dict[str, tuple[int, int]]:
    found = {
        queue["queuename"]: (
            queue.get("allocatedResource", {}).get("vcore", 0),
            queue.get("pendingResource", {}).get("vcore", 0),
        )
    }
    for child in queue.get("children") or ():
        found |= _tree(child)
    return found


def test_all_doors_tell_the_same_numbers() -> None:
    world = _mixed()
    apps = world.get("/ws/v1/partition/default/applications/active")
    apps = [world.get(f"/ws/v1/partition/default/application/{each['applicationID']}") for each in apps]
    counts = sum(len(app.get("requests", ())) for app in apps), sum(len(app.get("allocations", ())) for app in apps)
    assert counts == (3, 4)
    asked = world.get("/api/v1/why")
    assert (asked["waiting"], asked["running"]) == counts
    assert asked["notes"] == []  # nothing is left out, assumed or different
    assert _told(world.request("GET", "/why").text) == counts
    for exact in (False, True):
        restored = restore(read_dump(full_state(world.api, world.now, exact=exact)))
        overview = why(Home(restored))
        assert isinstance(overview, Overview)
        assert (overview.waiting, overview.running) == counts
    queues = _tree(world.get("/ws/v1/partition/default/queues"))
    assert _used_and_pending(world.get("/api/v1/shares")) == queues
    assert queues["root"] == (5_000, 13_100)


def test_what_would_be_placed_next_waits_and_nothing_is_in_its_way() -> None:
    world = _mixed()
    shown = "Nothing that the scheduler's state shows is in its way; node selectors, affinity, taints and volumes are not in it."
    for exact, said in ((False, shown), (True, "Nothing is in its way, it has not had its turn.")):
        home = Home(restore(read_dump(full_state(world.api, world.now, exact=exact))))
        answer = why(home, "next")
        assert isinstance(answer, AskAnswer)
        assert answer.chain is not None
        assert (answer.sentence, answer.chain.reasons[0].text) == (said, said)
        assert (answer.state, answer.has_constraints) == ("waits", exact)
        assert answer.proposals is not None and answer.proposals.by_itself
        assert answer.proposals.after_s == 0


def test_under_another_configuration_the_next_decisions_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = _mixed()
    (tmp_path / "dump.json").write_bytes(full_state(world.api, world.now))
    (tmp_path / "queues.yaml").write_text(CONFIG)
    under = ("--config", str(tmp_path / "queues.yaml"))
    for options, counts in (((), (3, 4)), (under, (2, 5))):
        run(["why", "--from", str(tmp_path / "dump.json"), "--json", *options])
        answer = json.loads(capsys.readouterr().out)
        assert (answer["waiting"], answer["running"]) == counts
    answer = licorne.explain(tmp_path / "dump.json", config=CONFIG)
    assert isinstance(answer, Overview) and answer.waiting == 2


@pytest.mark.parametrize(
    ("enabled", "then"),
    [
        (True, "in 5 s allocations are evicted"),
        (False, "it starts nothing new until that has ended; nothing is evicted"),
    ],
)
def test_a_max_that_is_lowered_below_what_is_used_is_told(enabled: bool, then: str, tmp_path: Path) -> None:
    before = CONFIG.replace("placementrules", f"preemption: {{quotapreemptionenabled: {enabled}}}, placementrules")
    before = before.replace("policy: fifo", "policy: fifo, quota.preemption.delay: 5s")
    world = World().register(text=before).node("n1", vcore=8_000)
    world.application("big", "root.a", "alice").ask("k0", "big", vcore=6_000).schedule(1.0)
    lowered = tmp_path / "q.yaml"
    lowered.write_text(before.replace("max: {vcore: 6}", "max: {vcore: 2}"))
    text = f"root.a uses 4 vcore above its max; {then}"
    restored = restore(read_dump(full_state(world.api, world.now, exact=True)))
    (report,) = (report for _, report in reports(lowered, running_partitions(restored)))
    assert [each.message for each in report.warnings if each.rule == "usage-above-max"] == [text]
    answer = licorne.explain(world.api, config=lowered.read_text())
    assert [str(note) for note in answer.notes if note.kind == "above max"] == [f"above max: {text}"]
    assert not [note for note in licorne.explain(world.api).notes if note.kind == "above max"]


def test_why_says_the_reason_of_an_application_that_was_rejected() -> None:
    world = World().register(text=CONFIG).node("n1", vcore=8_000)
    world.application("gang", "root.a", "alice", placeholder_ask={"vcore": 30_000})
    home = Home(restore(read_dump(full_state(world.api, world.now, exact=True))))
    with pytest.raises(
        UnknownNameError, match=r"^application gang was rejected: queue root.a cannot fit application gang"
    ):
        why(home, "gang")
    with pytest.raises(UnknownNameError, match="did you mean 'gang'"):
        why(home, "gang-x")


def test_what_a_whole_gang_lacks_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    world = World().register(text=CONFIG).node("n1", vcore=8_000)
    world.application("first", "root.a", "alice").ask("f", "first", vcore=3_000).schedule(1.0)
    groups = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "2"}}]'
    world.application("gang", "root.a", "alice", tags={GROUPS_TAG: groups, "gang.scheduling": "atomic"})
    for number in range(2):
        member = Allocation(key=f"g{number}", application_id="gang", resource={"vcore": 2_000}, task_group="w")
        world.submit(member)
    answer = licorne.explain(world.api, "g0")
    assert isinstance(answer, AskAnswer)
    told = "The max of queue root.a leaves too little: 1 vcore missing. The amounts are those of the whole gang."
    assert answer.sentence == told
    show(answer)
    assert "the way from root to a node, for 2 cores, one member of the gang" in capsys.readouterr().out
