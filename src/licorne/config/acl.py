"""Access control lists: who may submit to a queue, and who may administer it.

Source: *Scheduler Placement Rules*; docs/spec/config.md, section 8.

The text is `*`, or `users groups`: two comma-separated lists with one blank between them. The blank carries
meaning, so `" dev"` is a list of groups and nobody else. Names that no user or group can have are dropped
without a word, as in the original; `config check` has the word (`acl-name-dropped`).
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
    """A text with more parts than users and groups."""


class ACL(msgspec.Struct, frozen=True):
    """A parsed list. `dropped` holds the entries that were no legal names, in the order of the text."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> ACL:
        """Read a list; raises ACLError if it splits into more than two parts at single blanks.

        >>> ACL.parse("alice,bob dev").allows("carol", ["dev"])
        True
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
        """Whether this list by itself names the user or one of the groups; nothing is asked of parent queues."""
        return self.everybody or user in self.users or any(group in self.groups for group in groups)


def _names(text: str, pattern: re.Pattern[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The legal names in a list with commas, and the entries that are none."""
    entries = [entry for entry in text.split(",") if entry]
    good = frozenset(entry for entry in entries if pattern.fullmatch(entry))
    return good, tuple(entry for entry in entries if entry not in good)
