"""Reading the queue configurations that commands are given: files, folders and standard input, plain or in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from licorne.cli.common import STDIN, CommandError, read_text
from licorne.cli.statuses import Status
from licorne.config import Cluster, ConfigError, Configuration, Report, examine
from licorne.config.manifest import POLICY_GROUP, Entry, Source, queue_source, queue_sources, queues_key, settings_in
from licorne.config.problems import Problem
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


def reports(path: Path, clusters: Mapping[str, Cluster] | None = None) -> Iterator[tuple[str, Report]]:
    """Yield the label and the report of each queue configuration in a file; first of the settings beside it that say nothing.

    `clusters`: partitions that run, by name, beside which the configurations are looked at.

    Raises:
        CommandError: the file cannot be read.
    """
    text, name = read_text(path, WHAT), name_of(path)
    try:
        settings = settings_in(text, name)
        sources = queue_sources(text, name)
    except ConfigError as error:
        yield name, Report(error.problems)
        return
    if settings is not None and (warnings := tuple(_of_settings(settings))):
        yield name, Report(warnings=warnings)
    for source in sources:
        yield source.label, examine(source.text, file=source.label, clusters=clusters)[0]


def _of_settings(settings: dict[str, Entry]) -> Iterator[Problem]:
    """Yield a warning for each setting that says nothing. Keys of licorne's own are left to the commands that read them."""
    key = queues_key(settings)
    for entry in settings.values():
        setting = TABLE.find(entry.key)
        if entry.key.endswith(".yaml"):
            if key not in settings:
                group = entry.key.removesuffix(".yaml")
                message = f"is read only if {POLICY_GROUP} is {group}; the key of the queue configuration is {key}"
                yield _warning(entry, "configmap-key", message)
        elif setting is None:
            if not entry.key.startswith(OWN):
                yield _warning(entry, "setting-unknown", TABLE.unknown(entry.key).partition(": ")[2])
        elif entry.text and setting.kind.read(entry.text) is None:
            message = f"{entry.text[:80]!r}: {setting.kind.rule}"
            if setting.applies != NO_EFFECT:
                message += f"; it means the default, {setting.default}" if setting.lenient else "; it is refused"
            yield _warning(entry, "setting-value", message)


def _warning(entry: Entry, rule: str, message: str) -> Problem:
    file, _, line = entry.origin.rpartition(":")
    return Problem(file, int(line), 1, entry.key, entry.text[:80], rule, message, place=entry.key[:100])


def read_configuration(path: Path) -> tuple[Source, Configuration, Report]:
    """Read the queue configuration of a file; in a ConfigMap it is that of the policy group for everybody.

    Raises:
        CommandError: the file cannot be read, or the configuration is refused.
    """
    text, name = read_text(path, WHAT), name_of(path)
    try:
        source = queue_source(text, name)
    except ConfigError as error:
        raise _refused(error) from None
    report, configuration = examine(source.text, file=source.label)
    if configuration is None:
        raise _refused(ConfigError(report.faults))
    return source, configuration, report


def _refused(error: ConfigError) -> CommandError:
    return CommandError(f"the queue configuration cannot be used\n{error}", Status.CONFIGURATION)


def name_of(path: Path) -> str:
    """Return the name of a file in messages."""
    return "<stdin>" if path == STDIN else str(path)
