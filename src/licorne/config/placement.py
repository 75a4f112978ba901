"""Checks placement rules, as far as that is possible without an application (docs/spec/placement.md, section 7).

A rule list may be accepted here and still be unusable: unknown rule names and missing values are found only by
the placement manager, which then rejects every application (docs/spec/config.md, section 5.11).
`licorne.config.lint_rules` warns of those. This module refuses what the original's validator refuses: names, filters,
and paths of `fixed` rules that do not lead to a leaf of the configured tree.
"""

from __future__ import annotations

import re
from typing import Final

import re2

from licorne.config.limits import GROUP_NAME, USER_NAME
from licorne.config.problems import Notes
from licorne.config.raw import RawFilter, RawPartition, RawQueue, RawRule, Value

RULE_NAME: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")
REGEXP_CHARACTERS: Final = frozenset("^$*+?()[{}|")
FIXED: Final = "fixed"
_ROOT: Final = "root"


def is_regexp(text: str) -> bool:
    """Return whether a filter's single entry counts as a regular expression rather than as a name."""
    return not REGEXP_CHARACTERS.isdisjoint(text)


def compiles(text: str) -> bool:
    """Return whether RE2 accepts the expression.

    RE2 is used because the original uses its syntax, and because it bounds the time of a match for any expression.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except (re2.error, ValueError):
        return False
    return True


def fixed_path(rule: RawRule) -> str:
    """Return the path of a queue, in lower case, to which a `fixed` rule leads whose parent rules are fixed too."""
    value = rule.value.lower()
    if rule.parent is not None:
        return f"{fixed_path(rule.parent)}.{value}"
    return value if value.split(".")[0] == _ROOT else f"{_ROOT}.{value}"


def check_rules(partition: RawPartition, root: RawQueue, notes: Notes) -> None:
    """Check all rules of a partition: each by itself, then the queue to which the static part of its path leads."""
    rules = partition.placementrules or []
    for rule in rules:
        _check_rule(rule, notes)
    walkable = []
    for number, rule in enumerate(rules):
        path = _static_path(rule, notes)
        if path is not None:
            walkable.append((number, rule, path))
    for number, rule, (static, has_dynamic_rest) in walkable:
        fault = _walk(static.lower().split("."), root, rule.create, has_dynamic_rest)
        if fault is not None:
            identifier, message = fault
            notes.fault(identifier, rule.spot("value"), f"rule {number} leads to '{static}': {message}")


def _check_rule(rule: RawRule, notes: Notes) -> None:
    if not RULE_NAME.fullmatch(rule.name) and "name" not in rule.broken:
        notes.fault("rule-name", rule.spot("name"), f"'{rule.name}' is no rule name: letters, digits and _ only")
    if rule.parent is not None:
        _check_rule(rule.parent, notes)
    if rule.filter is not None:
        _check_filter(rule.filter, notes)


def _check_filter(rule_filter: RawFilter, notes: Notes) -> None:
    if rule_filter.type.lower() not in ("", "allow", "deny"):
        message = f"'{rule_filter.type}' is no filter type: allow or deny"
        notes.fault("filter-type", rule_filter.spot("type"), message)
    for names, pattern, what in ((rule_filter.users, USER_NAME, "user"), (rule_filter.groups, GROUP_NAME, "group")):
        # In a longer list illegal names are ignored; only a single entry can be at fault.
        if names is not None and len(names) == 1 and not _is_fit(names[0], pattern):
            message = f"'{names[0].text}' is neither a {what} name nor a regular expression that compiles"
            notes.fault("filter-entry", names[0].spot, message)


def _is_fit(entry: Value, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.fullmatch(entry.text)) or (is_regexp(entry.text) and compiles(entry.text))


def _static_path(rule: RawRule, notes: Notes) -> tuple[str, bool] | None:
    """Return the path of the leading `fixed` rules of a chain, outermost parent first.

    The flag says whether other rules come after them. None if the chain starts with another rule, or has a fault.
    """
    chain = [rule]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    path = ""
    for link in reversed(chain):
        if link.name != FIXED:
            return (path, True) if path else None
        if "value" in link.broken or "name" in link.broken:
            return None
        if not link.value.startswith(_ROOT):
            path = f"{path or _ROOT}.{link.value}"
        elif path:
            message = f"a fixed rule with the full path '{link.value}' takes no parent rule"
            notes.fault("rule-fixed-parent", link.spot("value"), message)
            return None
        else:
            path = link.value
    return path, False


def _walk(parts: list[str], root: RawQueue, create: bool, has_dynamic_rest: bool) -> tuple[str, str] | None:
    """Follow a path down the configured queues; return the rule that it breaks and a message, or None.

    Names are compared as they are configured, so a queue with capitals is not found, as in the original.
    """
    queue: RawQueue | None = None
    children = [root]
    for part in parts:
        if queue is not None and not children and not queue.parent:
            return "rule-path-below-leaf", f"queue '{queue.name}' is a leaf and can have no queues below it"
        found = next((child for child in children if child.name == part), None)
        if found is None:
            return None if create else ("rule-path-missing", f"there is no '{part}', and create is not set")
        queue, children = found, found.queues or []
    assert queue is not None
    if has_dynamic_rest and not queue.parent:
        return "rule-path-leaf", f"queue '{queue.name}' needs 'parent: true' for the rules below it"
    if not has_dynamic_rest and queue.parent:
        return "rule-path-not-leaf", f"queue '{queue.name}' is a parent, not a leaf"
    return None
