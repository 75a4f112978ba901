"""Merging the sources of settings: for each key the value of the strongest source, with its origin.

From weak to strong: the default, the settings file, the environment, the command line. An unknown key is an error in
the file and on the command line. The environment also has the variables of other programs; there a name that is close
to that of a setting is only a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from licorne.config.manifest import Entry
from licorne.core.base.setting_kinds import FLAG
from licorne.core.base.setting_table import ENVIRONMENT, Setting, Structure
from licorne.grpc.service.settings import SettingError
from licorne.host.setting_table import BY_ENVIRONMENT, DISABLE_RESERVATION, SETTINGS, TABLE

from .files import read_settings_file


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The sources with which the process was started.

    `options`: texts by key, of options on the command line; `settings`: texts by key, of `--setting`; `environment`:
    the environment variables; `file`: the settings file or folder.
    """

    options: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    file: Path | None = None


class SettingValue(msgspec.Struct, frozen=True):
    """The value of a setting: its key, its text, the parsed text, and its origin. `given`: not the default."""

    setting: Setting
    key: str
    text: str
    parsed: Any
    origin: str
    given: bool = True


class Values:
    """The values of all settings by key; a setting with a pattern for its key (`log.<name>.level`) only where given."""

    def __init__(self, values: Mapping[str, SettingValue], warnings: Iterable[str] = ()) -> None:
        self.by_key = dict(values)
        self.warnings = list(warnings)
        """Texts for a log, about values that are ignored."""

    def get(self, key: str) -> Any:
        """Return the parsed value of a setting."""
        return self.by_key[key].parsed

    def many(self, pattern: str) -> dict[str, SettingValue]:
        """Return the values of the setting with this key, which stands for many, by what `<name>` stands for."""
        named = (value for value in self.by_key.values() if value.setting.key == pattern)
        return {name: value for value in named if (name := value.setting.part(value.key))}

    def fill(self, structure: Structure) -> Structure:
        """Return a copy of a structure that has all settings of its attributes, as far as they are given."""
        return TABLE.fill(structure, {key: value.text for key, value in self.by_key.items() if value.given})

    def paths(self) -> list[Path]:
        """Return the files with queue configurations."""
        files = [self.get("licorne.config"), *(self.get("licorne.policy-group") or {}).values()]
        return [Path(file) for file in files if file]

    def changed(self, before: Values) -> list[str]:
        """Return the keys whose values differ from `before`, of settings that may change while the service runs."""
        found = []
        for key in sorted(self.by_key.keys() | before.by_key.keys()):
            new, old = self.by_key.get(key), before.by_key.get(key)
            one = new or old
            assert one is not None
            hot = one.setting.applies in ("at once", "at registration") and not one.setting.secret
            if hot and (new is None or old is None or new.parsed != old.parsed):
                found.append(key)
        return found

    def texts(self) -> dict[str, str]:
        """Return the texts of the settings that the scheduler reads itself, without defaults."""
        return {key: value.text for key, value in self.by_key.items() if value.setting.scheduler and value.given}


def read_values(given: Given) -> Values:
    """Read and merge all sources.

    Raises:
        SettingError: an unknown key, a value that does not parse (of a setting that is not lenient), a file that cannot
            be read; a line for each error, with its place.
    """
    warnings: list[str] = []
    entries = [] if given.file is None else read_settings_file(given.file)
    entries += _of_environment(given.environment, warnings)
    entries += [Entry(key, text, "option --setting") for key, text in given.settings.items()]
    entries += [Entry(key, text, f"option --{_option(key)}") for key, text in given.options.items()]
    faults = [f"{_place(entry)}: {TABLE.unknown(entry.key)}" for entry in entries if TABLE.find(entry.key) is None]
    strongest = {entry.key: entry for entry in entries}
    values = {one.key: _default(one) for one in SETTINGS if "<" not in one.key}
    for key, entry in strongest.items():
        setting = TABLE.find(key)
        if setting is None:
            continue
        value = _parsed(setting, entry)
        if value is None:
            shown = entry.text if len(entry.text) <= 80 else entry.text[:77] + "..."
            own = entry.origin.endswith(f"--{setting.option}")
            fault = f"{_place(entry)}: {'' if own else f'{key}: '}{shown!r}: {setting.kind.rule}"
            if setting.lenient:
                warnings.append(f"{fault}; the default is used")
            else:
                faults.append(fault)
        else:
            values[key] = value
    if faults:
        raise SettingError("\n".join(faults))
    return Values(values, warnings)


def _option(key: str) -> str:
    setting = TABLE.find(key)
    return setting.option if setting is not None else key


def _place(entry: Entry) -> str:
    return entry.origin.removeprefix("option ").removeprefix("environment ")


def _default(setting: Setting) -> SettingValue:
    return SettingValue(setting, setting.key, setting.default, setting.initial, "default", given=False)


def _parsed(setting: Setting, entry: Entry) -> SettingValue | None:
    """Parse the text of a setting; None if it is not allowed. An empty text means the default."""
    if not entry.text and not setting.secret:
        default = _default(setting) if "<" not in setting.key else None
        return None if default is None else msgspec.structs.replace(default, origin=entry.origin)
    parsed = setting.kind.read(entry.text)
    return None if parsed is None else SettingValue(setting, entry.key, entry.text, parsed, entry.origin)


def _of_environment(environment: Mapping[str, str], warnings: list[str]) -> list[Entry]:
    found = []
    off = environment.get(DISABLE_RESERVATION, "")
    if off:
        flag = FLAG.read(off)
        if flag is None:
            warnings.append(f"{DISABLE_RESERVATION}: {off[:80]!r}: {FLAG.rule}; the default is used")
        else:
            enabled = "false" if flag else "true"
            found.append(Entry("reservation.enabled", enabled, f"environment {DISABLE_RESERVATION}"))
    for name, text in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT) or not text:
            continue
        setting = BY_ENVIRONMENT.get(name)
        if setting is not None:
            found.append(Entry(setting.key, text, f"environment {name}"))
        elif near := difflib.get_close_matches(name, BY_ENVIRONMENT, 1, 0.9):
            warnings.append(f"{name}: no such setting; did you mean {near[0]}?")
    return found
