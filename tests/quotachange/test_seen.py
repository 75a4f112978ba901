"""The traces of a lowered quota: the event, the state dump, the check of start times."""

from __future__ import annotations

import pytest

from licorne import InvariantError
from licorne.core.partition import Partition
from licorne.core.preemption.quota_start import QuotaChanges
from plugins.listener import heard, listening
from quotachange.quotas import cluster, fill, queue, text


def test_the_event_at_the_end_of_a_run() -> None:
    bench, listener = listening(text(queue("a", "20", "", "60s")))
    bench.node("n1", vcore=100)
    fill(bench, "root.a", 4, resource={"vcore": 3})
    bench.reload(text(queue("a", "7", "", "60s")))
    heard(bench, listener)
    bench.run(after=60)
    assert heard(bench, listener) == [
        "REQUEST a-3 NONE a {vcore: 3} Preempted by Quota change enforcement process in root.a",
        (
            "QUEUE root.a SET QUEUE_PREEMPTION {vcore: 7} Quota Preemption results summary: preemptable resources: "
            "map[vcore:5], claimed resources: map[vcore:3], selected victims: 1, preempted victims: 1"
        ),
    ]


def test_the_state_dump_shows_start_times() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "9", "", "60s")))

    def shown() -> list[object]:
        dump = bench.api.state_dump()
        queues = dump["resourceManagers"][0]["partitions"][0]["queues"]
        return [entry["quotaPreemptionStartTime"] for entry in queues]

    assert shown() == [None, bench.partition.now + 60_000_000_000]
    bench.release("a", "a-0")  # it is within its max
    assert shown() == [None, None]


def test_a_start_time_that_no_deadline_reaches_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuotaChanges, "_arm", lambda _self: None)
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    with pytest.raises(InvariantError, match=r"root\.a: a start time, but no deadline"):
        bench.reload(text(queue("a", "9", "", "60s")))


def test_a_start_time_of_a_removed_queue_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuotaChanges, "removed", lambda _self: None)
    bench = cluster(text(queue("a", "20", "", "60s"), "b"))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "7", "", "60s"), "b"))
    bench.reload(text("b"))
    bench.remove("a")
    with pytest.raises(InvariantError, match=r"root\.a: a start time, but the queue is gone"):
        bench.run(after=20)


def test_a_partition_keeps_the_newest_evictions() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    partition: Partition = bench.partition
    assert partition.evictions.maxlen == 1_000
