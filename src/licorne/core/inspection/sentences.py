"""The reasons why an ask waits, in words: one sentence for people, and one summary by which equal reasons are counted.

Every surface takes its words from here: REST, the simulator's report, the Kubernetes side. Only where YuniKorn has a
sentence of its own does REST give that too (`licorne.host.web.rest.allocations`). Amounts are in the units of a queue
configuration. A summary has only what many asks have in common: amounts and numbers of nodes are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from licorne.config.quantity import spoken

from . import explain

NEVER = "it never runs as things are"
LACK = "lack of "
_PREEMPTION = {"attempted": "tried without success", "not tried": "not tried yet"}
"""What is said for those states of `explain.Preemption` whose names are not said themselves."""


def sentence(reason: explain.Reason) -> str:
    """Return a reason as a sentence that stands alone, with the amounts that are missing."""
    if reason.never:
        return _never(reason)
    match reason:
        case explain.QueueQuota():
            return f"The max of queue {reason.queue} leaves too little: {_missing(reason.missing)}."
        case explain.UserLimit():
            return f"The limit of {reason.kind} {reason.name} at {reason.queue} leaves too little: {_missing(reason.missing)}."
        case explain.ClusterFull():
            return f"The cluster is full: {_missing(reason.missing)}."
        case explain.Claimed():
            return (
                f"What {reason.kind} {reason.name} may use is claimed by asks that have preempted: "
                f"{_missing(reason.missing)}."
            )
        case explain.Nodes():
            counts = "; ".join(f"{why} ({_nodes(number)})" for why, number in reason.failed.items())
            return f"No node takes the ask now: {counts}."
        case explain.RequiredNode():
            lacking = f", {_missing(reason.missing)}" if reason.missing else ""
            return f"Node {reason.node}, which the ask requires, does not take it: {reason.state}{lacking}."
        case explain.Reserved():
            return f"Waits for node {reason.node}, which is reserved for it."
        case explain.Placeholder():
            return f"The ask waits for a placeholder of task group {reason.task_group}, of which {reason.live} live."
        case explain.Gang():
            return _of_gang(reason)
        case _:
            text = summary(reason)
            return f"{text[0].upper()}{text[1:]}."


def leading_sentence(reasons: Sequence[explain.Reason]) -> str:
    """Return the most important of all reasons of an ask as a sentence, and whether its amounts are those of a whole gang."""
    reason = most_important(reasons)
    of_gang = isinstance(reason, explain.QUOTAS) and any(isinstance(each, explain.Gang) for each in reasons)
    return sentence(reason) + (" The amounts are those of the whole gang." if of_gang else "")


def advised(refusal: str) -> str:
    """Return why something was refused, and what helps where YuniKorn's words do not say it."""
    if refusal.endswith("unsupported sort type"):
        return f"{refusal}; a gang with placeholders needs a queue with application.sort.policy fifo"
    return refusal


def summary(reason: explain.Reason) -> str:
    """Return what a reason has in common with those of other asks."""
    if reason.never:
        return _never_summary(reason)
    match reason:
        case explain.QueueQuota():
            return f"max of queue {reason.queue} reached ({', '.join(reason.missing)})"
        case explain.UserLimit():
            return f"limit of {reason.kind} {reason.name} at {reason.queue} reached ({', '.join(reason.missing)})"
        case explain.ClusterFull():
            return f"the cluster is full ({', '.join(reason.missing)})"
        case explain.Claimed():
            who = f"{reason.kind} {reason.name}"
            return f"what {who} may use is claimed by asks that have preempted ({', '.join(reason.missing)})"
        case explain.MaxApplications(kind="queue"):
            return f"queue {reason.queue} runs as many applications as it may"
        case explain.MaxApplications():
            return f"{reason.kind} {reason.name} runs as many applications at {reason.queue} as allowed"
        case explain.StateOrder():
            return f"another application of {reason.queue} starts first"
        case explain.Backoff():
            return "its application backs off after too many asks that fit no node"
        case explain.Nodes():
            return f"no node will do ({'; '.join(_short(reason.failed))})"
        case explain.RequiredNode():
            missing = f" ({', '.join(reason.missing)})" if reason.missing else ""
            return f"the node that it requires: {reason.state}{missing}"
        case explain.Reserved():
            return "waits for the node that is reserved for it"
        case explain.Preemption():
            state = _PREEMPTION.get(reason.state, reason.state)
            return f"preemption: {state}" + (f" ({reason.detail})" if reason.detail else "")
        case explain.Placeholder():
            return "waits for a placeholder of its task group"
        case explain.Gang(ready=False):
            return "its gang is not complete"
        case explain.Gang():
            return "its gang waits to start as a whole"
        case explain.NotTried():
            return "nothing is in its way, it has not had its turn"


