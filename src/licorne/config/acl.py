"""Access control lists: who may submit to a queue, and who may administer it.

Source: *Scheduler Placement Rules*; docs/spec/config.md, section 8.

The text is `*`, or `users groups`: two comma-separated lists with one blank between them. The blank carries
meaning, so `" dev"` allows a group and no user. Names that no user or group can have are dropped silently, as in
the original; `config check` warns of them (`acl-name-dropped`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from licorne.config.quantity import BLANKS

_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*[$]?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")


class ACLError(ValueError):
    """The error for a text that has more parts than users and groups."""


class ACL(msgspec.Struct, frozen=True):
    """A parsed list. `dropped` holds the entries that are not legal names, in the order of the text."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> ACL:
        """Parse a list.

        >>> ACL.parse("alice,bob dev").allows("carol", ["dev"])
        True

        Raises:
            ACLError: the text splits into more than two parts at single blanks.
        """
        if text == "":
            return ACL()
        parts = text.split(" ")
        if len(parts) > 2:
            raise ACLError("more than two parts: users and groups are lists with commas, divided by one blank")
        if text.strip(BLANKS) == "*" or parts[0] == "*":
            return ACL(everybody=True)
        users, bad_users = _names(parts[0], _USER)
        if len(parts) == 1:
            return ACL(users=users, dropped=bad_users)
        if parts[1] == "*":
            return ACL(everybody=True)
        groups, bad_groups = _names(parts[1], _GROUP)
        return ACL(users=users, groups=groups, dropped=bad_users + bad_groups)

    def allows(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether this list names the user or one of the groups; lists of parent queues are not consulted."""
        return self.everybody or user in self.users or any(group in self.groups for group in groups)


def lets_everybody_in(text: str) -> bool:
    """Return whether a list allows everybody; one with too many parts allows nobody."""
    try:
        return ACL.parse(text).everybody
    except ACLError:
        return False


def _names(text: str, pattern: re.Pattern[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the legal names in a comma-separated list, and the entries that are not legal names."""
    entries = [entry for entry in text.split(",") if entry]
    good = frozenset(entry for entry in entries if pattern.fullmatch(entry))
    return good, tuple(entry for entry in entries if entry not in good)
