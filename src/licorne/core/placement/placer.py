"""The choice of an application's queue: rules are asked in their order, and answers checked with the queue tree.

The first rule whose queue takes the application wins. If a queue cannot take it (no access, not a leaf, draining), the
next rule is asked; an error in a rule ends the placement, because a name that is illegal for one rule
must not slip into another rule's queue. After the configured rules comes the recovery rule; if that gives no queue
either, `root.default` is tried, if it exists.

A queue that does not exist yet is created only after a rule's answer is accepted, and there an obstacle rejects the
application: no further rule is asked. `place` includes that check (`creation_fault`), so its answer is the whole
verdict: what it places can be created and used, with nothing left to go wrong.

Placement reads the tree through two small protocols and changes nothing. So the same code answers for a running
scheduler and for a configuration file alone (`licorne.core.placement.static_tree`).

Faults of the original that are corrected here: a path that is not below root is an error (the original crashes), and
only a forced application can come to the recovery queue (the original lets the first explicit request in).
Sources: *Scheduler Placement Rules*; docs/spec/placement.md, section 5; texts of rejections:
docs/spec/scheduler-interface.md, section 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from licorne.config.model import RuleConfig
from licorne.config.structure import ancestors
from licorne.core.base.rejections import naming
from licorne.core.base.setting_kinds import parse_flag

from .rules import (
    INVALID_QUEUE_NAME,
    RECOVERY_PATH,
    RECOVERY_QUEUE,
    RECOVERY_RULE,
    ROOT,
    PlacementConfigError,
    PlacementError,
    PlacementRequest,
    PlacementRule,
    QueueLike,
    QueueLookup,
    RecoveryRule,
    RuleAnswer,
    build_rule,
    legal_queue_name,
)

__all__ = [
    "DEFAULT_PATH",
    "RECOVERY_PATH",
    "Placement",
    "PlacementConfigError",
    "PlacementRequest",
    "Placer",
    "QueueLike",
    "QueueLookup",
    "RuleStep",
    "Verdict",
    "creation_fault",
    "is_forced",
]

DEFAULT_PATH: Final = f"{ROOT}.default"
"""The queue that is tried when no rule gives one."""
FORCE_TAG: Final = "application.create.force"
"""An application with this tag set to true must not be lost: the recovery queue takes it if no rule does."""
MAX_LEVELS: Final = 256
"""The most levels that the path of a queue may have, so that no request can make the tree arbitrarily deep."""

_NO_RULE_MATCHED = "application rejected: no placement rule matched"


class Verdict(StrEnum):
    """The outcome of asking one rule."""

    PLACED = "placed"
    NO_MATCH = "no match"  # the rule gave no queue
    PASSED_OVER = "passed over"  # it gave a queue that does not take the application
    ERROR = "error"  # the application is rejected


@dataclass(frozen=True, slots=True)
class RuleStep:
    """The outcome of one rule: its position in the list (from 1) and name, the path it gave (empty: none), and why."""

    index: int
    rule: str
    result: str
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        result = f" {self.result}" if self.result else ""
        return f"{self.index}. {self.rule}: {self.verdict}{result} ({self.why})"


@dataclass(frozen=True, slots=True)
class Placement:
    """The result of a placement: the queue that an application goes to, or why it is rejected.

    `queue` is the full path in lower case, None if the application is rejected; then `reason` is the text for the
    resource manager, and `template` the same without the application's name. `create`: the queue does not exist yet.
    `steps` are the outcomes of the rules that were asked.
    """

    queue: str | None
    create: bool
    reason: str
    steps: tuple[RuleStep, ...]
    template: str = field(default="", compare=False)  # follows from the other fields


class Placer:
    """The rules of one partition, ready to place applications.

    `fault` is empty, except in a placer made by `first` from an unusable list of rules: it rejects every application.
    """

    def __init__(self, rules: Sequence[RuleConfig]) -> None:
        """Build the rules; an empty list means a single `provided` rule without create.

        Raises:
            PlacementConfigError: the list cannot be used. On a reload, the old placer stays in force.
        """
        configured = rules or (RuleConfig(name="provided"),)
        built = [build_rule(rule, f"placementrules[{index}]") for index, rule in enumerate(configured)]
        self.rules: tuple[PlacementRule, ...] = (*built, RECOVERY_RULE)
        self.fault = ""

    @classmethod
    def first(cls, rules: Sequence[RuleConfig]) -> Placer:
        """Build the placer of a new partition; an unusable list leaves it without rules, and nothing is ever placed."""
        try:
            return cls(rules)
        except PlacementConfigError as error:
            placer = cls(())
            placer.rules = ()
            placer.fault = str(error)
            return placer

    def place(self, request: PlacementRequest, tree: QueueLookup) -> Placement:
        """Find the queue for an application; reads the tree, changes nothing."""
        steps: list[RuleStep] = []
        for index, rule in enumerate(self.rules, start=1):
            path = ""
            try:
                path, why = _with_default(rule, rule.answer(request, tree), tree)
                obstacle = _obstacle(path, request, tree) if path else why
            except PlacementError as error:
                steps.append(RuleStep(index, rule.name, path, Verdict.ERROR, str(error)))
                return _rejected(request, str(error), steps)
            if obstacle:
                verdict = Verdict.PASSED_OVER if path else Verdict.NO_MATCH
                steps.append(RuleStep(index, rule.name, path, verdict, obstacle))
                continue
            return _accepted(request, tree, path, RuleStep(index, rule.name, path, Verdict.PLACED, why), steps)
        return _rejected(request, _NO_RULE_MATCHED, steps)


def is_forced(tags: Mapping[str, str] | None) -> bool:
    """Return whether an application's tags say that it must not be lost; a text that is no truth value means no."""
    return parse_flag(PlacementRequest("", tags=tags).tag(FORCE_TAG)) is True


