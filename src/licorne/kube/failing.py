"""Keeps the requests of namespaces that fail from taking all workers.

An admission webhook that is down fails each write in the namespaces that it is for, and an answer may take half a minute.
Repeating a request later is not enough then: first attempts alone would keep every worker busy, and pods of other
namespaces would wait. So a namespace fails from such an answer to the next good one, and requests of namespaces that fail
get only some of the workers. While nothing fails, this costs a look at an empty dictionary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FailingNamespaces(Generic[T]):
    """Says whether a request may be sent now, and keeps it otherwise.

    Parameters:
        workers: how many requests are under way at most.
        put_back: takes a request that was kept, to be begun anew.

    At most half of the workers have requests of namespaces that fail. A worker does the following. `kept` is empty while
    nothing fails, and then neither method need be called.

        if failing.kept and failing.keeps(namespace, request):
            continue
        failing.at[worker] = namespace
        ...
        failing.at[worker] = ""
        if fails or failing.kept:
            failing.ended(namespace, fails)
    """

    def __init__(self, workers: int, put_back: Callable[[T], None]) -> None:
        self.at = [""] * workers
        """The namespace of the request that each worker has; "": it has none."""
        self.kept: dict[str, deque[T]] = {}
        """The requests that are kept back, by namespace; each namespace that fails is a key, also if it has none."""
        self._at_most = max(workers // 2, 1)
        self._put_back = put_back

    def __len__(self) -> int:
        """Return how many requests are kept, or are under way."""
        return sum(map(len, self.kept.values())) + len(self.at) - self.at.count("")

    def keeps(self, namespace: str, request: T) -> bool:
        """Return whether a request is kept: it is put back when a worker has ended another one."""
        if namespace not in self.kept or not self._are_full():
            return False
        self.kept[namespace].append(request)
        return True

    def ended(self, namespace: str, fails: bool | None) -> None:
        """Note that a request of a namespace has ended. `fails`: whether its answer shows that the namespace fails; None: neither.

        With None, as when the last pod is gone, a namespace that has no more requests is forgotten.
        """
        if fails:
            self.kept.setdefault(namespace, deque())
        elif fails is False:
            for request in self.kept.pop(namespace, ()):
                self._put_back(request)
        elif namespace not in self.at and not self.kept.get(namespace, True):
            del self.kept[namespace]
        self._put_one_back()

    def _are_full(self) -> bool:
        return sum(namespace in self.kept for namespace in self.at) >= self._at_most

    def _put_one_back(self) -> None:
        """Put a request back that was kept, of each namespace in turn."""
        namespace = next((name for name, kept in self.kept.items() if kept), None)
        if namespace is not None and not self._are_full():
            kept = self.kept.pop(namespace)
            self.kept[namespace] = kept
            self._put_back(kept.popleft())