def most_important(reasons: Iterable[explain.Reason]) -> explain.Reason:
    """Return the reason to tell where there is room for one: the first that nothing but a change can remove, else the first.

    Which comes first is said by `explain.reasons`.
    """
    found = list(reasons)
    return next((reason for reason in found if reason.never), found[0])


def _never(reason: explain.Reason) -> str:
    match reason:
        case explain.Nodes() if not reason.failed:
            return f"There is no node, so {NEVER}."
        case explain.Nodes():
            counts = "; ".join(f"{why} ({_nodes(number)})" for why, number in reason.failed.items())
            if reason.absent:
                return f"No node has {' or '.join(reason.absent)}, so {NEVER}: {counts}."
            return f"No node can take the ask, even an empty one, so {NEVER}: {counts}."
        case explain.RequiredNode():
            lacking = f", {_missing(reason.missing)}" if reason.missing else ""
            return f"Node {reason.node}, which the ask requires, cannot take it ({reason.state}{lacking}), so {NEVER}."
        case _:
            text = _never_summary(reason, _missing)
            return f"{text[0].upper()}{text[1:]}."


def _never_summary(reason: explain.Reason, told: Callable[[Mapping[str, int]], str] = ", ".join) -> str:
    match reason:
        case explain.QueueQuota():
            return f"larger than the max of queue {reason.queue} ({told(reason.missing)}): {NEVER}"
        case explain.UserLimit():
            who = f"{reason.kind} {reason.name} at {reason.queue}"
            return f"larger than the limit of {who} ({told(reason.missing)}): {NEVER}"
        case explain.ClusterFull():
            return f"larger than the whole cluster ({told(reason.missing)}): {NEVER}"
        case explain.Nodes() if not reason.failed:
            return "there is no node"
        case explain.Nodes() if reason.absent:
            return f"no node will ever do (none has {' or '.join(reason.absent)})"
        case explain.Nodes():
            return f"no node will ever do ({'; '.join(_short(reason.failed))})"
        case explain.RequiredNode():
            return f"the node that it requires cannot take it: {reason.state}"
        case _:
            raise AssertionError(f"{reason}: only a change of other things helps here")


def _of_gang(reason: explain.Gang) -> str:
    if not reason.ready:
        counts = ", ".join(f"{name} {there} of {need}" for name, (there, need) in reason.groups.items() if there < need)
        return f"The gang is not complete: {counts}."
    if not reason.fits_quota:
        return "The gang does not fit the quotas as a whole."
    held = f"; it holds {', '.join(reason.held)}" if reason.held else ""
    return f"The gang fits the nodes not as a whole{held}."


def _missing(amounts: Mapping[str, int]) -> str:
    said = ", ".join(f"{spoken(name, amount)} {name}" for name, amount in amounts.items())
    return f"{said} missing"


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _short(failed: Iterable[str]) -> list[str]:
    """Summarise why nodes failed: first all missing resource types as one entry, then the other reasons."""
    types = {name for why in failed if why.startswith(LACK) for name in why.removeprefix(LACK).split(", ")}
    others = sorted(why for why in failed if not why.startswith(LACK))
    return [LACK + " or ".join(sorted(types)), *others] if types else others
