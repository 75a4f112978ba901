"""Queue configurations of a service: as in `licorne.config`, with this service's limit on the number of queues."""

from __future__ import annotations

from licorne.config import ConfigError, Configuration, Problem, load
from licorne.config.model import QueueConfig
from licorne.core.partition import Partition, PlacementConfigError

SHORT = 2_000
"""Characters of a text that is read on the spot: some ten queues, a few milliseconds; unless it has anchors, with which
a short text may say much."""


def is_short(text: str) -> bool:
    """Is a text read in a few milliseconds, whatever it says?"""
    return len(text) <= SHORT and "&" not in text


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
    too_many = fault_of_count(found, most, file)
    if too_many is not None:
        raise ConfigError((too_many,))
    return found


def fault_of_count(configuration: Configuration, most: int, file: str) -> Problem | None:
    """What is wrong with a configuration of more queues than this; None if it has no more."""
    count = count_queues(configuration)
    message = f"has {count} queues, and at most {most} are allowed"
    return Problem(file, 1, 1, "", "", "queues-too-many", message) if count > most else None


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


__all__ = ["SHORT", "count_queues", "fault_of_count", "is_short", "read_counted", "read_queues"]
