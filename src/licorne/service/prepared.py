"""Queue configurations are read here, in threads, and found ready where the scheduler wants them.

Reading thousands of queues takes seconds; the loop must not wait for it. So whoever is about to hand a configuration to
the scheduler has it prepared first (`Prepared.prepare`); the scheduler asks for the meaning of the text
(`Prepared.read`, in place of `licorne.config.load`), and it is there. Short texts are read on the spot.

Here is also the limit on the number of queues, which is no rule of configurations but one of this service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from licorne.config import ConfigError, Configuration, Problem, load
from licorne.config.model import QueueConfig
from licorne.core.partition import Partition, PlacementConfigError

SHORT = 2_000
"""Characters of a text that is read on the spot: some ten queues, a few milliseconds; unless it has anchors, with which
a short text may say much."""
KEPT = 4
THREADS = 2

Found = Configuration | ConfigError


def count_queues(configuration: Configuration) -> int:
    """How many queues there are, roots included."""
    left: list[QueueConfig] = [partition.root for partition in configuration.partitions]
    count = 0
    while left:
        queue = left.pop()
        count += 1
        left += queue.children
    return count


def read_counted(text: str, most: int, *, file: str = "<config>") -> Configuration:
    """Read a configuration of at most so many queues.

    Raises:
        ConfigError: it is refused.
    """
    found = load(text, file=file)
    count = count_queues(found)
    if count > most:
        message = f"has {count} queues, and at most {most} are allowed"
        raise ConfigError((Problem(file, 1, 1, "", "", "queues-too-many", message),))
    return found


def read_queues(text: str, most: int, *, file: str = "<config>") -> Configuration:
    """The same, and check whatever else could keep it from being applied.

    Raises:
        ConfigError: it is refused.
    """
    found = read_counted(text, most, file=file)
    for index, partition in enumerate(found.partitions):
        try:
            Partition.check_reload(partition)
        except PlacementConfigError as error:
            path = f"partitions[{index}].{error.path}"
            raise ConfigError((Problem(file, 1, 1, path, error.value, "placement-rules", error.rule),)) from None
    return found


class Prepared:
    """Configurations that have been read. `most`: how many queues one may have, as it is now."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._pinned: dict[str, Configuration] = {}
        self._lately: dict[tuple[str, int], Found] = {}
        self._threads: ThreadPoolExecutor | None = None

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
            found = _found(text, self._most())
        if isinstance(found, ConfigError):
            raise found.with_traceback(None)
        return found

    async def prepare(self, text: str) -> None:
        """Read a text in a thread, unless that is done. It is ready when this returns, and until the loop turns."""
        most = self._most()
        if (len(text) <= SHORT and "&" not in text) or text in self._pinned or (text, most) in self._lately:
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "configuration")
        work = partial(_found, text, most)
        self._lately[text, most] = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        while len(self._lately) > KEPT:
            del self._lately[next(iter(self._lately))]

    def close(self) -> None:
        """Nothing more is to be read."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _found(text: str, most: int) -> Found:
    try:
        return read_counted(text, most)
    except ConfigError as error:
        return error


__all__ = ["Prepared", "count_queues", "read_queues"]
