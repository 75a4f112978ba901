"""`licorne place`: says in which queue an application would be placed, given a configuration file alone.

The answer comes from the scheduler's own placement rules, applied to the tree of queues in the file: there are no
queues that placement has created earlier, and none that drain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from licorne.cli.common import CommandError, pairs, print_json, read_text
from licorne.config import ConfigError, load
from licorne.config.model import PartitionConfig
from licorne.core.inputs.admission import identity
from licorne.core.placement.placer import FORCE_TAG, Placement, PlacementRequest, Placer, RuleStep, is_forced
from licorne.core.placement.static_tree import StaticTree

Texts = Annotated[tuple[str, ...], Parameter(negative="")]
Flag = Annotated[bool, Parameter(negative="")]


class Answer(msgspec.Struct):
    """The output of `--json`: the queue or None, the reason if there is none, and the result of each rule."""

    queue: str | None
    create: bool
    reason: str
    rules: tuple[RuleStep, ...]


def place(
    *,
    config: Path,
    user: str,
    group: Texts = (),
    queue: str = "",
    tag: Texts = (),
    partition: str = "default",
    force: Flag = False,
    json: Flag = False,
) -> int:
    """Say which queue an application would be placed in, and what each placement rule said to it.

    Exit status: 0 if there is a queue, 1 if there is none.

    Parameters
    ----------
    config
        Queue configuration (queues.yaml).
    user
        The user who submits the application.
    group
        A group of the user; may be given several times, the primary group first.
    queue
        The queue that the application asks for.
    tag
        A tag of the application, as KEY=VALUE; may be given several times.
    partition
        The partition that the application is submitted to.
    force
        The application must not be lost (tag application.create.force).
    json
        Print the answer as a JSON object.
    """
    chosen = _partition(config, partition)
    tags = pairs("--tag", tag)
    if force:
        tags[FORCE_TAG] = "true"
    answer = ask(chosen, user, group, queue, tags)
    if json:
        print_json(Answer(answer.queue, answer.create, answer.reason, answer.steps))
    else:
        print(_verdict(answer))
        for step in answer.steps:
            print(f"  {step}")
    return 0 if answer.queue is not None else 1


def ask(partition: PartitionConfig, user: str, groups: tuple[str, ...], queue: str, tags: dict[str, str]) -> Placement:
    """Return the placement of an application in a partition as it is configured."""
    forced = is_forced(tags)
    user, groups, fault = identity(user, groups, forced=forced)
    if fault:
        return Placement(None, False, fault, ())
    request = PlacementRequest("", queue, user, groups, tags, forced)
    return Placer.first(partition.placement_rules).place(request, StaticTree(partition))


def _verdict(answer: Placement) -> str:
    if answer.queue is None:
        return f"none: {answer.reason.removeprefix('failed to place application : ')}"
    return f"{answer.queue} (would be created)" if answer.create else answer.queue


def _partition(config: Path, name: str) -> PartitionConfig:
    try:
        partitions = load(read_text(config, "a queue configuration"), file=str(config)).partitions
    except ConfigError as error:
        raise CommandError(f"the configuration cannot be used\n{error}") from None
    for partition in partitions:
        if partition.name == name:
            return partition
    names = ", ".join(partition.name for partition in partitions) or "none"
    raise CommandError(f"{config}: there is no partition {name!r}; there is: {names}")
