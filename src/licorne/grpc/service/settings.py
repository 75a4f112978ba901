"""Limits and times of the service. The defaults of those that are settings are in `licorne.host.setting_table`.

Every limit has an error of its own, named in `docs/use/service.md`. Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from licorne.core.base.setting_kinds import MOST
from licorne.host.setting_table import TABLE


class SettingError(ValueError):
    """A setting has a value that is not allowed; the text names the setting and the rule."""


def check_amounts(settings: msgspec.Struct, names: Iterable[str]) -> None:
    """Check that each of these attributes is more than 0 and at most 2³¹.

    Raises:
        SettingError: one is not.
    """
    for name in names:
        value = getattr(settings, name)
        if not 0 < value <= MOST:
            raise SettingError(f"{name}: {value}: must be more than 0 and at most {MOST}")


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and times of a service.

    `rm_timeout_s`: how long a resource manager may be paused, or registered without a stream, before it is stopped.
    `slow_after_s`: how long a resource manager that does not read its messages is only slowed down, before it is
    paused.
    `slice_s`: how long the scheduler decides before the network has its turn again.
    `batch`: the most decisions, or other answers, in one message.
    `message_bytes`: the longest message that is accepted. Messages sent are divided so that they are no longer either;
    the default is also the limit of gRPC's own clients.
    `buffer_bytes`: how much may be queued for one resource manager, before no more of its requests are read and
    nothing is decided for it. `streams`, `managers`: the most at once in the whole service. `name_chars`: length of an
    rmID, in characters. `names`: length of any other name, in characters: of an application, ask, node, queue, user,
    group, task group, tag, attribute or type of resource. `tags`: the most entries in each collection of an item (tags,
    attributes, groups, types of resources). `queues`: the most queues in a configuration. `body_bytes`: the longest
    body of a REST request, which is a configuration: 10,000 queues with their quotas take 0.8 MB. `request_s`: how long
    the answer to a call may take. `keepalive_s`: how long a connection may be silent before gRPC checks whether the
    peer still answers. `grace_s`: how long calls under way may take when the service ends.
    """

    rm_timeout_s: float = TABLE.field("licorne.rm-timeout")
    slow_after_s: float = 10.0
    slice_s: float = 0.005
    batch: int = 1000
    message_bytes: int = TABLE.field("licorne.max-message")
    buffer_bytes: int = TABLE.field("licorne.max-buffer")
    streams: int = TABLE.field("licorne.max-streams")
    managers: int = TABLE.field("licorne.max-managers")
    name_chars: int = 256
    names: int = TABLE.field("licorne.max-name")
    tags: int = TABLE.field("licorne.max-tags")
    queues: int = TABLE.field("licorne.max-queues")
    body_bytes: int = TABLE.field("licorne.max-body")
    request_s: float = TABLE.field("licorne.request-time")
    keepalive_s: float = 20.0
    grace_s: float = 2.0

    def __post_init__(self) -> None:
        """Check that each value is more than 0 and at most 2³¹.

        Raises:
            SettingError: one is not.
        """
        check_amounts(self, self.__struct_fields__)
