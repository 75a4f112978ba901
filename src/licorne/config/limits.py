"""Checks the limits of users and groups: within each queue, then against those of the queues above.

Source: docs/spec/config.md, sections 5.5 and 5.9.

The order of limits carries meaning: the wildcard means everybody not named *before*, so it comes last and once.
Down the tree the nearest entry for a user counts, named or wildcard, and a limit may only become tighter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeVar

from licorne.config.problems import Notes
from licorne.config.raw import RawLimit, RawPartition, RawQueue, Value
from licorne.config.resources import Amounts, Quantities, beyond, tighter

WILDCARD: Final = "*"
USER_NAME: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?")
GROUP_NAME: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")

Who = Literal["users", "groups"]
_Bound = TypeVar("_Bound")
_BOTH: Final[tuple[Who, Who]] = ("users", "groups")
_PATTERNS: Final = {"users": USER_NAME, "groups": GROUP_NAME}


# -- partition against root ---------------------------------------------------------------------------------


def check_partition_limits(partition: RawPartition, root: RawQueue, notes: Notes) -> None:
    """Make the limits of the partition those of root. Both may be given only if they are spelled the same."""
    if not partition.limits:
        return
    if not root.limits:
        root.limits = partition.limits
    elif [_spelling(limit) for limit in partition.limits] != [_spelling(limit) for limit in root.limits]:
        message = "the limits of the partition and those of its root queue differ; give them in one place"
        notes.fault("limit-partition-root", partition.spot("limits"), message)


def _spelling(limit: RawLimit) -> tuple[object, ...]:
    """Return what the original compares of a limit: its texts, where an absent list differs from an empty one."""
    users, groups = ([v.text for v in names] if names is not None else None for names in (limit.users, limit.groups))
    resources = limit.maxresources
    amounts = {key: value.text for key, value in resources.items()} if resources is not None else None
    return limit.limit, users, groups, amounts, limit.maxapplications


# -- the limits of one queue --------------------------------------------------------------------------------


def check_queue_limits(queue: RawQueue, quantities: Quantities, notes: Notes) -> None:
    """Check the limits of one queue against each other and against the queue's own maxima."""
    if not queue.limits:
        return
    queue_max = quantities.maximum(queue)
    seen: dict[Who, set[str]] = {"users": set(), "groups": set()}
    for limit in queue.limits:
        if not limit.users and not limit.groups and not limit.broken & {"users", "groups"}:
            notes.fault("limit-nobody", limit.spot(), "a limit needs users or groups")
        for who in _BOTH:
            _check_names(who, limit, seen[who], notes)
        if seen["groups"] == {WILDCARD} and limit.groups:
            message = "a wildcard for groups needs a limit with a named group before it in the same queue"
            notes.fault("limit-group-wildcard-alone", limit.spot("groups"), message)
        _check_amounts(queue, queue_max, limit, quantities, notes)


def _check_names(who: Who, limit: RawLimit, seen: set[str], notes: Notes) -> None:
    singular = who[:-1]
    for name in getattr(limit, who) or ():
        if name.text != WILDCARD and not _PATTERNS[who].fullmatch(name.text):
            notes.fault("limit-name", name.spot, f"'{name.text}' is no legal {singular} name")
        elif name.text in seen:
            notes.fault("limit-duplicate", name.spot, f"{singular} '{name.text}' has a limit in this queue already")
        elif WILDCARD in seen:
            message = f"{singular} '{name.text}' comes after the wildcard, which must be the last in a queue"
            notes.fault("limit-after-wildcard", name.spot, message)
        seen.add(name.text)


