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


Numbers = tuple[tuple[str, str, int, int], ...]


class Written(NamedTuple):
    """How a proposed change is made: `text` is a part of queues.yaml or commands, as `kind` says.

    `numbers`: of each amount that changes the place, the type of resource, and the values before and after. `reach`: whom else the
    change concerns, where that is easily overlooked.
    """

    kind: str
    text: str
    numbers: Numbers = ()
    reach: str = ""


def who(proposal: Proposal) -> int:
    """Return who can make all changes of a proposal: 0 the application's owner, 1 who configures queues, 2 who runs the cluster."""
    return max(
        2 if isinstance(change, OF_THE_CLUSTER) else int(isinstance(change, CONFIGURED)) for change in proposal.changes
    )


def written(proposal: Proposal, ask: AskAnswer) -> tuple[Written, ...]:
    """Return the changes of a proposal that are parts of the configuration, or commands."""
    found = (_one_written(change, ask) for change in proposal.changes)
    return tuple(each for each in found if each is not None)


def _one_written(change: changes.Change, ask: AskAnswer) -> Written | None:
    """Return a change as a part of the configuration or as a command; None if it is neither."""
    assert ask.chain is not None
    partition = ask.partition
    match change:
        case changes.QueueMax(queue=path, more=more, dynamic=False):
            level = next((each for each in ask.chain.queues if each.queue == path), None)
            most, numbers = _raised(path, None if level is None else level.max, more)
            return Written("queues.yaml", _yaml(partition, path, {"resources": {"max": most}}), numbers)
        case changes.LimitMax(kind=kind, name=name, queue=path, more=more, wildcard=wildcard):
            limit = next((e for e in ask.chain.limits if (e.kind, e.name, e.queue) == (kind, name, path)), None)
            who = "*" if wildcard else name
            most, numbers = _raised(f"{kind} {who} at {path}", None if limit is None else limit.max, more)
            limits = [{"limit": who, f"{kind}s": [who], "maxresources": most}]
            return Written("queues.yaml", _yaml(partition, path, {"limits": limits}), numbers)
        case changes.MaxApplications(queue=path, more=more, kind="queue", dynamic=False):
            level = next((each for each in ask.chain.queues if each.queue == path), None)
            was = level.max_applications if level is not None else 0
            numbers = ((path, "applications", was, was + more),)
            return Written("queues.yaml", _yaml(partition, path, {"maxapplications": was + more}), numbers)
        case changes.Schedulable(node=node):
            return Written("command", f"kubectl uncordon {shlex.quote(node)}")
        case changes.NoTaint(node=node, taint=taint):
            command = f"kubectl taint nodes {shlex.quote(node)} {shlex.quote(f'{taint}-')}"
            reach = f"For the whole cluster: pods that do not tolerate this taint may then run on {node}, too."
            return Written("command", command, reach=reach)
    return None


def _raised(place: str, most: dict[str, int] | None, more: dict[str, int]) -> tuple[dict[str, int | str], Numbers]:
    """Return the amounts of a max or a limit that are raised, as they are written, and the numbers of `Written`."""
    before = most or {}
    after = {name: before.get(name, 0) + amount for name, amount in more.items()}
    numbers = tuple((place, name, before.get(name, 0), value) for name, value in after.items())
    return {name: _quantity(name, value) for name, value in after.items()}, numbers


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
