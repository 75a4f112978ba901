"""A workload that is played to a yunikorn-core, and what a capture of it must have in common with it.

`python -m capture.played FILE` (with `tests` on the path) plays it to the program of the folder `yunikorn`, and records what
its REST answers meanwhile: `tests/data/yunikorn-rest.jsonl.gz`.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from licorne.workload import lines
from licorne.workload.workload import Workload
from yunikorn.original import ask, beginning, playing

BEGINS_S: Final = 1.5
"""When the first ask comes: by then a capture has begun."""
LASTS_S: Final = 8.0
EVERY_S: Final = 0.2
PATHS: Final = (
    "/ws/v1/clusters",
    "/ws/v1/config",
    "/ws/v1/partition/default/queues",
    "/ws/v1/partition/default/nodes",
    "/ws/v1/partition/default/applications/active",
    "/ws/v1/partition/default/applications/rejected",
    "/ws/v1/partition/default/applications/completed",
)
RECORDED: Final = Path(__file__).resolve().parents[1] / "data" / "yunikorn-rest.jsonl.gz"
MOST_OFF_S: Final = 0.6
"""By how much a duration may be off: the scheduler decides every tenth of a second, and machines are slow at times."""


def workload() -> list[lines.Line]:
    """Return pods that run for a while, or for less than the time between two polls, or never; and nodes that change."""
    made: list[lines.Line] = [*beginning(), lines.Foreign(at=0.3, key="daemon", node="n1", res={"vcore": 200})]
    for number in range(18):
        user = ("ann", "bob", "cem")[number % 3]
        pod = ask(BEGINS_S + number / 10, f"pod-{number:02}", f"of-{user}", 600 + 10 * number, prio=number % 4)
        pod.duration_s = (1.5, 0.3, 0.8)[number % 3]
        made.append(pod)
    made += [
        ask(2.0, "never", "of-bob", 30_000),
        lines.App(at=2.2, id="of-dan", queue="root.teams.red", user="dan", groups=("ops",)),
        lines.App(at=2.2, id="refused", queue="root.nowhere", user="dan", groups=("ops",)),
        ask(2.3, "on", "of-dan", 500, tags={"kubernetes.io/meta/namespace": "tools"}),
        lines.NodeDrain(at=2.5, id="n2"),
        lines.Release(at=4.0, app="of-bob", key="never"),
        lines.NodeUndrain(at=4.5, id="n2"),
        lines.Node(at=4.8, id="late", res={"vcore": 1000}),
        lines.NodeRemove(at=6.4, id="late"),
    ]
    return sorted(made[:2], key=lambda line: type(line) is not lines.Meta) + sorted(
        made[2:], key=lambda line: line.at or 0
    )


def assert_agrees(captured: Workload, played: list[lines.Line], *, all_seen: bool = False) -> None:
    """Check that a capture has the same pods with the same amounts, queues and users, and about the same times."""
    found = {line.key: line for line in captured.lines if isinstance(line, lines.Ask)}
    expected = {line.key: line for line in played if isinstance(line, lines.Ask)}
    assert found.keys() == expected.keys()
    assert [line.id for line in captured.lines if isinstance(line, lines.Node)] == ["n0", "n1", "n2", "late"]
    changes = (lines.NodeDrain, lines.NodeUndrain, lines.NodeRemove)
    assert [type(line) for line in captured.lines if isinstance(line, changes)] == list(changes)
    assert [(line.key, line.node) for line in captured.lines if isinstance(line, lines.Foreign)] == [("daemon", "n1")]
    for key, theirs in expected.items():
        ours = found[key]
        assert (ours.app, ours.res) == (theirs.app, theirs.res), key
        assert ours.prio in ({theirs.prio} if all_seen else {theirs.prio, 0}), key
        if theirs.duration_s is None:
            assert ours.duration_s is None, key
        else:
            assert ours.duration_s is not None, key
            assert abs(ours.duration_s - theirs.duration_s) < MOST_OFF_S, key
    assert [(line.app, line.key) for line in captured.lines if isinstance(line, lines.Release)] == [("of-bob", "never")]
    apps = {line.id: line for line in captured.lines if isinstance(line, lines.App)}
    for line in played:
        if isinstance(line, lines.App) and line.id != "refused":
            ours_app = apps[line.id]
            assert (ours_app.queue, ours_app.user, ours_app.groups) == (line.queue, line.user, line.groups)
    assert apps["of-dan"].tags == {"namespace": "tools"}


def record(file: Path) -> None:
    """Play the workload, and write what REST answers: a line for each change of an answer, and for each line of the stream."""
    written: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, playing(workload(), Path(folder)) as core:
        began = time.monotonic()

        def follow() -> None:
            with urllib.request.urlopen(f"{core.url}/ws/v1/events/stream?count=1000") as stream:  # noqa: S310
                while line := stream.readline():
                    written.append({"at": time.monotonic() - began, "path": "stream", "body": line.decode()})

        threading.Thread(target=follow, daemon=True).start()
        last: dict[str, str] = {}
        while time.monotonic() - began < LASTS_S:
            for path in PATHS:
                headers = {"Accept": "application/json"}
                with urllib.request.urlopen(urllib.request.Request(core.url + path, headers=headers)) as answer:  # noqa: S310
                    body = answer.read().decode()
                if last.get(path) != body:
                    last[path] = body
                    written.append({"at": time.monotonic() - began, "path": path, "body": body})
            time.sleep(EVERY_S)
    data = "".join(json.dumps(line) + "\n" for line in written)
    file.write_bytes(gzip.compress(data.encode(), 9, mtime=0))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
