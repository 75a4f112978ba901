"""Reading the queue configurations of a service: by `licorne.config`, and with the service's limit on queues."""

from __future__ import annotations

from licorne.config import ConfigError, Configuration, Problem
from licorne.config.counting import load_counted
from licorne.core.partition import Partition, PlacementConfigError

SHORT = 2_000
"""Characters of a text that is read at once: some ten queues, a few milliseconds. A text with YAML anchors is never
short, for with these a few characters may stand for many queues."""


def is_short(text: str) -> bool:
    """Whether a text is read in a few milliseconds, whatever its content."""
    return len(text) <= SHORT and "&" not in text


def read_queues(text: str, most: int, file: str = "<config>") -> Configuration:
    """Read a configuration of at most `most` queues, and check also that the core can apply it.

    Raises:
        ConfigError: the configuration is refused.
    """
    found = load_counted(text, most, file=file)
    for index, partition in enumerate(found.partitions):
        try:
            Partition.check_reload(partition)
        except PlacementConfigError as error:
            path = f"partitions[{index}].{error.path}"
            raise ConfigError((Problem(file, 1, 1, path, error.value, "placement-rules", error.rule),)) from None
    return found
