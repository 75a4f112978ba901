"""A small workload with two queues, guarantees, an eviction and asks that are never placed, for tests of reports."""

from __future__ import annotations

from typing import Any

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {guaranteed: {vcore: 2}}
          - name: b
            resources: {guaranteed: {vcore: 2}, max: {vcore: 4}}
"""


def app(name: str, queue: str, user: str = "ann", **more: Any) -> dict[str, Any]:
    return {"t": "app", "id": name, "queue": f"root.{queue}", "user": user, **more}


def ask(key: str, app: str, at: float, vcore: int = 1000, **more: Any) -> dict[str, Any]:
    return {"t": "ask", "key": key, "app": app, "at": at, "res": {"vcore": vcore}, **more}


def head(nodes: int = 2) -> list[dict[str, Any]]:
    return [
        {"t": "meta", "name": "small", "version": 2},
        {"t": "config", "yaml": QUEUES},
        *({"t": "node", "id": f"n{index}", "res": {"vcore": 2000}} for index in range(nodes)),
    ]


def small() -> list[dict[str, Any]]:
    """Queue b fills both nodes for 100 s; a comes at 40 s and waits; one ask is too large for any node."""
    return [
        *head(),
        app("x", "b", at=0),
        *(ask(f"x{index}", "x", 0, duration_s=100) for index in range(4)),
        app("y", "a", "<bob> & co", at=40),
        *(ask(f"y{index}", "y", 40, duration_s=50) for index in range(3)),
        ask("huge", "y", 50, 9000, duration_s=1),
    ]
