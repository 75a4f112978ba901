"""A proposal as its changes are written: parts of the configuration ready to copy, or commands, with the numbers before and after."""

from __future__ import annotations

import shlex
from typing import Any, Final, NamedTuple

import yaml

from licorne.answers import changes
from licorne.answers.proposals import Proposal
from licorne.answers.why import AskAnswer
from licorne.config.quantity import spoken

CONFIGURED: Final = (changes.QueueMax, changes.LimitMax, changes.MaxApplications)
OF_THE_CLUSTER: Final = (
    *(changes.MoreNodes, changes.OwnNode, changes.BiggerNode),
    *(changes.NoTaint, changes.Schedulable, changes.End),
)


class Written(NamedTuple):
    """How a proposed change is made: `text` is a part of queues.yaml or commands, as `kind` says.

    `numbers`: of each amount that changes the place, the type of resource, and the values before and after. `reach`: whom else the
    change concerns, where that is easily overlooked.
    """

    kind: str
    text: str
    numbers: tuple[tuple[str, str, int, int], ...] = ()
    reach: str = ""


def who(proposal: Proposal) -> int:
    """Return who can make all changes of a proposal: 0 the application's owner, 1 who configures queues, 2 who runs the cluster."""
    return max(
        2 if isinstance(change, OF_THE_CLUSTER) else int(isinstance(change, CONFIGURED)) for change in proposal.changes
    )


def written(proposal: Proposal, ask: AskAnswer) -> tuple[Written, ...]:
    """Return the changes of a proposal that are parts of the configuration, or commands."""
    found = (_one_written(change, ask, ask.partition) for change in proposal.changes)
    return tuple(each for each in found if each is not None)


def _one_written(change: changes.Change, ask: AskAnswer, partition: str) -> Written | None:
    """Return a change as a part of the configuration or as a command; None if it is neither."""
    assert ask.chain is not None
    match change:
        case changes.QueueMax(queue=path, more=more, dynamic=False):
            level = next((each for each in ask.chain.queues if each.queue == path), None)
            before = dict(level.max or {}) if level is not None else {}
            after = {name: before.get(name, 0) + amount for name, amount in more.items()}
            own = {"resources": {"max": {name: _quantity(name, value) for name, value in after.items()}}}
            numbers = tuple((path, name, before.get(name, 0), value) for name, value in after.items())
            return Written("queues.yaml", _yaml(partition, path, own), numbers)
        case changes.LimitMax(kind=kind, name=name, queue=path, more=more, wildcard=wildcard):
            limit = next((e for e in ask.chain.limits if (e.kind, e.name, e.queue) == (kind, name, path)), None)
            before = dict(limit.max or {}) if limit is not None else {}
            after = {each: before.get(each, 0) + amount for each, amount in more.items()}
            who = "*" if wildcard else name
            limits: dict[str, Any] = {
                "limits": [
                    {
                        "limit": who,
                        f"{kind}s": [who],
                        "maxresources": {each: _quantity(each, value) for each, value in after.items()},
                    }
                ]
            }
            where = f"{kind} {who} at {path}"
            numbers = tuple((where, each, before.get(each, 0), value) for each, value in after.items())
            return Written("queues.yaml", _yaml(partition, path, limits), numbers)
        case changes.MaxApplications(queue=path, more=more, kind="queue", dynamic=False):
            level = next((each for each in ask.chain.queues if each.queue == path), None)
            was = level.max_applications if level is not None else 0
            return Written(
                "queues.yaml",
                _yaml(partition, path, {"maxapplications": was + more}),
                ((path, "applications", was, was + more),),
            )
        case changes.Schedulable(node=node):
            return Written("command", f"kubectl uncordon {shlex.quote(node)}")
        case changes.NoTaint(node=node, taint=taint):
            command = f"kubectl taint nodes {shlex.quote(node)} {shlex.quote(f'{taint}-')}"
            reach = f"For the whole cluster: pods that do not tolerate this taint may then run on {node}, too."
            return Written("command", command, reach=reach)
    return None


def _quantity(name: str, value: int) -> int | str:
    """Return an amount as people write it in a configuration: without quotes where it is a number."""
    text = spoken(name, value)
    return int(text) if text.isdigit() else text


def _yaml(partition: str, path: str, own: dict[str, Any]) -> str:
    """Return a part of queues.yaml: the way to a queue, and what of it changes."""
    inner: dict[str, Any] = {}
    for name in reversed(path.split(".")):
        inner = {"name": name, **(own if not inner else {"queues": [inner]})}
    found = {"partitions": [{"name": partition, "queues": [inner]}]}
    text: str = yaml.safe_dump(found, sort_keys=False, default_flow_style=False, width=1000, allow_unicode=True)
    return text
