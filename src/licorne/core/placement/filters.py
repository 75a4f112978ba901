"""The filter of a placement rule: which users the rule applies to.

A filter names users and groups, each as a list or as one regular expression, and says whether they are allowed or
denied; everybody else gets the opposite. Without any names it gives everybody the same answer: allow (the default, no
filter) or deny, which switches the rule off.

Expressions are RE2's, because the original's are, and because RE2 matches in time linear in the text: a user who
submits an application must not be able to stop the scheduler with a clever name. They are searched, not anchored:
`dev*` means "contains `de`" (*Scheduler Placement Rules* has it in an example, where it looks like a wildcard).

The original takes a type in capitals for allow; here the configuration has been lower-cased before.
Source: docs/spec/placement.md, section 3; names: docs/spec/config.md, section 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import re2

from licorne.config.limits import GROUP_NAME, USER_NAME
from licorne.config.model import FilterConfig
from licorne.config.placement import is_regexp


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a rule. `users` and `groups` are None where the configuration lists nobody."""

    allow: bool
    users: _Names | None
    groups: _Names | None

    @classmethod
    def build(cls, config: FilterConfig) -> Filter:
        """Build the filter that a configuration means. Entries that are no legal names are dropped, as documented."""
        return cls(
            allow=config.type != "deny",
            users=_Names.build(config.users, USER_NAME) if config.users else None,
            groups=_Names.build(config.groups, GROUP_NAME) if config.groups else None,
        )

    def allows(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether the rule applies to this user."""
        if self.users is None and self.groups is None:
            return self.allow
        named = self.users is not None and user in self.users
        named = named or (self.groups is not None and any(group in self.groups for group in groups))
        return named == self.allow


@dataclass(frozen=True, slots=True)
class _Names:
    """A set of names: those of a list, or those in which an expression is found."""

    listed: frozenset[str]
    expression: str | None

    @classmethod
    def build(cls, entries: Sequence[str], legal: re.Pattern[str]) -> _Names:
        if len(entries) == 1 and is_regexp(entries[0]):
            return cls(frozenset(), entries[0] if _compiled(entries[0]) else None)
        return cls(frozenset(entry for entry in entries if legal.fullmatch(entry)), None)

    def __contains__(self, name: str) -> bool:
        if self.expression is None:
            return name in self.listed
        compiled = _compiled(self.expression)
        try:
            return compiled is not None and compiled.search(name) is not None
        except UnicodeEncodeError:  # half of a surrogate pair; a name from the wire holds none
            return False


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> re2._Regexp | None:
    """Return the compiled expression, None if it does not compile.

    It is cached here, not in the filter, so that filters remain plain values that are easily copied.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except (re2.error, UnicodeEncodeError):
        return None
