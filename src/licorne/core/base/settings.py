"""The settings of the scheduler that are not part of a queue configuration, read from flat text keys.

They are given for each resource manager (with its policy group, or in the extra configuration of its registration),
like the settings of the original's ConfigMap (docs/spec/config.md, section 12). Keys that the core does not read are
ignored here; `licorne.core.base.setting_table` says which keys there are.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from licorne.config.properties import parse_duration_ns
from licorne.core.constants import UNLIMITED

from .states import SECOND_NS, TIME_MAX_NS

PRIORITY_CLASS_PREFIX = "priority.class."
EVENT_CAPACITY = 1_000
"""How many records of events may wait for a resource manager, unless a setting says otherwise."""
EVENT_CAPACITY_MAX = 1_000_000
"""A larger number counts as this one."""
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


class SettingsError(ValueError):
    """A setting that does not parse; the text names key, value and rule."""


class Settings(msgspec.Struct, frozen=True):
    """The settings that the core reads.

    `reservation_delay_ns`: how old an ask must be before it may reserve a node (setting `reservation.delay`, 2 s);
    UNLIMITED where ordinary reservations are off (`reservation.enabled`). `starting`: whether Starting is a state of
    its own (`application.state.starting`), None: the dialect decides. `outstanding_inspection`: whether asks that wait
    for resources are reported (`outstanding.inspection`). `parking`: if off, every ask is tried again in every pass
    (`scheduler.parking`), which decides the same and is slow: for tests. `priority_classes` as in *Scheduler Interface
    Spec*. `event_tracking`, `event_capacity`: whether records of events are made for a resource manager that listens,
    and how many may wait (`event.trackingEnabled`, `event.requestCapacity`); as in the original, what does not parse,
    and 0, means the default (docs/spec/events.md, section 4). `gang_hold_ns`: how long a gang without placeholders may
    hold nodes (`gang.hold.max.age`, 120 minutes), 0: it never holds any.
    """

    reservation_delay_ns: int = 2 * SECOND_NS
    starting: bool | None = None
    outstanding_inspection: bool = True
    parking: bool = True
    priority_classes: dict[str, int] = {}
    event_tracking: bool = True
    event_capacity: int = EVENT_CAPACITY
    gang_hold_ns: int = 120 * 60 * SECOND_NS

    def reread(self, texts: Mapping[str, str]) -> Settings:
        """Return these settings with new priority classes, inspection and events, which may change at run time.

        Raises:
            SettingsError: a value does not parse, even of a setting that would not take effect.
        """
        new = read_settings(texts)
        return msgspec.structs.replace(
            self,
            priority_classes=new.priority_classes,
            outstanding_inspection=new.outstanding_inspection,
            event_tracking=new.event_tracking,
            event_capacity=new.event_capacity,
        )


def read_settings(texts: Mapping[str, str]) -> Settings:
    """Parse the settings.

    Raises:
        SettingsError: a value does not parse.
    """
    delay = texts.get("reservation.delay")
    delay_ns = 2 * SECOND_NS if delay is None else parse_duration_ns(delay)
    if delay_ns is None or delay_ns < 0:
        raise SettingsError(f"reservation.delay: {delay!r}: must be a duration like 2s or 1m30s")
    delay_ns = min(delay_ns, TIME_MAX_NS)
    if not _flag(texts, "reservation.enabled", default=True):
        delay_ns = UNLIMITED
    hold = parse_duration_ns(texts.get("gang.hold.max.age", "120m"))
    if hold is None or hold < 0:
        raise SettingsError(f"gang.hold.max.age: {texts['gang.hold.max.age']!r}: must be a duration like 30m, or 0")
    starting = "application.state.starting"
    return Settings(
        reservation_delay_ns=delay_ns,
        starting=_flag(texts, starting, default=False) if starting in texts else None,
        outstanding_inspection=_flag(texts, "outstanding.inspection", default=True),
        parking=_flag(texts, "scheduler.parking", default=True),
        priority_classes={
            key[len(PRIORITY_CLASS_PREFIX) :]: _int32(key, text)
            for key, text in texts.items()
            if key.startswith(PRIORITY_CLASS_PREFIX)
        },
        event_tracking=texts.get("event.trackingEnabled", "true") not in _FALSE,
        event_capacity=_capacity(texts.get("event.requestCapacity", "")),
        gang_hold_ns=min(hold, TIME_MAX_NS),
    )


def _flag(texts: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = texts.get(key)
    if text is None:
        return default
    if text not in _TRUE + _FALSE:
        raise SettingsError(f"{key}: {text!r}: must be true or false")
    return text in _TRUE


def _capacity(text: str) -> int:
    plain = text.isascii() and text.isdigit() and len(text) <= 20
    return min(int(text), EVENT_CAPACITY_MAX) or EVENT_CAPACITY if plain else EVENT_CAPACITY


def _int32(key: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 1 << 40
    if not -(1 << 31) <= value < 1 << 31:
        raise SettingsError(f"{key}: {text!r}: must be an integer of 32 bits")
    return value