def creation_fault(path: str, tree: QueueLookup, user: str, groups: Sequence[str]) -> str | None:
    """Return why the missing levels of `path` cannot be created for this user, or None if they can.

    The text is the cause in a rejection (docs/spec/scheduler-interface.md, section 7.1). The recovery queue is never
    created this way.
    """
    if not _below_root(path):
        return f"creation of queue {path} failed, it is not below {ROOT}"
    if path.count(".") >= MAX_LEVELS:
        return f"creation of queue {path[:80]}… failed, it has more than {MAX_LEVELS} levels"
    existing, queue = _nearest(path, tree)
    if queue is None:
        return f"creation of queue {path} failed, there is no queue {ROOT}"
    if not queue.submit_allowed(user, groups):
        return f"submit access to queue {existing} denied for the creation of {path}"
    if queue.is_leaf:
        return f"creation of queue {path} failed parent is already a leaf: {existing}"
    if queue.draining:
        return f"creation of queue {path} failed, parent is draining: {existing}"
    for name in path[len(existing) + 1 :].split("."):
        if not legal_queue_name(name):
            return INVALID_QUEUE_NAME
        if name.lower() == RECOVERY_QUEUE:
            return f"creation of queue {path} failed, {RECOVERY_QUEUE} is reserved"
    return None


def _with_default(rule: PlacementRule, answer: RuleAnswer, tree: QueueLookup) -> RuleAnswer:
    """Replace an empty answer of the last rule by the default queue, if that exists."""
    if answer.path or not isinstance(rule, RecoveryRule) or tree.find(DEFAULT_PATH) is None:
        return answer
    return RuleAnswer(DEFAULT_PATH, f"{answer.why}, and no rule matched: {DEFAULT_PATH} is the last resort")


def _obstacle(path: str, request: PlacementRequest, tree: QueueLookup) -> str:
    """Return why this queue does not take the application, so that the next rule is asked; empty if it does.

    Raises:
        PlacementError: the path is not below root, or too deep.
    """
    if path.lower() == RECOVERY_PATH:
        return "" if request.forced else "the recovery queue takes forced applications only"
    if path.lower() != ROOT and not _below_root(path):
        raise PlacementError(f"queue {path} is not below {ROOT}")
    if path.count(".") >= MAX_LEVELS:
        raise PlacementError(f"queue path has more than {MAX_LEVELS} levels")
    queue = tree.find(path.lower())
    if queue is None:
        existing, queue = _nearest(path, tree)
        if queue is not None and queue.submit_allowed(request.user, request.groups):
            return ""
        return f"user '{request.user}' may not submit to {existing}, below which {path} would be created"
    if not queue.is_leaf:
        return f"queue {path} is not a leaf"
    if not queue.submit_allowed(request.user, request.groups):
        return f"user '{request.user}' may not submit to {path}"
    if queue.draining:
        return f"queue {path} is draining"
    return ""


def _below_root(path: str) -> bool:
    return path.lower().startswith(f"{ROOT}.")


def _nearest(path: str, tree: QueueLookup) -> tuple[str, QueueLike | None]:
    """Return the nearest existing queue above a missing one, with its path as it is spelled in `path`."""
    for above in ancestors(path):
        queue = tree.find(above.lower())
        if queue is not None:
            return above, queue
    return ROOT, None


def _accepted(
    request: PlacementRequest, tree: QueueLookup, path: str, step: RuleStep, steps: list[RuleStep]
) -> Placement:
    """Build the verdict on the queue of the rule that won: it must still be a leaf, or possible to create."""
    queue = path.lower()
    existing = tree.find(queue)
    fault = None
    app_id = request.application_id
    words = f"failed to create rule based queue {path} for application "
    if existing is None and queue != RECOVERY_PATH:
        fault = creation_fault(path, tree, request.user, request.groups)
    elif existing is not None and not existing.is_leaf:  # only the recovery queue comes here unchecked
        words = f"failed to find queue {path} for application "
        fault = f"{words}{app_id}"
    if fault is None:
        return Placement(queue, existing is None, "", (*steps, step))
    failed = RuleStep(step.index, step.rule, path, Verdict.ERROR, fault)
    reason = naming(words, app_id) if existing is not None else naming(words, app_id, f"\n{fault}")
    return Placement(None, False, reason.text, (*steps, failed), reason.template)


def _rejected(request: PlacementRequest, cause: str, steps: list[RuleStep]) -> Placement:
    reason = naming("failed to place application ", request.application_id, f": {cause}")
    return Placement(None, False, reason.text, tuple(steps), reason.template)
