"""Warnings about placement rules and their filters.

They cover the most harmful configuration of all: a rule list that loads and then rejects every application, because
the placement manager cannot be built from it (docs/spec/config.md, section 5.11; docs/spec/placement.md, section 2).
"""

from __future__ import annotations

import re
from typing import Final

from licorne.config.limits import GROUP_NAME, USER_NAME
from licorne.config.placement import FIXED, compiles, is_regexp
from licorne.config.problems import Notes
from licorne.config.raw import RawFilter, RawPartition, RawRule, Value
from licorne.config.structure import QUEUE_NAME

_RULES: Final = ("provided", "user", FIXED, "tag", "test")
"""The names of `licorne.core.placement.rules`; the last one is for tests."""
_NEED_VALUE: Final = (FIXED, "tag")
_REJECTED: Final = "with it no rule of the partition is usable, and every application is rejected"
# An expression that begins or ends so does not match in the middle of a name unnoticed.
_ANCHORED: Final = re.compile(r"(?s)(?:\(\?[a-zA-Z]+\))?(?:\^|\\A|\.\*).*|.*(?:\$|\\z)")


def lint_rules(partition: RawPartition, notes: Notes) -> None:
    """Note the warnings for a partition's rules and their parent rules."""
    for rule in partition.placementrules or ():
        link: RawRule | None = rule
        while link is not None:
            _lint_rule(link, notes)
            if link.filter is not None:
                _lint_filter(link.filter, notes)
            link = link.parent


def _lint_rule(rule: RawRule, notes: Notes) -> None:
    name = rule.name.lower()
    if name == "recovery":
        message = f"the rule 'recovery' is added by the scheduler itself; {_REJECTED}"
        notes.warn("rule-recovery", rule.spot("name"), message)
    elif name not in _RULES:
        message = f"there is no rule '{rule.name}' ({', '.join(_RULES[:-1])}); {_REJECTED}"
        notes.warn("rule-unknown", rule.spot("name"), message)
    if name in _NEED_VALUE and rule.value == "" and "value" not in rule.broken:
        notes.warn("rule-value-missing", rule.spot(), f"a {name} rule needs a value; {_REJECTED}")
    elif name == FIXED:
        _lint_fixed(rule, notes)


def _lint_fixed(rule: RawRule, notes: Notes) -> None:
    value = rule.value.lower()
    bad = [part for part in value.split(".") if not QUEUE_NAME.fullmatch(part)]
    if bad:
        message = f"'{bad[0]}' in '{rule.value}' is no queue name; {_REJECTED}"
        notes.warn("rule-value-name", rule.spot("value"), message)
    if value.startswith("root") and rule.parent is not None:
        message = f"'{rule.value}' starts with 'root' and is a full path, which takes no parent rule; {_REJECTED}"
        notes.warn("rule-full-path-parent", rule.spot("value"), message)
    elif value.startswith("root") and value.split(".")[0] != "root":
        message = f"'{rule.value}' starts with 'root', so it is a full path, but there is nothing above root"
        notes.warn("rule-value-outside-root", rule.spot("value"), message)


def _lint_filter(rule_filter: RawFilter, notes: Notes) -> None:
    kind = rule_filter.type.lower()
    if rule_filter.type != kind and kind in ("allow", "deny"):
        message = f"'{rule_filter.type}' is {kind}; the original takes every spelling but 'deny' for allow"
        notes.warn("filter-type-case", rule_filter.spot("type"), message)
    users, groups = rule_filter.users or [], rule_filter.groups or []
    # Both lists must be checked, so `any` gets a list that is complete, not a generator that stops early.
    used = [_lint_entries(users, USER_NAME, notes), _lint_entries(groups, GROUP_NAME, notes)]
    if any(used) or rule_filter.broken:
        return
    if users or groups:
        result = "lets everybody pass" if kind == "deny" else "blocks everybody"
        message = f"no entry of the filter is legal, so it finds nobody and {result}"
        notes.warn("filter-nothing-legal", rule_filter.spot(), message)
    elif kind == "deny":
        message = "the filter denies and has no lists: it blocks everybody"
        notes.warn("filter-deny-everybody", rule_filter.spot(), message)


def _lint_entries(entries: list[Value], pattern: re.Pattern[str], notes: Notes) -> bool:
    """Note the warnings for a list of users or groups; return whether any entry takes effect."""
    if len(entries) == 1:
        entry = entries[0]
        if not is_regexp(entry.text):
            return pattern.fullmatch(entry.text) is not None
        if compiles(entry.text) and not _ANCHORED.fullmatch(entry.text):
            message = f"the expression '{entry.text}' matches anywhere in a name; write ^ or $ to bind it to an end"
            notes.warn("filter-unanchored", entry.spot, message)
        return compiles(entry.text)
    for entry in entries:
        if not pattern.fullmatch(entry.text):
            what = "a regular expression works only as the single entry" if is_regexp(entry.text) else "no legal name"
            notes.warn("filter-entry-dropped", entry.spot, f"'{entry.text}' is left out of the list: {what}")
    return any(pattern.fullmatch(entry.text) for entry in entries)
