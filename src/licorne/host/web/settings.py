"""Settings of events and health checks (docs/spec/events.md, section 4); those of requests are `RequestLimits`."""

from __future__ import annotations

import msgspec

from licorne.core.base.setting_table import TABLE


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of events and health checks.

    `health_interval_s`: seconds; 0 or less: no health checks. `event_capacity`: number of events kept. `tracks_events`:
    events are made.
    """

    health_interval_s: float = TABLE.field("health.checkInterval")
    event_capacity: int = TABLE.field("event.ringBufferCapacity")
    tracks_events: bool = TABLE.field("event.trackingEnabled")
