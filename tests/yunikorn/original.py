"""A running yunikorn-core: the program of the folder `yunikorn`, which plays a workload to it in real time."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from common.waiting import WAIT_S, wait_for
from licorne.workload import lines

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "yunikorn" / "yunikorn"
REASON = "needs yunikorn-core: make yunikorn, which needs Go"


class Original:
    """A yunikorn-core that answers REST at `url`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def get(self, path: str) -> Any:
        """Return what REST answers."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=WAIT_S) as answer:  # noqa: S310  its own address
            return json.loads(answer.read())

    def partition(self, path: str) -> Any:
        """Return what REST answers about the default partition."""
        return self.get(f"/ws/v1/partition/default/{path}")

    def applications(self) -> dict[str, dict[str, Any]]:
        """Return the active applications by id."""
        return {each["applicationID"]: each for each in self.partition("applications/active")}

    def count(self, what: str) -> int:
        """Return how many `requests` or `allocations` all active applications have."""
        return sum(len(each.get(what, ())) for each in self.applications().values())

    def played(self) -> None:
        """Wait until the last line of the workload has been sent."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "played\n"

    def comes(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        wait_for(holds)

    def settles(self) -> None:
        """Wait until it has decided all that it can: it decides every tenth of a second, and reserves after 2 seconds."""
        before: list[int] = []
        while before != (now := [self.count("allocations"), self.count("requests")]):
            before = now
            time.sleep(2.5)


@contextmanager
def playing(workload: list[lines.Line], folder: Path, *, speed: float = 1.0) -> Iterator[Original]:
    """Play a workload to a yunikorn-core of its own, which ends with the `with` block."""
    file = folder / "played.jsonl"
    file.write_bytes(b"".join(lines.encode(line) + b"\n" for line in workload))
    command = [str(PROGRAM), "-workload", str(file), "-speed", str(speed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told, _, url = process.stdout.readline().strip().partition(" ")
            assert told == "listening"
            yield Original(process, url)
        finally:
            process.communicate()  # the end of its input ends it


QUEUES = """\
partitions:
  - name: default
    placementrules:
      - name: provided
        create: false
    limits:
      - limit: one of them
        users: [bob]
        maxresources: {vcore: 5}
      - limit: everybody
        users: ["*"]
        maxresources: {vcore: 9}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
            resources:
              guaranteed: {vcore: 4}
              max: {vcore: 6}
          - name: b
            resources:
              guaranteed: {vcore: 2}
          - name: teams
            parent: true
            queues:
              - name: red
                maxapplications: 3
"""
USERS = {"root.a": "ann", "root.b": "bob", "root.teams.red": "cem"}


def ask(at: float, key: str, app: str, vcore: int, **more: Any) -> lines.Ask:
    """Return an ask of so many thousandths of a core, and memory in proportion."""
    return lines.Ask(at=at, key=key, app=app, res={"vcore": vcore, "memory": vcore << 20, "pods": 1}, **more)


def beginning(nodes: int = 3) -> list[lines.Line]:
    """Return the head of a workload: the queues above, nodes of 4 cores, and an application in each leaf."""
    head = [lines.Meta(name="played", version=2), lines.Config(yaml=QUEUES)]
    made = [
        lines.Node(
            at=0, id=f"n{i}", res={"vcore": 4000, "memory": 8 << 30, "pods": 110}, attrs={"si/hostname": f"n{i}"}
        )
        for i in range(nodes)
    ]
    apps = [
        lines.App(at=0, id=f"of-{user}", queue=queue, user=user, groups=("dev", user)) for queue, user in USERS.items()
    ]
    return [*head, *made, *apps]


def parsed(data: bytes) -> list[dict[str, Any]]:
    """Return the lines of a workload file as objects."""
    return [msgspec.json.decode(line) for line in data.splitlines()]
