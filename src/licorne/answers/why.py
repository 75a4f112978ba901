"""Answers to "why does it wait": of an ask, of an application, and of everything that waits.

The answer to an ask names the one reason that matters most in a sentence, has all of them beside it with the way from
root to node, and the smallest changes with which it would run, each proved by a trial.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from licorne.answers.above_max import above_max
from licorne.answers.asks import Wanted
from licorne.answers.chain import Chain, chain
from licorne.answers.pods import POD_NAMESPACE, pod_name, pod_names
from licorne.answers.proposals import Proposals, propose
from licorne.answers.trials import Home
from licorne.answers.weighed import Weighed, weighed
from licorne.core.base.states import SECOND_NS
from licorne.core.inspection import explain
from licorne.core.inspection.sentences import advised, leading_sentence, most_important, summary
from licorne.core.partition import Partition
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.si.rest_objects import LogEntry
from licorne.state.restored import Note, UnknownNameError


class Group(msgspec.Struct, frozen=True):
    """Asks that wait for the same reason: `summary` tells it, `never` whether it can pass without any change.

    `oldest` is the key of the ask that waits longest, since `since_s` (Unix time), in `application` and `queue`; `pod` is its
    pod as NAMESPACE/NAME, "" if the resource manager does not say it.
    """

    summary: str
    never: bool
    asks: int
    applications: int
    oldest: str
    application: str
    queue: str
    since_s: float
    pod: str = ""


class AskAnswer(msgspec.Struct, frozen=True, tag="ask"):
    """Why an ask waits, or where it runs. Times are Unix times in seconds.

    `state`: `waits`, `runs`, or, where the answer is about the time after the next decisions (under another configuration),
    `placed next`: by these. `node`: where it runs.
    `sentence`: the answer in one sentence. `chain` and `proposals` are None for an ask that does not wait; `proposals`
    also if none were wanted. `pod`: namespace and name, if the resource manager says them. `at_s`: the time that the answer
    is about; `age_s`: how many seconds before the answer that was, where a process that follows the scheduler has answered.
    `has_constraints`: False if nothing is known of the nodes on which it may run, as from YuniKorn's state; then `log` is what
    the scheduler itself has noted of the ask, the newest first. `weighed`: what preferences weigh for an ask that runs; None if
    it has none.
    """

    key: str
    pod: str
    application: str
    queue: str
    partition: str
    user: str
    resource: dict[str, int]
    priority: int
    state: str
    node: str
    since_s: float
    sentence: str
    chain: Chain | None
    proposals: Proposals | None
    at_s: float
    notes: tuple[Note, ...]
    age_s: float | None = None
    has_constraints: bool = True
    log: tuple[LogEntry, ...] = ()
    weighed: Weighed | None = None


class ApplicationAnswer(msgspec.Struct, frozen=True, tag="application"):
    """Why an application waits: its asks by reason, and the answer for the one that is tried first.

    `state` is the state of the application, `running` and `waiting` count its allocations and asks. `first` is None if
    nothing waits. `unexplained`: how many asks are in none of the groups, because the time was over before they were
    looked at; only asks that are like no other take that long.
    """

    application: str
    queue: str
    partition: str
    user: str
    state: str
    since_s: float
    running: int
    waiting: int
    sentence: str
    groups: tuple[Group, ...]
    first: AskAnswer | None
    at_s: float
    notes: tuple[Note, ...]
    age_s: float | None = None
    unexplained: int = 0


class Overview(msgspec.Struct, frozen=True, tag="overview"):
    """All asks that wait, grouped by reason, the largest group first; `running` and `waiting` count allocations and asks.

    `held`: by reason, the pods (NAMESPACE/NAME) that licorne kube does not ask the scheduler for; they are no asks.
    `unexplained`: how many asks are in none of the groups, because the time was over before they were looked at; only
    asks that are like no other take that long. `has_constraints`: as in `AskAnswer`.
    """

    running: int
    waiting: int
    groups: tuple[Group, ...]
    at_s: float
    notes: tuple[Note, ...]
    age_s: float | None = None
    unexplained: int = 0
    has_constraints: bool = True
    held: dict[str, list[str]] = {}


Answer = AskAnswer | ApplicationAnswer | Overview


def why(
    home: Home,
    name: str = "",
    *,
    partition: str = "",
    prove: bool = True,
    more: Callable[[], bool] = lambda: True,
    effort: float = 1.0,
) -> Answer:
    """Return why something waits.

    Args:
        home: the scheduler that is asked; it stays as it is, and counts and reasons are those of its time.
        name: the key of an ask or allocation, the id of an application, or a pod's name, also as `namespace/name`;
            empty for all that waits.
        partition: only this partition is looked at; empty for all.
        prove: whether the smallest changes are looked for that would let an ask run.
        more: asked before each trial, and before the nodes are looked at for asks of one kind, whether to go on.
        effort: how much the trials may cost, as a multiple of `licorne.answers.budget.WORK_MAX`.

    Raises:
        UnknownNameError: nothing, or more than one thing, has this name, or a pod that the scheduler is not asked for, or
            an application that was rejected, which the text says with the reason.
        CopyError: a trial could not be made.
    """
    partitions = home.restored.chosen(partition)
    if not name:
        return _overview(home, partitions, more)
    found = _find(partitions, name, home.restored.held)
    search = partial(propose, more=more, effort=effort) if prove else None
    if found.key:
        return _of_ask(home, found.partition, found.app, found.key, search)
    return _of_application(home, found.partition, found.app, search, more)


class _Found(NamedTuple):
    partition: Partition
    app: Application
    key: str


# -- what a name means -------------------------------------------------------------------------------------------


def _find(partitions: list[Partition], name: str, held: Mapping[str, str]) -> _Found:
    """Return what has this name: an application before an ask or allocation, and both before a pod."""
    applications = [_Found(each, each.applications[name], "") for each in partitions if name in each.applications]
    if applications:
        return _only(applications, name)
    by_key = [
        _Found(part, app, name)
        for part in partitions
        for app in part.applications.values()
        for items in (app.asks, app.allocations)
        if name in items
    ]
    if by_key:
        return _only(by_key, name)
    pods = [_Found(part, app, key) for part, app, key, item in _items(partitions) if name in pod_names(item)]
    if pods:
        return _only(pods, name)
    unasked = [
        f"the scheduler is not asked for pod {pod} now" + (f": {why}" if why else "")
        for pod, why in held.items()
        if name in (pod, pod.partition("/")[2])
    ]
    told = "; ".join(unasked[:NAMED]) or _rejected(partitions, name) or _queue(partitions, name)
    raise UnknownNameError(told or _unknown(partitions, name))


def _items(partitions: list[Partition]) -> Iterator[tuple[Partition, Application, str, Ask]]:
    for part in partitions:
        for app in part.applications.values():
            for items in (app.asks, app.allocations):
                for key, item in items.items():
                    yield part, app, key, item


def _only(found: list[_Found], name: str) -> _Found:
    if len(found) == 1:
        return found[0]
    where = ", ".join(sorted({_described(each) for each in found})[:NAMED])
    remedy = "name the partition" if not found[0].key else "say it as NAMESPACE/NAME, or give its key"
    raise UnknownNameError(f"{name!r} means {len(found)} things ({where}); {remedy}")


NAMED: Final = 5
"""How many things of one name an error tells."""
NEAR_MAX: Final = 10_000
"""Most asks and allocations whose names are searched for one that is similar to a name that is not there."""
NEAR: Final = 3
"""Most names that are suggested because they begin with the name that is not there."""


def _described(found: _Found) -> str:
    tags = {} if not found.key else (found.app.asks.get(found.key) or found.app.allocations[found.key]).tags or {}
    namespace = tags.get(POD_NAMESPACE)
    where = f"partition {found.partition.name}" if not found.key else f"key {found.key} of application {found.app.id}"
    return f"{where}, namespace {namespace}" if namespace else where


def _rejected(partitions: list[Partition], name: str) -> str:
    reasons = [advised(each.reason) for part in partitions for each in part.rejected if each.application_id == name]
    # A name may have a line end, and begins no line of the answer.
    return f"application {name} was rejected: {reasons[-1]}".replace("\n", " ") if reasons else ""


def _queue(partitions: list[Partition], name: str) -> str:
    if any(part.tree.find(name) is not None for part in partitions):
        return f"{name} is a queue: `licorne shares` tells of queues, and what waits is told without a name"
    return ""


def _unknown(partitions: list[Partition], name: str) -> str:
    known = [app for part in partitions for app in part.applications]
    known += [each.application_id for part in partitions for each in part.rejected]
    items = [each for _, _, key, item in islice(_items(partitions), NEAR_MAX) for each in (key, *pod_names(item))]
    names = [*known, *items]
    begin = sorted(
        {each for each in names if each.lower().startswith(name.lower())}, key=lambda each: (len(each), each)
    )
    near = begin[:NEAR] or difflib.get_close_matches(name, names, 1)
    hint = (
        f"; did you mean {' or '.join(map(repr, near))}?" if near else "; without a name, everything that waits is told"
    )
    return f"no application, ask, allocation or pod is named {name!r}{hint}"


# -- answers -----------------------------------------------------------------------------------------------------


UNSEEN: Final = "node selectors, affinity, taints and volumes"
"""What may keep a pod off a node, and is not in the state of YuniKorn."""
NOTHING_SHOWN: Final = "nothing that the scheduler's state shows is in its way"
"""What is said in place of the reason `not-tried` where the state may not show all."""
Propose = Callable[[Home, Wanted], Proposals]
"""Looks for the smallest changes with which an ask would run."""


def _of_ask(home: Home, partition: Partition, app: Application, key: str, search: Propose | None) -> AskAnswer:
    alloc = app.allocations.get(key)
    ask = alloc or app.asks[key]
    node = "" if alloc is None or alloc.node is None else alloc.node.id
    links, proposals, since = None, None, ask.created
    if alloc is None:
        links, reasons = chain(partition, app, ask)
        reason = most_important(reasons)
        state, said = "waits", leading_sentence(reasons)
        if _hidden(home, reason):
            said = f"{NOTHING_SHOWN[0].upper()}{NOTHING_SHOWN[1:]}; {UNSEEN} are not in it."
            told = (msgspec.structs.replace(links.reasons[0], text=said), *links.reasons[1:])
            links = msgspec.structs.replace(links, reasons=told)
        if search is not None:
            proposals = search(home, Wanted(partition.name, app.id, key))
    elif (app.id, key) in home.placed:
        state, said = "placed next", f"The scheduler places it with its next decisions, on node {node}."
    else:
        state, said, since = "runs", f"It runs on node {node}.", alloc.bound_ns
    return AskAnswer(
        key=key,
        pod=pod_name(ask),
        application=app.id,
        queue=app.queue.path,
        partition=partition.name,
        user=app.user,
        resource=dict(sorted(ask.shape.resource.items())),
        priority=ask.priority,
        state=state,
        node=node,
        since_s=since / SECOND_NS,
        sentence=said,
        chain=links,
        proposals=proposals,
        at_s=home.now_ns / SECOND_NS,
        notes=_notes(home),
        has_constraints=home.restored.has_constraints,
        log=home.restored.logs.get((app.id, key), ()) if state == "waits" else (),
        weighed=None if alloc is None else weighed(partition, alloc),
    )


def _notes(home: Home) -> tuple[Note, ...]:
    told = (f"{path} {text}" for each in home.restored.partitions for path, text in above_max(each).items())
    return (*home.restored.notes, *(Note("above max", text) for text in told))


def _of_application(
    home: Home, partition: Partition, app: Application, search: Propose | None, more: Callable[[], bool]
) -> ApplicationAnswer:
    first = next((_of_ask(home, partition, app, ask.key, search) for ask in app.requests.in_order()), None)
    asks = _Explained(partition, more)
    asks.add(app)
    nothing = f"Nothing of it waits; {len(app.allocations)} of its allocations run."
    return ApplicationAnswer(
        application=app.id,
        queue=app.queue.path,
        partition=partition.name,
        user=app.user,
        state=str(app.state.value),
        since_s=app.submitted / SECOND_NS,
        running=len(app.allocations),
        waiting=len(asks.found) + asks.left_out,
        sentence=nothing if first is None else first.sentence,
        groups=_groups(asks.found, home),
        first=first,
        at_s=home.now_ns / SECOND_NS,
        notes=_notes(home),
        unexplained=asks.left_out,
    )


def _overview(home: Home, partitions: list[Partition], more: Callable[[], bool]) -> Overview:
    found: list[_Member] = []
    running = left_out = 0
    for partition in partitions:
        asks = _Explained(partition, more)
        for app in sorted(partition.applications.values(), key=attrgetter("seq")):
            running += len(app.allocations)
            asks.add(app)
        found += asks.found
        left_out += asks.left_out
    return Overview(
        running=running,
        waiting=len(found) + left_out,
        groups=_groups(found, home),
        at_s=home.now_ns / SECOND_NS,
        notes=_notes(home),
        unexplained=left_out,
        has_constraints=home.restored.has_constraints,
        held=_held(home.restored.held),
    )


def _held(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pod, reason in sorted(reasons.items()):
        found.setdefault(reason or "They are about to be asked for.", []).append(pod)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def _hidden(home: Home, reason: explain.Reason) -> bool:
    """Whether an ask may be waiting for what the state does not show."""
    return isinstance(reason, explain.NotTried) and not home.restored.has_constraints


class _Member(NamedTuple):
    app: Application
    ask: Ask
    reason: explain.Reason


class _Explained:
    """Pending asks of a partition, each with the one reason for waiting that matters most.

    `more` is asked whether there is time to look at the nodes; `left_out` counts the asks for which there was none. The nodes
    are looked at once for asks that are alike, which takes milliseconds where there are thousands of them.
    """

    def __init__(self, partition: Partition, more: Callable[[], bool]) -> None:
        self._partition = partition
        self._more = more
        self._counted: explain.Counted = {}
        self.found: list[_Member] = []
        self.left_out = 0

    def add(self, app: Application) -> None:
        """Find out why the pending asks of an application wait, and add them."""
        for ask in app.requests.in_order():
            if explain.alike(ask) in self._counted or self._more():
                reasons = explain.reasons(self._partition, app, ask, self._counted)
                self.found.append(_Member(app, ask, most_important(reasons)))
            else:
                self.left_out += 1


def _groups(found: list[_Member], home: Home) -> tuple[Group, ...]:
    by_text: dict[str, list[_Member]] = {}
    for member in found:
        text = NOTHING_SHOWN if _hidden(home, member.reason) else summary(member.reason)
        by_text.setdefault(text, []).append(member)
    groups = []
    for text, members in by_text.items():
        app, ask, reason = min(members, key=lambda member: (member.ask.created, member.ask.seq))
        groups.append(
            Group(
                summary=text,
                never=reason.never,
                asks=len(members),
                applications=len({id(member.app) for member in members}),
                oldest=ask.key,
                application=app.id,
                queue=app.queue.path,
                since_s=ask.created / SECOND_NS,
                pod=pod_name(ask),
            )
        )
    return tuple(sorted(groups, key=lambda group: (-group.asks, group.summary)))
