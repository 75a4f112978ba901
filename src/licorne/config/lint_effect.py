"""Warnings about what another part of the same configuration leaves without any effect.

Each claim is exact: it holds for every cluster and every application. So a placement rule counts as taking all only where
nothing can keep an application off its queue, and a priority offset as hidden only where no other queue is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from licorne.config.acl import lets_everybody_in
from licorne.config.placement import FIXED, fixed_path
from licorne.config.problems import Notes
from licorne.config.properties import PRIORITY_OFFSET, PRIORITY_POLICY, PROPERTIES
from licorne.config.raw import RawPartition, RawQueue, RawRule
from licorne.config.structure import QUEUE_NAME, ROOT, is_parent


def lint_effect(partition: RawPartition, root: RawQueue, notes: Notes) -> None:
    """Note the warnings for the rules and the queues of a partition."""
    rules = partition.placementrules or []
    _lint_later_rules(rules, root, notes)
    if not any(_creates(rule) for rule in rules):
        for top in root.queues or ():
            _lint_offsets(top, f"{ROOT}.{top.name.lower()}", "", notes)


# -- rules -------------------------------------------------------------------------------------------------------


def _lint_later_rules(rules: list[RawRule], root: RawQueue, notes: Notes) -> None:
    """Warn of the first rule behind one that takes every application; those after it are in the same position."""
    if not all(map(_is_usable, rules)):
        return  # then no rule places anything
    open_leaves = set(_open_leaves(root, ROOT, False))
    for number, rule in enumerate(rules[:-1]):
        if _is_without_condition(rule) and (path := fixed_path(rule)) in open_leaves:
            message = (
                f"rule {number + 1} places every application that comes to it in {path}, to which everybody may "
                "submit, so none comes to this rule or a later one; move it up, give the other a filter, or leave it out"
            )
            notes.warn("rule-unreached", rules[number + 1].spot("name"), message)
            return


def _is_usable(rule: RawRule) -> bool:
    """Return whether rules with this one and its parents can surely be used; if not, `licorne.config.lint_rules` says why."""
    name, parts = rule.name.lower(), rule.value.split(".")
    if name == FIXED and (
        not all(map(QUEUE_NAME.fullmatch, parts)) or (rule.parent and rule.value.lower().startswith(ROOT))
    ):
        return False
    if name not in ("provided", "user", FIXED, "tag") or (name == "tag" and not rule.value):
        return False
    return rule.parent is None or _is_usable(rule.parent)


def _is_without_condition(rule: RawRule) -> bool:
    return rule.name.lower() == FIXED and rule.parent is None and rule.filter is None


def _open_leaves(queue: RawQueue, path: str, above: bool) -> Iterator[str]:
    """Yield the leaves to which everybody may submit, by an access control list of the queue or of one above it."""
    is_open = above or lets_everybody_in(queue.submitacl) or lets_everybody_in(queue.adminacl)
    if is_open and not is_parent(queue):
        yield path
    for child in queue.queues or ():
        yield from _open_leaves(child, f"{path}.{child.name.lower()}", is_open)


# -- priority offsets --------------------------------------------------------------------------------------------


def _lint_offsets(queue: RawQueue, path: str, fence: str, notes: Notes) -> None:
    """Warn of offsets that nothing is compared with.

    `fence`: the priority fence above this queue, if from there down to it no queue has a sibling. No queue is made by a rule.
    """
    if fence and _property(queue, PRIORITY_OFFSET):
        assert queue.properties is not None
        message = (
            f"{fence} is a priority fence, so outside it this offset does not count, and within it no other queue is beside "
            f"this one, so it has no effect; set it at {fence}"
        )
        notes.warn("offset-fenced", queue.properties[PRIORITY_OFFSET].spot, message)
    children = queue.queues or []
    inner = path if _property(queue, PRIORITY_POLICY) else fence
    for child in children:
        _lint_offsets(child, f"{path}.{child.name.lower()}", inner if len(children) == 1 else "", notes)


def _property(queue: RawQueue, key: str) -> bool:
    """Return whether a priority offset is other than 0, or a priority policy is `fence`; these are not inherited."""
    value = (queue.properties or {}).get(key)
    return value is not None and bool(PROPERTIES[key].read(value.text))


def _creates(rule: RawRule) -> bool:
    return bool(rule.create) or (rule.parent is not None and _creates(rule.parent))
