"""Queue configurations are read elsewhere (`checks`), and found ready where the scheduler wants them.

Reading thousands of queues takes seconds; the loop must not wait for it. So whoever is about to hand a configuration to
the scheduler has it prepared first (`Prepared.prepare`); the scheduler asks for the meaning of the text
(`Prepared.read`, in place of `licorne.config.load`), and it is there. Short texts are read on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from licorne.config import ConfigError, Configuration

from .checks import CHECK_ENDED, Checks
from .queue_texts import is_short, read_counted

KEPT = 4

Found = Configuration | ConfigError


class Prepared:
    """Configurations that have been read, by `checks`. `most`: how many queues one may have, as it is now."""

    def __init__(self, most: Callable[[], int], checks: Checks) -> None:
        self._most = most
        self._checks = checks
        self._pinned: dict[str, Configuration] = {}
        self._lately: dict[tuple[str, int], Found] = {}

    def pin(self, configurations: Iterable[Configuration]) -> None:
        """Keep these, which many will want, and no others."""
        self._pinned = {found.text: found for found in configurations}

    def read(self, text: str) -> Configuration:
        """What a text means; at once, if it was prepared.

        Raises:
            ConfigError: it is refused.
        """
        found = self._pinned.get(text) or self._lately.get((text, self._most()))
        if found is None:
            return read_counted(text, self._most())
        if isinstance(found, ConfigError):
            raise found.with_traceback(None)
        return found

    async def prepare(self, text: str) -> None:
        """Have a text read, unless that is done. It is ready when this returns, and until the loop turns."""
        most = self._most()
        known = self._lately.get((text, most))
        if is_short(text) or text in self._pinned or (known is not None and not _unknown(known)):
            return
        try:
            found: Found = await self._checks.read(text)
        except ConfigError as error:
            found = error.with_traceback(None)
        self._lately.pop((text, most), None)
        self._lately[text, most] = found
        while len(self._lately) > KEPT:
            del self._lately[next(iter(self._lately))]


def _unknown(found: Found) -> bool:
    """Could the text not be read, so that nobody knows whether it is legal?"""
    return isinstance(found, ConfigError) and found.problems[0].rule == CHECK_ENDED


__all__ = ["Prepared"]
