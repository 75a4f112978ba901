"""A cache of queue configurations that were read outside the loop (`checks`), before the scheduler asks for them.

Reading thousands of queues takes seconds, for which the loop must not stop. A caller that is about to pass a
configuration to the scheduler first awaits `Prepared.prepare`. The scheduler, whose calls cannot wait, then reads the
text by `Prepared.read`, in place of `licorne.config.load`, and gets the prepared result. Short texts are read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from licorne.config import ConfigError, Configuration
from licorne.config.counting import load_counted

from .checks import CHECK_ENDED, Checks
from .queue_texts import is_short

KEPT = 4

Found = Configuration | ConfigError


class Prepared:
    """Configurations that `checks` has read. `most`: the current limit on the queues of a configuration."""

    def __init__(self, most: Callable[[], int], checks: Checks) -> None:
        self._most = most
        self._checks = checks
        self._pinned: dict[str, Configuration] = {}
        self._lately: dict[tuple[str, int], Found] = {}

    def pin(self, configurations: Iterable[Configuration]) -> None:
        """Keep these configurations (those of the service's own files), in place of the ones pinned before."""
        self._pinned = {found.text: found for found in configurations}

    def read(self, text: str) -> Configuration:
        """Return the configuration in a text; without delay, if it was prepared.

        Raises:
            ConfigError: the configuration is refused.
        """
        found = self._pinned.get(text) or self._lately.get((text, self._most()))
        if found is None:
            return load_counted(text, self._most())
        if isinstance(found, ConfigError):
            raise found.with_traceback(None)
        return found

    async def prepare(self, text: str) -> None:
        """Read a text outside the loop, unless its result is cached.

        When this returns the result is ready, and stays so until the loop turns. Later it may have been dropped, for
        only the last `KEPT` results are kept.
        """
        most = self._most()
        known = self._lately.get((text, most))
        if is_short(text) or text in self._pinned or (known is not None and not _unknown(known)):
            return
        try:
            found: Found = await self._checks.read(text)
        except ConfigError as error:
            found = error.with_traceback(None)
        self._lately.pop((text, most), None)  # so that it is inserted at the end, as the newest
        self._lately[text, most] = found
        while len(self._lately) > KEPT:
            del self._lately[next(iter(self._lately))]


def _unknown(found: Found) -> bool:
    """Whether the check did not finish, so that it is not known whether the text is legal."""
    return isinstance(found, ConfigError) and found.problems[0].rule == CHECK_ENDED
