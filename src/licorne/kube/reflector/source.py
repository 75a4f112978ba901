"""What a reflector needs of a client, so that tests can play one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, TypeVar

from licorne.kube.api import Kind, Page, WatchEvent
from licorne.kube.objects import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)


class Source(Protocol):
    """Lists and watches of one API server, as `licorne.kube.api.Client` has them."""

    async def list_page(self, kind: Kind[T], *, limit: int = ..., next_page: str = "", newest: bool = False) -> Page[T]:
        """Return a page of a list."""
        ...

    def watch(
        self, kind: Kind[T], version: str = "", *, initial: bool = False, timeout_s: float = ...
    ) -> AsyncGenerator[list[WatchEvent[T]]]:
        """Yield changes as they come; an empty list when the server has answered, if nothing else is known yet."""
        ...
