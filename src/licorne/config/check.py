"""The way through a configuration: read, check, build, and on request look for what is surely not meant.

`load` and `check` take the same way, so that `check` says no to exactly what `load` refuses.
"""

from __future__ import annotations

from typing import Final

from licorne.config.build import build
from licorne.config.lint import lint
from licorne.config.model import Configuration
from licorne.config.nodes import MAX_DEPTH, compose
from licorne.config.problems import ConfigError, Notes, Report, Spot
from licorne.config.raw import RawConfig, RawQueue
from licorne.config.reader import read
from licorne.config.resources import Quantities
from licorne.config.structure import check_config

# Used where a policy group has no configuration at all (spec config.md, 1.6).
DEFAULT_CONFIGURATION: Final = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: '*'
"""

_Read = tuple[RawConfig, dict[int, RawQueue], Quantities]


def load(text: str, *, file: str = "<config>") -> Configuration:
    """The configuration that `text` says. Raises ConfigError with all its faults; nothing is half loaded."""
    notes = Notes(file)
    found = _read(text, notes)
    faults = notes.report().faults
    if faults or found is None:
        raise ConfigError(faults)
    config, roots, quantities = found
    return build(config, roots, quantities, text)


def check(text: str, *, file: str = "<config>") -> Report:
    """All faults for which `load` would refuse the text, and warnings. Never raises."""
    notes = Notes(file)
    found = _read(text, notes)
    if found is not None:
        config, roots, _ = found
        lint(config, roots, notes)
    return notes.report()


def _read(text: str, notes: Notes) -> _Read | None:
    try:
        config = read(compose(text, notes), notes) if text else None
        if config is None and notes.fault_count:
            return None
        if config is None:  # no document at all is an empty configuration
            config = RawConfig.empty()
        quantities = Quantities(notes)
        return config, check_config(config, quantities, notes), quantities
    except RecursionError:  # the depth is bounded, but the caller may have used up the stack before
        notes.fault("yaml-depth", Spot(1, 1, ""), f"nested too deep, though not deeper than {MAX_DEPTH} levels")
        return None
