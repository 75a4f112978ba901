"""The settings of the scheduler that are not part of a queue configuration, read from flat text keys.

They are given for each resource manager (with its policy group, or in the extra configuration of its registration),
like the settings of the original's ConfigMap (docs/spec/config.md, section 12). Keys that the core does not read are
ignored here; `licorne.core.base.setting_table` says which keys there are.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from licorne.core.constants import UNLIMITED

from .setting_table import TABLE


class Settings(msgspec.Struct, frozen=True):
    """The settings that the core reads.

    `reservation_age_ns`: how old an ask must be before it may reserve a node, if `reservations` are on at all.
    `starting`: whether Starting is a state of its own, None: the dialect decides. `outstanding_inspection`: whether
    asks that wait for resources are reported. `parking`: if off, every ask is tried again in every pass, which decides
    the same and is slow: for tests. `priority_classes` as in *Scheduler Interface Spec*. `event_tracking`,
    `event_capacity`: whether records of events are made for a resource manager that listens, and how many may wait
    (docs/spec/events.md, section 4). `gang_hold_ns`: how long a gang without placeholders may hold nodes, 0: it never
    holds any. `preferences`: how preferences and node order go together (`licorne.core.nodes.preferences`).
    """

    reservations: bool = TABLE.field("reservation.enabled")
    reservation_age_ns: int = TABLE.field("reservation.delay")
    gang_hold_ns: int = TABLE.field("gang.hold.max.age")
    starting: bool | None = TABLE.field("application.state.starting")
    outstanding_inspection: bool = TABLE.field("outstanding.inspection")
    parking: bool = TABLE.field("scheduler.parking")
    preferences: str = TABLE.field("scheduler.preferences")
    priority_classes: dict[str, int] = TABLE.field("priority.class.<name>")
    event_tracking: bool = TABLE.field("event.trackingEnabled")
    event_capacity: int = TABLE.field("event.requestCapacity")

    @property
    def reservation_delay_ns(self) -> int:
        """How old an ask must be before it may reserve a node; UNLIMITED where ordinary reservations are off."""
        return self.reservation_age_ns if self.reservations else UNLIMITED

    def reread(self, texts: Mapping[str, str]) -> Settings:
        """Return these settings with new values of those that may change at run time (`Setting.applies`: at once).

        Raises:
            SettingsError: a value does not parse, even of a setting that would not take effect.
        """
        new = read_settings(texts)
        at_once = {name: getattr(new, name) for name, one in TABLE.attributes(new) if one.applies == "at once"}
        return msgspec.structs.replace(self, **at_once)


def read_settings(texts: Mapping[str, str]) -> Settings:
    """Parse the settings.

    Raises:
        SettingsError: a value does not parse.
    """
    return TABLE.fill(Settings(), texts)
