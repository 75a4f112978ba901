"""The quota of a dynamic leaf queue in an application's tags (docs/spec/scheduling.md, section 12).

A resource manager copies these tags from annotations of a namespace, where anybody may have written anything: a tag
that cannot be parsed counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from .states import SECOND_NS, TIME_MAX_NS

MAX_TAG: Final = "namespace.resourcequota"
GUARANTEED_TAG: Final = "namespace.resourceguaranteed"
MAX_APPLICATIONS_TAG: Final = "namespace.resourcemaxapps"

INT64_MAX: Final = 2**63 - 1


class TagQuota(NamedTuple):
    """A quota from tags; resources are None and the number of applications is 0 where no tag gives a usable value."""

    max: dict[str, int] | None
    guaranteed: dict[str, int] | None
    max_applications: int


def quota_of_tags(tags: Mapping[str, str]) -> TagQuota:
    """Parse the three tags."""
    return TagQuota(
        max=_resource(tag(tags, MAX_TAG)),
        guaranteed=_resource(tag(tags, GUARANTEED_TAG)),
        max_applications=_count(tag(tags, MAX_APPLICATIONS_TAG)),
    )


def tag(tags: Mapping[str, str], name: str) -> str:
    """Return the value of a tag, "" if there is none.

    Case is ignored; of names that differ only in case, the first in byte order counts.
    """
    return next((tags[key] for key in sorted(tags) if key.lower() == name.lower()), "")


def seconds_tag(text: str) -> int | None:
    """Convert a tag's Unix seconds to nanoseconds; None if it is empty, no such number, or beyond `TIME_MAX_NS`."""
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        return None
    moment = int(text) * SECOND_NS
    return moment if moment <= TIME_MAX_NS else None


def _count(text: str) -> int:
    """Parse the digits of a uint64; 0 for anything else."""
    if not (text.isascii() and text.isdigit()):
        return 0
    number = int(text) if len(text) <= 20 else 2**64
    return number if number < 2**64 else 0


def _resource(text: str) -> dict[str, int] | None:
    """Parse `{"resources": {"vcore": {"value": 1000}}}` into a map.

    None unless some amount is above zero and none below.
    """
    if not text:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    resources = document.get("resources") if isinstance(document, dict) else None
    if not isinstance(resources, dict):
        return None
    amounts: dict[str, int] = {}
    for name, quantity in resources.items():
        value = quantity.get("value", 0) if isinstance(quantity, dict) else None
        if type(value) is not int or not 0 <= value <= INT64_MAX:
            return None
        amounts[name] = value
    return amounts if any(amounts.values()) else None
