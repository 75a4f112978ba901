"""Placeholders that were created and that nobody has seen: the time after which the gang takes them for deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from licorne.kube.manager.gangs import Gangs

SEEN_S: Final = 30.0
"""Seconds after which a placeholder that was created, and that no watch has shown, counts as deleted."""
LOOK_S: Final = 5.0
"""The least time, in seconds, between two checks of a gang's placeholders."""


class UnseenPlaceholders:
    """Times the placeholders of gangs from their creation on, within a running loop; `changed` is called after each change."""

    def __init__(self, gangs: Gangs, changed: Callable[[], None]) -> None:
        self._gangs = gangs
        self._changed = changed
        self._checks: set[str] = set()
        """Applications with a timer, one each."""

    def exists(self, application_id: str, name: str, *, taken: bool) -> None:
        """Note that the API server has a pod of a placeholder's name: the placeholder, or, if it was `taken`, one from before."""
        self._gangs.created(application_id, name, asyncio.get_running_loop().time(), taken=taken)
        self._check_later(application_id)

    def not_created(self, application_id: str, name: str, reason: str) -> None:
        """Note that a placeholder could not be created, and why."""
        self._gangs.not_created(application_id, name, reason, asyncio.get_running_loop().time())
        self._check_later(application_id)
        self._changed()

    def _check_later(self, application_id: str) -> None:
        if application_id not in self._checks:
            self._checks.add(application_id)
            asyncio.get_running_loop().call_later(SEEN_S, self._check, application_id)

    def _check(self, application_id: str) -> None:
        loop = asyncio.get_running_loop()
        since_s = self._gangs.look_again(application_id, loop.time() - SEEN_S)
        if since_s is None:
            self._checks.discard(application_id)
        else:
            wait_s = max(since_s + SEEN_S - loop.time(), LOOK_S)
            loop.call_later(wait_s, self._check, application_id)
        self._changed()
