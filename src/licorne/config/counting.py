"""A limit on the queues of a configuration, for programs that take configurations from others."""

from __future__ import annotations

from .check import load
from .model import Configuration, QueueConfig
from .problems import ConfigError, Problem


def count_queues(configuration: Configuration) -> int:
    """Count the queues of all partitions, roots included."""
    left: list[QueueConfig] = [partition.root for partition in configuration.partitions]
    count = 0
    while left:
        queue = left.pop()
        count += 1
        left += queue.children
    return count


def load_counted(text: str, most: int, *, file: str = "<config>") -> Configuration:
    """Load a configuration of at most `most` queues.

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
