"""How many applications of an input each placement rule of a configuration would place, for `licorne config check --from`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from licorne.config.model import PartitionConfig
from licorne.core.inputs.admission import identity
from licorne.core.placement.placer import PlacementRequest, Placer, Verdict, is_forced
from licorne.core.placement.static_tree import StaticTree


class Submitted(NamedTuple):
    """An application as it is submitted: the queue that it asks for, or none, its user, the user's groups, and its tags.

    `groups_found`: the host found the groups (`licorne.si.messages.AddApplication`).
    """

    queue: str
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]
    groups_found: bool = False


def rules_used(applications: Iterable[Submitted], partition: PartitionConfig) -> Counter[int]:
    """Return how many applications each rule places, by its position from 1, in the queues that are configured.

    The recovery rule, which is last, has a position too. What no rule places is not counted.
    """
    tree, placer = StaticTree(partition), Placer.first(partition.placement_rules)
    known: dict[tuple[object, ...], int] = {}  # most applications are submitted alike
    found: Counter[int] = Counter()
    for app in applications:
        alike = (app.queue, app.user, app.groups, tuple(sorted(app.tags.items())), app.groups_found)
        if alike not in known:
            known[alike] = _position(app, placer, tree)
        found[known[alike]] += 1
    del found[0]
    return found


def asked_path(queue: str) -> str:
    """Return the full path of a queue that an application asks for."""
    name = queue.lower()
    return name if not name or name == "root" or name.startswith("root.") else f"root.{name}"


def _position(app: Submitted, placer: Placer, tree: StaticTree) -> int:
    """Return the position of the rule that places an application; 0 if none does."""
    forced = is_forced(app.tags)
    user, groups, fault = identity(app.user, app.groups, forced=forced, found=app.groups_found)
    if fault:
        return 0
    steps = placer.place(PlacementRequest("", app.queue, user, groups, app.tags, forced), tree).steps
    return next((step.index for step in steps if step.verdict is Verdict.PLACED), 0)
