"""The queue configurations that the service holds, and which resource manager gets which.

A resource manager uses the first of these that exists: the configuration that its registration brings; that of the
policy group which the registration names; the one for everybody (`--config`, or else `<service.policyGroup>.yaml` of
the settings file); the built-in one.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from pathlib import Path

import msgspec

from licorne.config import Configuration

EVERYBODY = ""
Group = tuple[str, Mapping[str, str]]


class Source(msgspec.Struct, frozen=True):
    """A queue configuration and its origin. `label`: the origin in messages; `path`: None if in the settings file."""

    label: str
    path: Path | None
    configuration: Configuration

    @property
    def text(self) -> str:
        """The text of the configuration, as it was written."""
        return self.configuration.text


class Groups(UserDict[str, Group]):
    """The policy groups, as the mapping that the scheduler takes.

    If there is a configuration for everybody, a lookup by an unknown name finds that one.
    """

    def __init__(self, sources: Mapping[str, Source]) -> None:
        super().__init__()
        self.replace(sources)

    def replace(self, sources: Mapping[str, Source]) -> None:
        """Replace all configurations. The name `EVERYBODY` is that of the one for all other names."""
        self.sources = dict(sources)
        self.data = {name: (source.text, {}) for name, source in sources.items() if name != EVERYBODY}

    def __missing__(self, key: str) -> Group:
        if EVERYBODY not in self.sources:
            raise KeyError(key)
        return self.sources[EVERYBODY].text, {}

    def __contains__(self, key: object) -> bool:
        return key in self.data or EVERYBODY in self.sources
