"""The steps of loading a configuration: read, check, build, and on request warn of what is surely not meant.

`load` and `check` take the same steps, so `check` finds a fault in exactly the texts that `load` refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from licorne.config.build import build
from licorne.config.lint import lint
from licorne.config.lint_cluster import RunningPartition, lint_cluster
from licorne.config.model import Configuration
from licorne.config.nodes import MAX_DEPTH, YamlNode, compose
from licorne.config.places import named_places
from licorne.config.problems import ConfigError, Notes, Report, Spot
from licorne.config.raw import RawConfig, RawQueue, plain
from licorne.config.reader import read
from licorne.config.resources import Quantities
from licorne.config.simulation import check_simulated
from licorne.config.structure import check_config

# Used where a policy group has no configuration at all (docs/spec/config.md, section 1.6).
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


def load(text: str, *, file: str = "<config>", simulated: bool = False) -> Configuration:
    """Load the configuration in `text`; `file` names it in problems.

    `simulated`: it is for a simulation, so it may have the properties that only the simulator reads.

    Raises:
        ConfigError: the text has faults; the error holds all of them, and nothing is loaded.
    """
    notes = Notes(file)
    try:
        found = _read(text, notes, simulated=simulated)
        if found is not None and not notes.fault_count:
            config, roots, quantities = found
            return build(config, roots, quantities, text)
    except RecursionError:
        _note_depth(notes)
    raise ConfigError(notes.report().faults)


def as_data(text: str, *, root: YamlNode | None = None) -> dict[str, Any]:
    """Return a configuration as plain data; dumped as YAML, it is loaded as the same configuration.

    Each value has the type that its key requires: `010` is 8 as a number of applications, and stays `010` as a
    quantity. Aliases and merge keys are written out. `root`: the configuration as a node, in place of the text.

    Raises:
        ConfigError: the text cannot be read.
    """
    notes = Notes("<config>")
    try:
        config = read(compose(text, notes) if root is None else root, notes)
        if not notes.fault_count:
            return dict(plain(config))
    except RecursionError:
        _note_depth(notes)
    raise ConfigError(notes.report().faults)


def check(text: str, *, file: str = "<config>") -> Report:
    """Return all faults for which `load` would refuse the text, and all warnings. Never raises."""
    return examine(text, file=file)[0]


def examine(
    text: str,
    *,
    file: str = "<config>",
    running: Mapping[str, RunningPartition] | None = None,
    simulated: bool = False,
    root: YamlNode | None = None,
) -> tuple[Report, Configuration | None]:
    """Return the problems, and the configuration or None if the text is refused. Never raises.

    It reads the text once, for callers that would otherwise call both `check` and `load`. `running`: the
    partitions of a cluster by name, with which the configuration is compared. `simulated`: as for `load`. `root`: the
    configuration as a node of a larger document, in place of the text; the problems have their places there.
    """
    notes = Notes(file)
    configuration: Configuration | None = None
    try:
        found = _read(text, notes, simulated=simulated, root=root)
        if found is not None:
            config, roots, quantities = found
            if not notes.fault_count:
                configuration = build(config, roots, quantities, text)
            lint(config, roots, notes)
            if running and configuration is not None:
                lint_cluster(config, roots, running, quantities, notes, configuration)
    except RecursionError:
        _note_depth(notes)
    report = notes.report()
    return report, None if report.faults else configuration


def _read(text: str, notes: Notes, *, simulated: bool, root: YamlNode | None = None) -> _Read | None:
    config = read(compose(text, notes) if root is None else root, notes)
    if config is None:
        return None
    quantities = Quantities(notes)
    roots = check_config(config, quantities, notes)
    for each in roots.values():
        check_simulated(each, notes, simulated=simulated)
    notes.place = named_places(config, roots)
    return config, roots, quantities


def _note_depth(notes: Notes) -> None:
    """Note that the stack ran out: the depth of a document is bounded, but the caller may have used the stack up."""
    message = f"nested too deep for the stack that is left, though not deeper than {MAX_DEPTH} levels"
    notes.fault("yaml-depth", Spot(1, 1, ""), message)
