"""Reading the queue configurations of a service: by `licorne.config`, and with the service's limit on queues."""

from __future__ import annotations

from licorne.config import ConfigError, Configuration, Problem, load
from licorne.config.model import QueueConfig
from licorne.core.partition import Partition, PlacementConfigError

SHORT = 2_000
"""Characters of a text that is read at once: some ten queues, a few milliseconds. A text with YAML anchors is never
short, for with these a few characters may stand for many queues."""


def is_short(text: str) -> bool:
    """Whether a text is read in a few milliseconds, whatever its content."""
    return len(text) <= SHORT and "&" not in text


def count_queues(configuration: Configuration) -> int:
    """Count the queues of all partitions, roots included."""
    left: list[QueueConfig] = [partition.root for partition in configuration.partitions]
    count = 0
    while left:
        queue = left.pop()
        count += 1
        left += queue.children
    return count


def read_counted(text: str, most: int, *, file: str = "<config>") -> Configuration:
    """Read a configuration of at most `most` queues.

    Raises:
        ConfigError: the configuration is refused.
    """
    found = load(text, file=file)
    too_many = fault_of_count(found, most, file)
    if too_many is not None:
        raise ConfigError((too_many,))
    return found


def fault_of_count(configuration: Configuration, most: int, file: str) -> Problem | None:
    """Return the problem of a configuration with more than `most` queues; None if it has no more."""
    count = count_queues(configuration)
    message = f"has {count} queues, and at most {most} are allowed"
    return Problem(file, 1, 1, "", "", "queues-too-many", message) if count > most else None


def read_queues(text: str, most: int, *, file: str = "<config>") -> Configuration:
    """Read a configuration of at most `most` queues, and check also that the core can apply it.

    Raises:
        ConfigError: the configuration is refused.
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
