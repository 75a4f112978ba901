"""Faults to plant in the Kubernetes side: random schedules of a cluster must notice each of them.

Run as a program, `faults.py NAME`, this plants one fault, plays schedules until one fails, and prints what it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from kube import schedules
from licorne.kube.binding import Binder
from licorne.kube.manager import Manager
from licorne.kube.pauses import PauseGuard
from licorne.kube.reflector import Reflector

ENOUGH = 400
"""A fault that is not caught in so many schedules is not caught."""


def _given_back_without_looking(_sound: Any) -> Any:
    async def bind(self: Binder, command: Any) -> str | None:
        try:
            await self._client.bind(command.namespace, command.name, command.uid, command.node)
        except Exception as error:  # noqa: BLE001  that is the fault
            return str(error)
        return None

    return bind


def _nothing(_sound: Any) -> Any:
    return lambda *_arguments: None


def _published_without_comparing(_sound: Any) -> Any:
    def publish(self: Reflector[Any], fresh: dict[tuple[str, str], Any], version: str) -> None:
        for new in fresh.values():
            self._put(new)
        self._advance(version)
        self._listed = True
        self.synced.set()

    return publish


def _read_whatever_happened(_sound: Any) -> Any:
    def was_read(self: PauseGuard, _pauses: int) -> None:
        self._paused.clear()
        self._recent.set()

    return was_read


def _counted_when_seen(_sound: Any) -> Any:
    def bound(self: Manager, uid: str) -> None:
        self._take_back(uid)

    return bound


class _Cached:
    """A source that is content with what a cache of the API server has."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def list_page(self, kind: Any, *, newest: bool, **more: Any) -> Any:
        return self._source.list_page(kind, **more)

    def watch(self, kind: Any, version: str = "", **more: Any) -> Any:
        return self._source.watch(kind, version or "0", **more)


def _read_from_caches(sound: Any) -> Any:
    async def run(self: Any) -> None:
        self._source = _Cached(self._source)
        await sound(self)

    return run


FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "a binding whose answer was lost gives its place back": (Binder, "_bind", _given_back_without_looking),
    "pods that are gone keep their places": (Manager, "pod_gone", _nothing),
    "a list read anew removes nothing": (Reflector, "_publish", _published_without_comparing),
    "a pod that could not be bound is forgotten": (Manager, "ask_again", _nothing),
    "a place is counted when the API server shows the binding": (Manager, "bound", _counted_when_seen),
    "lists are read from a cache that may be behind": (Reflector, "run", _read_from_caches),
    "a pause goes unnoticed": (PauseGuard, "check", lambda _sound: lambda _self: True),
    "a pause while the cluster is read again goes unnoticed": (PauseGuard, "was_read", _read_whatever_happened),
    "a decision of before a pause is forgotten": (Manager, "outdated", _nothing),
}


def caught(name: str) -> str:
    """Plant the fault and say after how many schedules what showed it, or that nothing did."""
    where, method, broken = FAULTS[name]
    with patch.object(where, method, broken(getattr(where, method))):
        for seed in range(1, ENOUGH + 1):
            try:
                schedules.play(seed)
            except (AssertionError, ExceptionGroup) as error:
                return f"caught after {seed} schedules: {_first_line(error)}"
    return "not caught"


def _first_line(error: BaseException) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return str(error).partition("\n")[0] or type(error).__name__


if __name__ == "__main__":
    sys.stdout.write(f"{caught(sys.argv[1])}\n")
