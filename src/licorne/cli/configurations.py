"""Reading the queue configurations that commands are given: files, folders and standard input, plain or in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from licorne.cli.common import STDIN, CommandError, read_text
from licorne.cli.statuses import Status
from licorne.config import ConfigError, Configuration, Report, RunningPartition, examine
from licorne.config.manifest import POLICY_GROUP, Entry, Source, queue_source, queue_sources, queues_key, settings_in
from licorne.config.problems import Notes, Spot
from licorne.core.base.setting_table import NO_EFFECT, OWN, TABLE

WHAT = "a queue configuration"
ENDINGS = (".yaml", ".yml")


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among paths, and for a folder the YAML files in it, by name.

    Raises:
        CommandError: a folder has no such file.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = [
            one for one in sorted(path.iterdir()) if one.suffix in ENDINGS and one.name[0] != "." and one.is_file()
        ]
        if not found:
            raise CommandError(f"{path}: no *.yaml in this folder; give the path of {WHAT}", Status.FILE)
        yield from found


def reports(path: Path, running: Mapping[str, RunningPartition] | None = None) -> Iterator[tuple[str, Report]]:
    """Yield a label and a report for each queue configuration in a file, and before them one for settings without effect.

    `running`: the partitions of a cluster by name, with which the configurations are compared.

    Raises:
        CommandError: the file cannot be read.
    """
    text, name = read_text(path, WHAT), name_of(path)
    try:
        settings = settings_in(text, name)
        sources = [Source(name, text)] if settings is None else queue_sources(settings, name)
    except ConfigError as error:
        yield name, Report(error.problems)
        return
    if settings is not None and (report := _of_settings(settings, name)).warnings:
        yield name, report
    for source in sources:
        yield source.label, examine(source.text, file=source.label, running=running)[0]


def _of_settings(settings: dict[str, Entry], file: str) -> Report:
    """Return a warning for each setting without effect: an unknown name, a bad value, a configuration that is not read.

    Settings of licorne alone (`licorne.*`) are left to the commands that read them.
    """
    notes = Notes(file)
    notes.place = str
    key = queues_key(settings)
    for entry in settings.values():
        setting = TABLE.find(entry.key)
        spot = Spot(int(entry.origin.rpartition(":")[2]), 1, entry.key[:100], entry.text)
        if entry.key.endswith(".yaml"):
            if key not in settings:
                group = entry.key.removesuffix(".yaml")
                message = f"is read only if {POLICY_GROUP} is {group}; the key of the queue configuration is {key}"
                notes.warn("configmap-key", spot, message)
        elif setting is None:
            if not entry.key.startswith(OWN):
                notes.warn("setting-unknown", spot, TABLE.unknown(entry.key).partition(": ")[2])
        elif entry.text and setting.kind.read(entry.text) is None:
            message = f"{entry.text[:80]!r}: {setting.kind.rule}"
            if setting.applies != NO_EFFECT:
                message += f"; it means the default, {setting.default}" if setting.lenient else "; it is refused"
            notes.warn("setting-value", spot, message)
    return notes.report()


def read_configuration(path: Path, *, simulated: bool = False) -> tuple[Source, Configuration, Report]:
    """Read the queue configuration of a file or, of a ConfigMap, that of the policy group which it chooses.

    `simulated`: it is for a simulation, so it may have the properties that only the simulator reads.

    Raises:
        CommandError: the file cannot be read, or the configuration is refused.
    """
    text, name = read_text(path, WHAT), name_of(path)
    try:
        source = queue_source(text, name)
    except ConfigError as error:
        raise _refused(error) from None
    report, configuration = examine(source.text, file=source.label, simulated=simulated)
    if configuration is None:
        raise _refused(ConfigError(report.faults))
    return source, configuration, report


def _refused(error: ConfigError) -> CommandError:
    return CommandError(f"the queue configuration cannot be used\n{error}", Status.CONFIGURATION)


def name_of(path: Path) -> str:
    """Return the name of a file in messages."""
    return "<stdin>" if path == STDIN else str(path)
