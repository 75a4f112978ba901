"""The meaning of the free-form properties of a queue (docs/spec/config.md, section 7; *Sorting Policies*).

Properties are never a reason to refuse a configuration: for an invalid value the default is used, and an unknown key
is kept and ignored. So reading them cannot fail, and is a pure function of the merged map. The same tables serve
`config check`, which warns of values for which the default is used (`bad_properties`).

Merging is here too, because it depends on the key whether a child inherits it from its parent. Only configured
queues inherit; a dynamic leaf has the properties of its template, a dynamic parent none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, get_args

import msgspec

SortPolicy = Literal["fifo", "fair", "stateaware"]
PreemptionPolicy = Literal["default", "fence", "disabled"]

APPLICATION_SORT_POLICY: Final = "application.sort.policy"
APPLICATION_SORT_PRIORITY: Final = "application.sort.priority"
APPLICATION_UNSCHEDULABLE_ASKS_BACKOFF: Final = "application.unschedasks.backoff"
APPLICATION_UNSCHEDULABLE_ASKS_BACKOFF_DELAY: Final = "application.unschedasks.backoff.delay"
PRIORITY_POLICY: Final = "priority.policy"
PRIORITY_OFFSET: Final = "priority.offset"
PREEMPTION_POLICY: Final = "preemption.policy"
PREEMPTION_WITHIN_QUEUE: Final = "preemption.within-queue"
PREEMPTION_DELAY: Final = "preemption.delay"
QUOTA_PREEMPTION_DELAY: Final = "quota.preemption.delay"
GANG_SCHEDULING: Final = "gang.scheduling"

DEFAULT_DELAY_NS: Final = 30 * 10**9
MAX_DURATION_NS: Final = 2**63 - 1


class QueueProperties(msgspec.Struct, frozen=True):
    """The meaning of a queue's merged properties.

    Delays are in nanoseconds; `backoff` and `quota_preemption_delay_ns` are 0 if they are off.
    `sort_policy` is the configured policy of a leaf; a parent sorts its queues fairly whatever its policy, and
    `stateaware` is fifo if the resource manager has no Starting state (docs/spec/states.md, section 4).
    `preempts_within`: asks may evict allocations of lower priority of the same queue.
    `atomic_gangs`: applications that come with task groups are placed as a whole (docs/understand/gangs-atomic.md).
    """

    sort_policy: SortPolicy = "fifo"
    sort_by_priority: bool = True
    backoff: int = 0
    backoff_delay_ns: int = DEFAULT_DELAY_NS
    priority_fence: bool = False
    priority_offset: int = 0
    preemption_policy: PreemptionPolicy = "default"
    preempts_within: bool = False
    preemption_delay_ns: int = DEFAULT_DELAY_NS
    quota_preemption_delay_ns: int = 0
    atomic_gangs: bool = False


# -- texts to values: None means that the text is not a legal value -------------------------------------


def _sort_policy(text: str) -> str | None:
    return text if text in get_args(SortPolicy) else None


def _preemption_policy(text: str) -> str | None:
    return text.lower() if text.lower() in get_args(PreemptionPolicy) else None


def _word(**values: bool) -> Callable[[str], bool | None]:
    """Return what reads one of these words, in small letters or capitals."""
    return lambda text: values.get(text.lower())


def parse_gang_scheduling(text: str) -> bool | None:
    """Return whether gangs are atomic; None for an illegal value. An application's tag has the same values."""
    return {"atomic": True, "default": False}.get(text.lower())


def parse_int32(text: str) -> int | None:
    """Return an integer of 32 bits in decimal digits, with or without a sign; None for any other text."""
    return _integer(text, r"[+-]?[0-9]+", -(2**31), 2**31 - 1)


def _uint64(text: str) -> int | None:
    return _integer(text, r"[0-9]+", 0, 2**64 - 1)


