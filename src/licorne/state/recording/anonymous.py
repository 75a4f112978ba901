"""Names of users and groups replaced by digests, before anything of them is written.

The same decisions must follow from what is left. So a name is replaced alike wherever the scheduler compares it: in
applications, and in limits, access control lists and filters of the configuration. The digest is keyed, and the key is
drawn at random and kept nowhere: nobody can find out names by trying them. A user and a group of one name have one
digest, since a user who has no groups is in the group of that name.

Values of pods' labels, which may hold names too, are replaced in the same way, in labels and in selectors alike.

What the scheduler does not read is left out: tags, comments and
descriptions in the configuration, texts of refusals. Names of queues, namespaces, applications, pods and nodes stay:
siblings that are alike are ordered by them, so others would lead to other decisions. For the same reason a configuration
in which queues have the names of users, or in which a filter is an expression over names, cannot be recorded so.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from licorne.config import ConfigError, as_data
from licorne.config.acl import ACL
from licorne.config.limits import GROUP_NAME, USER_NAME
from licorne.config.placement import is_regexp
from licorne.core.base.setting_table import NO_EFFECT, TABLE
from licorne.core.base.tags import GUARANTEED_TAG, MAX_APPLICATIONS_TAG, MAX_TAG
from licorne.core.gangs.atomic import GROUPS_TAG, LASTING_TAG, SCHEDULING_TAG
from licorne.core.nodes.images import IMAGES_ATTRIBUTE, read_images
from licorne.core.nodes.reading import ConstraintError
from licorne.core.preemption.together import TOGETHER_TAG
from licorne.si import constants
from licorne.si.output_lines import TEXTS

KNOWN_MAX: Final = 100_000
"""How many digests are kept, so that they need not be computed again."""
_UNCHANGED: Final = frozenset({"", "*", constants.NOBODY_USER, constants.NOBODY_GROUP})
"""Names with a meaning of their own."""
_READ_TAGS: Final = frozenset(
    {
        MAX_TAG,
        GUARANTEED_TAG,
        MAX_APPLICATIONS_TAG,
        GROUPS_TAG,
        SCHEDULING_TAG,
        LASTING_TAG,
        TOGETHER_TAG,
        constants.TAG_ALLOCATION_CREATION_TIME.lower(),
        constants.TAG_APPLICATION_CREATION_TIME.lower(),
        constants.TAG_CREATE_FORCE,
        constants.TAG_FOREIGN,
        constants.TAG_ENDING,
        constants.TAG_GRACE_PERIOD,
        constants.TAG_NAMESPACE,
        constants.TAG_NAMESPACE_PARENT_QUEUE,
        constants.TAG_NODE_CONSTRAINTS,
        constants.TAG_POD,
        constants.TAG_POD_TERMS,
        constants.TAG_REQUIRED_NODE.lower(),
        constants.TAG_WHOLE_TIMEOUT,
        f"{constants.DOMAIN_K8S}{constants.GROUP_META}{constants.KEY_NAMESPACE}".lower(),
        f"{constants.DOMAIN_K8S}{constants.GROUP_META}{constants.KEY_POD_NAME}".lower(),
    }
)
"""Tags that the scheduler reads, and those by which people name pods, in small letters."""
_DESCRIBING: Final = ("labels", "annotations")
"""Members of a task group that describe its placeholder pods and mean nothing to the scheduler."""
_LABELS: Final = ("labels", "namespaceLabels", "matchLabels", "values", "images")
"""Members of what pods are and of their terms below which texts are values of labels."""
LEFT_OUT: Final = "left out"
"""In place of a text; with its blank it is no legal name."""


class AnonymityError(ValueError):
    """A queue configuration cannot be made anonymous: it cannot be read, or decisions depend on the names of users."""


class Names:
    """Replaces names of users and groups by digests. `key`: that of the digests; by default one that nobody knows."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(32) if key is None else key
        self._known: dict[str, str] = {}
        self._kept_tags = _READ_TAGS

    def of(self, name: str) -> str:
        """Return the digest of a name, which is a legal name; that of an illegal name is illegal, as both are refused."""
        if name in _UNCHANGED:
            return name
        found = self._known.get(name)
        if found is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), key=self._key, digest_size=8).hexdigest()
            found = self._known[name] = f"x{digest}" if USER_NAME.fullmatch(name) else f"!{digest}"
        return found

    def configuration(self, text: str) -> str:
        """Return a queue configuration with the names in it replaced, and without comments; its tag rules count from now on.

        Raises:
            AnonymityError: the configuration depends on the names themselves, or cannot be read.
        """
        if not text:
            return text
        try:
            found = as_data(text)
        except ConfigError as error:
            raise AnonymityError(f"the configuration cannot be read: {error.problems[0]}") from None
        rules = list(_rules(found))
        _check(rules)
        read = {rule.get("value", "").lower() for rule in rules if rule.get("name", "").lower() == "tag"}
        self._kept_tags = _READ_TAGS | read
        return msgspec.yaml.encode(self._replaced(found)).decode()

    @staticmethod
    def settings(settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that have an effect on the scheduler; others may hold names, such as those of administrators."""
        found = {key: TABLE.find(key) for key in settings}
        return {key: settings[key] for key, row in found.items() if row is not None and row.applies != NO_EFFECT}

    def message(self, kind: str, fields: dict[str, Any]) -> None:
        """Replace names in the fields of a message of the core, and leave out what the scheduler does not read."""
        if kind == "AddApplication":
            fields["user"] = self.of(fields["user"])
            fields["groups"] = [self.of(group) for group in fields["groups"]]
            if fields["groups_fault"]:
                fields["groups_fault"] = LEFT_OUT
        for name in TEXTS:
            if fields.get(name):
                fields[name] = LEFT_OUT
        if tags := fields.get("tags"):
            fields["tags"] = self.tags(tags)
        if images := (fields.get("attributes") or {}).get(IMAGES_ATTRIBUTE):
            fields["attributes"] = {**fields["attributes"], IMAGES_ATTRIBUTE: self._images(images)}

    def tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return the tags that the scheduler reads, without what describes pods in task groups."""
        kept = {key: text for key, text in tags.items() if key.lower() in self._kept_tags}
        read: dict[str, Callable[[str], str]] = {
            GROUPS_TAG: _bare_groups,
            constants.TAG_POD: self._labels,
            constants.TAG_POD_TERMS: self._labels,
        }
        return {key: read[key.lower()](text) if key.lower() in read else text for key, text in kept.items()}

    def _images(self, text: str) -> str:
        """Return the images of a node with their names replaced, which those of pods are compared with."""
        try:
            return json.dumps({self.of(name): size for name, size in read_images(text).items()})
        except ConstraintError:
            return ""

    def _labels(self, text: str) -> str:
        """Return what a pod is, or its terms, with the values of labels replaced, which selectors compare for equality.

        Labels of nodes, which preferred `nodes` are about, stay as they are.
        """
        try:
            return json.dumps(self._without_values(json.loads(text)))
        except (ValueError, RecursionError):
            return LEFT_OUT

    def _without_values(self, value: Any, inside: str = "") -> Any:  # noqa: ANN401  plain data
        if isinstance(value, dict):
            return {
                key: each
                if key == "nodes" and not inside
                else self._without_values(each, key if key in _LABELS else inside)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._without_values(each, inside) for each in value]
        return self.of(value) if inside and isinstance(value, str) else value

    def _replaced(self, value: Any, *path: str) -> Any:  # noqa: ANN401  plain data
        """Return a part of a configuration with the names replaced; `path`: the keys that lead to it."""
        if isinstance(value, dict):
            return {key: self._replaced(each, *path, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self._replaced(each, *path) for each in value]
        return self._value(value, path) if isinstance(value, str) else value

    def _value(self, text: str, path: tuple[str, ...]) -> str:
        match path:
            case [*_, "limits", "users" | "groups"] | [*_, "filter", "users"]:
                return self.of(text)
            case [*_, "filter", "groups"] if not GROUP_NAME.fullmatch(text):
                return LEFT_OUT  # no group has such a name, but a user may
            case [*_, "filter", "groups"]:
                return self.of(text)
            case [*_, "submitacl" | "adminacl"]:
                return self._acl(text)
            case [*_, "limits", "limit"]:
                return LEFT_OUT
        return text

    def _acl(self, text: str) -> str:
        found = ACL.parse(text)
        if found.everybody or not text:
            return "*" if found.everybody else ""
        users = ",".join(sorted(map(self.of, found.users)))
        groups = ",".join(sorted(map(self.of, found.groups)))
        return f"{users} {groups}" if groups else users


def _rules(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all placement rules, parents too."""
    for partition in config.get("partitions") or ():
        rules = list(partition.get("placementrules") or ())
        for rule in rules:
            yield rule
            if parent := rule.get("parent"):
                rules.append(parent)


def _check(rules: Iterable[dict[str, Any]]) -> None:
    for rule in rules:
        if rule.get("name", "").lower() == "user":
            raise AnonymityError(
                "the placement rule 'user' names queues after users, so their names cannot be replaced"
            )
        found = rule.get("filter") or {}
        for kind in ("users", "groups"):
            if len(entries := found.get(kind) or []) == 1 and is_regexp(entries[0]):
                raise AnonymityError(
                    f"a filter of the placement rule {rule.get('name')!r} is an expression over names of {kind}, "
                    "so they cannot be replaced"
                )


def _bare_groups(text: str) -> str:
    """Return task groups without labels and annotations of pods; a text that is none has no meaning, and stays none."""
    try:
        groups = json.loads(text)
    except (ValueError, RecursionError):
        return LEFT_OUT
    if isinstance(groups, list):
        for group in groups:
            for name in _DESCRIBING:
                if isinstance(group, dict):
                    group.pop(name, None)
    return json.dumps(groups)
