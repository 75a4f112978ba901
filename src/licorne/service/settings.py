"""What the service may be told: limits and times, each with its default.

Every limit has an error of its own, named in `docs/service.md`. Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

import msgspec

MIB = 1 << 20


class SettingError(ValueError):
    """A value that makes no sense; the text names the setting and the rule."""


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and times of a service.

    `rm_timeout_s`: how long a resource manager may be paused, or registered without a stream, before it is stopped.
    `slow_after_s`: how long one that does not read what it is told is only slowed down, before it counts as paused.
    `slice_s`: how long the scheduler decides before it looks at the network again.
    `batch`: how many decisions, or other answers, one message tells at most.
    `message_bytes`: the longest message that is taken. What is sent is cut to pieces of at most the same length; it is
    also what gRPC's own clients take without being told otherwise.
    `buffer_bytes`: how much may wait for one resource manager to read it, before no more of its requests are read and
    nothing is decided for it. `streams`, `managers`: how many at once, of all together. `name_chars`: length of an rmID.
    `names`: length of any other name, in characters: of an application, ask, node, queue, user, group, task group, tag,
    attribute or type of resource. `tags`: how many of them one item may have (tags, attributes, groups, types of
    resources). `queues`: how many one configuration may have. `body_bytes`: the longest body of a request by REST, which is a
    configuration: 10,000 queues with their quotas take 0.8 MB. `request_s`: how long an answer to a call may take.
    `keepalive_s`: how long a connection may be silent before the other end is asked whether it is still there.
    `grace_s`: how long calls under way may take when the service ends.
    """

    rm_timeout_s: float = 60.0
    slow_after_s: float = 10.0
    slice_s: float = 0.005
    batch: int = 1000
    message_bytes: int = 4 * MIB
    buffer_bytes: int = 16 * MIB
    streams: int = 3000
    managers: int = 1000
    name_chars: int = 256
    names: int = 1024
    tags: int = 1000
    queues: int = 10_000
    body_bytes: int = MIB
    request_s: float = 30.0
    keepalive_s: float = 20.0
    grace_s: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not value > 0 or value > 1 << 31:
                raise SettingError(f"{name}: {value}: must be more than 0 and at most 2147483648")


__all__ = ["MIB", "ServiceSettings", "SettingError"]