def _integer(text: str, pattern: str, low: int, high: int) -> int | None:
    if re.fullmatch(pattern, text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > 20:  # 2**64 has 20 digits; a longer text is refused without converting it, which is cheap
        return None
    value = -int(digits) if text.startswith("-") else int(digits)
    return value if low <= value <= high else None


_UNITS_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_LONGEST_DURATION: Final = 256


def parse_duration_ns(text: str) -> int | None:
    """Return the nanoseconds of a Go duration such as `1h30m` or `1.5s`; None if it is invalid or above 2**63 - 1.

    Fractions of a nanosecond are cut. A bare `0` is a duration, any other number needs its unit.
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    if not 0 < len(rest) <= _LONGEST_DURATION:
        return None
    total, position = 0, 0
    while position < len(rest):
        part = _DURATION_PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            return None
        unit = _UNITS_NS[part[3]]
        fraction = part[2] or ""
        total += int(part[1] or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = part.end()
    return sign * total if total <= MAX_DURATION_NS else None


def _delay(text: str) -> int | None:
    value = parse_duration_ns(text)
    return value if value is not None and value > 0 else None


# -- the table --------------------------------------------------------------------------------------------


class Property(msgspec.Struct, frozen=True):
    """A known key: the field that it sets, how its text is read, and whether a configured child inherits it.

    `default` is the text that children have instead, if a key is not or not always inherited.
    """

    key: str
    field: str
    read: Callable[[str], object]
    expects: str
    inherited: Literal["yes", "no", "disabled"] = "yes"
    default: str = ""


PROPERTIES: Final[dict[str, Property]] = {
    known.key: known
    for known in (
        Property(APPLICATION_SORT_POLICY, "sort_policy", _sort_policy, "fifo, fair or stateaware, in lower case"),
        Property(
            APPLICATION_SORT_PRIORITY, "sort_by_priority", _word(enabled=True, disabled=False), "enabled or disabled"
        ),
        Property(APPLICATION_UNSCHEDULABLE_ASKS_BACKOFF, "backoff", _uint64, "a whole number, 0 for off"),
        Property(
            APPLICATION_UNSCHEDULABLE_ASKS_BACKOFF_DELAY, "backoff_delay_ns", _delay, "a duration above zero, as 30s"
        ),
        Property(
            PRIORITY_POLICY, "priority_fence", _word(default=False, fence=True), "default or fence", "no", "default"
        ),
        Property(PRIORITY_OFFSET, "priority_offset", parse_int32, "a whole number of 32 bits", "no", "0"),
        Property(
            PREEMPTION_POLICY,
            "preemption_policy",
            _preemption_policy,
            "default, fence or disabled",
            "disabled",
            "default",
        ),
        Property(
            PREEMPTION_WITHIN_QUEUE, "preempts_within", _word(priority=True, default=False), "priority or default"
        ),
        Property(PREEMPTION_DELAY, "preemption_delay_ns", _delay, "a duration above zero, as 30s"),
        Property(QUOTA_PREEMPTION_DELAY, "quota_preemption_delay_ns", _delay, "a duration above zero, as 30s"),
        Property(GANG_SCHEDULING, "atomic_gangs", parse_gang_scheduling, "atomic or default"),
    )
}


def parse_properties(properties: Mapping[str, str]) -> QueueProperties:
    """Return the meaning of merged properties; unknown keys are ignored, and for invalid values the default is used.

    >>> parse_properties({"application.sort.policy": "fair", "priority.offset": "five"}).priority_offset
    0
    """
    fields: dict[str, object] = {}
    for key, text in properties.items():
        known = PROPERTIES.get(key)
        value = known.read(text) if known is not None else None
        if known is not None and value is not None:
            fields[known.field] = value
    return msgspec.convert(fields, QueueProperties) if fields else QueueProperties()


def bad_properties(properties: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and what was expected for each known key whose invalid value is replaced by the default."""
    for key, text in properties.items():
        known = PROPERTIES.get(key)
        if known is not None and known.read(text) is None:
            yield key, text, known.expects


def inherit_properties(parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a configured queue: those inherited from its parent's merged map, then its own.

    Priority policy and offset belong to one queue alone. A preemption policy is inherited only if it is `disabled`.
    If the parent has one of these that is not inherited, the child gets the text of the default. Everything else,
    including unknown keys, is inherited.
    """
    merged: dict[str, str] = {}
    for key, text in parent.items():
        known = PROPERTIES.get(key)
        how = known.inherited if known is not None else "yes"
        if how == "yes" or (how == "disabled" and text.lower() == "disabled"):
            merged[key] = text
        elif known is not None:
            merged[key] = known.default
    merged.update(own)
    return merged
