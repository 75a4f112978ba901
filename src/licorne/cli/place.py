"""`licorne place`: says in which queue an application would be placed, given a configuration file alone.

The answer comes from the scheduler's own placement rules, applied to the tree of queues in the file: there are no
queues that placement has created earlier, and none that drain.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from licorne._wording import counted
from licorne.cli.common import CommandError, pairs, print_json, say
from licorne.cli.configurations import read_configuration
from licorne.cli.parameters import Flag, Pairs, Texts
from licorne.cli.statuses import Status
from licorne.config.model import Configuration, PartitionConfig
from licorne.core.inputs.admission import identity
from licorne.core.placement.placer import FORCE_TAG, Placement, PlacementRequest, Placer, RuleStep, is_forced
from licorne.core.placement.rules import RECOVERY_PATH
from licorne.core.placement.static_tree import StaticTree


class Answer(msgspec.Struct):
    """Where an application would be placed, as `licorne place --json` prints it.

    `queue`: its path, or None and then a `reason`. `create`: it would be created. `rules`: the result of each placement rule.
    `admitted_by`: the access control list that lets the user submit there, such as `root: submitacl`; "" if none is asked.
    """

    queue: str | None
    create: bool
    reason: str
    rules: tuple[RuleStep, ...]
    admitted_by: str


def place(
    *,
    config: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    user: str,
    group: Texts = (),
    queue: str = "",
    tag: Pairs = (),
    partition: str = "default",
    force: Flag = False,
    strict: Flag = False,
    json: Flag = False,
) -> int:
    """Say which queue an application would be placed in, and what each placement rule said to it.

    Parameters
    ----------
    config
        Queue configuration (queues.yaml), or a ConfigMap that holds one; -: standard input.
    user
        The user who submits the application.
    group
        A group of the user; may be given several times, the primary group first.
    queue
        The queue that the application asks for.
    tag
        A tag of the application, like namespace=dev; may be given several times.
    partition
        The partition that the application is submitted to.
    force
        The application must not be lost (tag application.create.force).
    strict
        Warnings of `licorne config check` on the configuration are errors.
    json
        Print the answer as a JSON object.
    """
    source, configuration, report = read_configuration(config)
    if strict and report.warnings:
        for warning in report.warnings:
            say(warning, to=sys.stderr)
        raise CommandError(
            f"{source.label}: {counted(len(report.warnings), 'warning')}, which --strict refuses", Status.STRICT
        )
    chosen = _partition(configuration, source.label, partition)
    tags = pairs("--tag", tag)
    if force:
        tags[FORCE_TAG] = "true"
    answer, admitted_by = ask(chosen, user, group, queue, tags)
    if json:
        admitted = ": ".join(admitted_by or ())
        print_json(Answer(answer.queue, answer.create, answer.reason, answer.steps, admitted))
    else:
        say(_verdict(answer))
        for step in answer.steps:
            say(f"  {step}")
        if admitted_by is not None:
            path, key = admitted_by
            say(f"  {user} may submit there: {key} of {path}")
    return Status.DONE if answer.queue is not None else Status.NO


def ask(
    partition: PartitionConfig, user: str, groups: tuple[str, ...], queue: str, tags: dict[str, str]
) -> tuple[Placement, tuple[str, str] | None]:
    """Return the placement of an application in a partition as it is configured.

    With it comes the access control list that lets the user submit there, as `StaticQueue.admitted_by` names it.
    """
    forced = is_forced(tags)
    user, groups, fault = identity(user, groups, forced=forced)
    if fault:
        return Placement(None, False, fault, ()), None
    tree = StaticTree(partition)
    request = PlacementRequest("", queue, user, groups, tags, forced)
    answer = Placer.first(partition.placement_rules).place(request, tree)
    if answer.queue is None or answer.queue == RECOVERY_PATH:
        return answer, None
    return answer, tree.nearest(answer.queue).admitted_by(user, groups)


def _verdict(answer: Placement) -> str:
    if answer.queue is None:
        return f"none: {answer.reason.removeprefix('failed to place application : ')}"
    return f"{answer.queue} (would be created)" if answer.create else answer.queue


def _partition(configuration: Configuration, label: str, name: str) -> PartitionConfig:
    for partition in configuration.partitions:
        if partition.name == name:
            return partition
    names = ", ".join(partition.name for partition in configuration.partitions) or "none"
    raise CommandError(f"{label}: there is no partition {name!r}; there is: {names}", Status.CONFIGURATION)