def _check_amounts(queue: RawQueue, queue_max: Amounts, limit: RawLimit, quantities: Quantities, notes: Notes) -> None:
    amounts = quantities.of(limit.maxresources)
    if limit.maxresources and len(amounts) == len(limit.maxresources) and not any(amounts.values()):
        notes.fault("limit-zero", limit.spot("maxresources"), "a limit on resources needs one value above zero")
    if limit.maxapplications == 0 and not limit.maxresources and not limit.broken & {"maxapplications", "maxresources"}:
        notes.fault("limit-empty", limit.spot(), "a limit needs maxresources or maxapplications")
    if queue.maxapplications != 0 and limit.maxapplications > queue.maxapplications:
        message = f"{limit.maxapplications} applications are more than the queue's {queue.maxapplications}"
        notes.fault("limit-above-queue-applications", limit.spot("maxapplications"), message)
    over = beyond(queue_max, amounts)
    if over and queue.name != "root":
        message = f"the limit is above the max of queue '{queue.name}': {over}"
        notes.fault("limit-above-queue-max", limit.spot("maxresources"), message)


# -- along the tree -----------------------------------------------------------------------------------------


def check_limit_hierarchy(root: RawQueue, quantities: Quantities, notes: Notes) -> None:
    """Check that no limit is above an ancestor's.

    The whole tree is checked for resources, then for applications: that is the order in which the original reports.
    """

    def resources(queue: RawQueue, who: Who, name: Value, limit: RawLimit, above: Amounts, nearest: str) -> Amounts:
        own = quantities.of(limit.maxresources)
        over = beyond(above, own)
        if over:
            message = (
                f"{who[:-1]} '{name.text}' may use more in queue '{queue.name}' than "
                f"{_in_a_queue_above(who, nearest)}: {over}"
            )
            notes.fault("limit-above-parent-max", limit.spot("maxresources"), message)
        return tighter(own, above) if nearest == name.text else own

    def applications(queue: RawQueue, who: Who, name: Value, limit: RawLimit, above: int, nearest: str) -> int:
        own = limit.maxapplications
        if above != 0 and (own > above or own == 0) and "maxapplications" not in limit.broken:
            many = "any number of applications" if own == 0 else f"{own} applications"
            remedy = f"write maxapplications: {above} or less" if own == 0 else f"at most {above} are possible"
            message = (
                f"{who[:-1]} '{name.text}' may have {many} in queue '{queue.name}', but only {above} "
                f"{_in_a_queue_above(who, nearest)}; {remedy}"
            )
            notes.fault("limit-above-parent-applications", limit.spot("maxapplications"), message)
        return own

    _walk(root, {"users": {}, "groups": {}}, resources, lambda limit: quantities.of(limit.maxresources))
    _walk(root, {"users": {}, "groups": {}}, applications, lambda limit: limit.maxapplications)


def _in_a_queue_above(who: Who, nearest: str) -> str:
    return f"by the wildcard for {who} of a queue above" if nearest == WILDCARD else "in a queue above"


def _walk(
    queue: RawQueue,
    carried: dict[Who, dict[str, _Bound]],
    compare: Callable[[RawQueue, Who, Value, RawLimit, _Bound, str], _Bound],
    start: Callable[[RawLimit], _Bound],
) -> None:
    """Compare a queue's limits with the nearest ones above it, and carry them down to its children.

    `carried` is changed on the way down and restored on the way up: copies would cost users times queues.
    Limits of the same queue are not compared with each other, so they come into force together.
    """
    own: list[tuple[Who, str, _Bound]] = []
    for who in _BOTH:
        above = carried[who]
        for limit in queue.limits or ():
            for name in getattr(limit, who) or ():
                nearest = name.text if name.text in above else WILDCARD
                bound = compare(queue, who, name, limit, above[nearest], nearest) if nearest in above else start(limit)
                own.append((who, name.text, bound))
    before = [(who, name, carried[who].get(name)) for who, name, _ in own]
    for who, name_text, bound in own:
        carried[who][name_text] = bound
    for child in queue.queues or ():
        _walk(child, carried, compare, start)
    for who, name_text, earlier in reversed(before):
        if earlier is None:
            carried[who].pop(name_text, None)
        else:
            carried[who][name_text] = earlier
