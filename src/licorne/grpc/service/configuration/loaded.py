"""Reading and checking all settings and queue configurations: at the start, and again when a file has changed.

At the start any error ends the service. Later each file counts for itself: an error in one keeps the old values of that
file, and the new values of the other files take effect. Settings that take effect at restart keep their values until
then. All settings are read again whatever has changed: their 74 rows take 0.15 ms of processor time in the thread, less
than the smallest queue configuration, and what counts is always what all sources say now.

These functions read and parse files, which may take seconds, so they are called in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from licorne.config import ConfigError, Configuration
from licorne.config.manifest import label as label_of
from licorne.grpc.service.checking.queue_texts import read_queues
from licorne.grpc.service.settings import SettingError

from .files import Mark, mark, read_bounded
from .queues import EVERYBODY, Source
from .values import Given, SettingValue, Values, read_values

Read = Callable[[str, int, str], Configuration]
"""Reads a configuration, as `licorne.grpc.service.checking.queue_texts.read_queues` does."""


class Refusal(msgspec.Struct, frozen=True):
    """A file, or a part of one, that is refused, and why. `fields`: what a log may show of the reason."""

    label: str
    text: str
    fields: dict[str, object] = {}


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """All settings and queue configurations.

    `refused`: files or parts that could not be accepted, so that their old values stay. `restart`: keys that have
    changed, and take effect at restart. `marks`: those of the files, taken before the files were read.
    """

    given: Given
    values: Values
    sources: dict[str, Source]
    refused: list[Refusal] = []
    restart: list[str] = []
    marks: dict[Path, Mark] = {}

    def files(self) -> list[Path]:
        """Return the files to be watched."""
        found = [] if self.given.file is None else [self.given.file]
        return found + [source.path for source in self.sources.values() if source.path is not None]


def load_all(given: Given) -> Loaded:
    """Read and check all settings and queue configurations, at the start of the service.

    Raises:
        SettingError: a setting, a file or a queue configuration that is refused; the text names the place and the rule.
    """
    marks = {} if given.file is None else {given.file: mark(given.file)}
    values = read_values(given)
    most = values.get("licorne.max-queues")
    sources: dict[str, Source] = {}
    marks |= {path: mark(path) for path in values.paths()}
    for name, label, path, text in _wanted(values, files=True):
        sources[name] = _known(sources, label, text) or _source(label, path, text, most)
    return Loaded(given=given, values=values, sources=sources, marks=marks)


def load_again(old: Loaded, read: Read) -> Loaded:
    """Read everything again. Files that are refused keep their old values. `read`: reads one queue configuration."""
    refused: list[Refusal] = []
    restart: list[str] = []
    values = old.values
    inline: dict[str, Source] = {}
    try:
        values, restart = _kept(read_values(old.given), old.values)
        most = values.get("licorne.max-queues")
        for name, label, path, text in _wanted(values, files=False):
            inline[name] = _known(inline, label, text) or _again(label, path, text, most, old.sources.get(name), read)
    except _RefusedError as error:  # from a part of the settings file, all of which is refused then
        refused.append(error.refusal)
        values, restart, inline = old.values, [], {}
    except SettingError as error:
        refused.append(Refusal(str(old.given.file), str(error)))
    sources = {**old.sources, **inline}
    most = values.get("licorne.max-queues")
    for name, source in old.sources.items():
        if source.path is not None:
            try:
                text = read_bounded(source.path, "a queue configuration")
                sources[name] = _again(source.label, source.path, text, most, source, read)
            except _RefusedError as error:
                refused.append(error.refusal)
            except SettingError as error:
                refused.append(Refusal(source.label, str(error)))
    return Loaded(given=old.given, values=values, sources=sources, refused=refused, restart=restart)


def _kept(new: Values, old: Values) -> tuple[Values, list[str]]:
    """Return the new values, with the old ones of settings that take effect at restart, and which of those changed."""
    merged: dict[str, SettingValue] = dict(new.by_key)
    changed = []
    for key, value in old.by_key.items():
        if value.setting.applies == "at restart":
            if merged[key].parsed != value.parsed:
                changed.append(key)
            merged[key] = value
    # With hot refresh off, files are read only at SIGHUP, and such a reading must not turn it on.
    hot = "service.enableConfigHotRefresh"
    if not old.get(hot):
        merged[hot] = old.by_key[hot]
    return Values(merged, new.warnings), changed


_Wanted = tuple[str, str, Path | None, str]


def _wanted(values: Values, *, files: bool) -> Iterator[_Wanted]:
    """List the queue configurations that the settings name: name, label, path and text.

    Those in files of their own come last, so that they replace those of the same name in the settings file.
    """
    own = values.get("service.policyGroup")
    named: dict[str, str] = values.get("licorne.policy-group") or {}
    everybody: str = values.get("licorne.config")
    for name, value in values.many("<policyGroup>.yaml").items():
        where = label_of(value.key, value.origin)
        if name not in named:
            yield name, where, None, value.text
        if name == own and not everybody:
            yield EVERYBODY, where, None, value.text
    if not files:
        return
    for name, file in ({**named, EVERYBODY: everybody} if everybody else named).items():
        yield name, file, Path(file), read_bounded(Path(file), "a queue configuration")


def _known(sources: dict[str, Source], label: str, text: str) -> Source | None:
    """Return a source that was read under another name; the one for everybody may also be that of a policy group."""
    return next((one for one in sources.values() if one.label == label and one.text == text), None)


def _source(label: str, path: Path | None, text: str, most: int) -> Source:
    try:
        return Source(label, path, read_queues(text, most, file=label))
    except ConfigError as error:
        more = f"; `licorne config check {path}` says more" if path is not None else ""
        raise SettingError(f"{error.problems[0]}{more}") from None


class _RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self.refusal = refusal


def _again(label: str, path: Path | None, text: str, most: int, old: Source | None, read: Read) -> Source:
    """Read a queue configuration that may have changed.

    One without partitions is refused: it is legal, but hardly what was meant.

    Raises:
        _RefusedError: the configuration is refused.
    """
    if old is not None and old.text == text and old.path == path:
        return old
    try:
        found = read(text, most, label)
    except ConfigError as error:
        raise _RefusedError(Refusal(label, str(error), error.fields())) from None
    if not found.partitions:
        raise _RefusedError(Refusal(label, "has no partition", {"rule": "has no partition"}))
    return Source(label, path, found)
