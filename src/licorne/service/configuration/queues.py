"""The queue configurations that the service holds, and which resource manager gets which.

A resource manager that brings a configuration has its own. Else it gets that of the policy group which its registration
names; where there is none of this name, that of everybody: `--config`, else `<service.policyGroup>.yaml` of the
settings file; else the built-in one.
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
    """A queue configuration: where it stands, its text and what it means. `path`: None if it is in the settings file."""

    label: str
    path: Path | None
    configuration: Configuration

    @property
    def text(self) -> str:
        """As it was written."""
        return self.configuration.text


class Groups(UserDict[str, Group]):
    """Policy groups as the scheduler wants them; where there is a configuration for everybody, each other name means it."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        super().__init__()
        self.sources: dict[str, Source] = {}
        self.replace(sources)

    def replace(self, sources: Mapping[str, Source]) -> None:
        """From now on these; the name `EVERYBODY` is that of the rest."""
        self.sources = dict(sources)
        self.data = {name: (source.text, {}) for name, source in sources.items() if name != EVERYBODY}

    def source(self, name: str) -> Source | None:
        """Where the configuration stands that a policy group's name means."""
        return self.sources.get(name or EVERYBODY, self.sources.get(EVERYBODY))

    def get(self, key: str, default: Group | None = None) -> Group | None:  # type: ignore[override]
        """The configuration that a policy group's name means."""
        source = self.source(key)
        return default if source is None else (source.text, {})

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.source(key) is not None


__all__ = ["EVERYBODY", "Groups", "Source"]
