"""`--print-config` and the page of all settings: for each its value, its origin, and when a change takes effect."""

from __future__ import annotations

from collections.abc import Iterator

from licorne.host.setting_table import SETTINGS
from licorne.host.shown_settings import Shown, table

from .loaded import Loaded
from .queues import EVERYBODY
from .values import SettingValue


def shown(loaded: Loaded) -> list[Shown]:
    """Return all settings in the order of the table; those with a pattern for a key only where given."""
    values = list(loaded.values.by_key.values())
    return [_shown(value) for setting in SETTINGS for value in values if value.setting is setting]


def _shown(value: SettingValue) -> Shown:
    text = "set" if value.setting.secret else value.text
    return Shown(value.key, text, value.origin, value.setting.applies)


def lines(loaded: Loaded) -> Iterator[str]:
    """Yield the lines of a table of all settings, for people, and below it ignored values and queue configurations."""
    yield from table(shown(loaded))
    yield ""
    yield from (f"ignored: {warning}" for warning in loaded.values.warnings)
    if loaded.given.file is not None:
        yield f"settings file: {loaded.given.file}"
    sources = {name or "everybody else": one for name, one in sorted(loaded.sources.items()) if name != EVERYBODY}
    rest = loaded.sources.get(EVERYBODY)
    for name, source in sources.items():
        yield f"queue configuration of policy group {name}: {source.label}"
    yield f"queue configuration of others that bring none: {rest.label if rest is not None else 'built-in'}"
