"""A configuration as it was written: typed, but not yet checked.

The nodes of the document have no types, and the model has no lines and columns. The checks need both: the value as
the author spelled it, and its place. Field names are the keys of the document. `None` for a list or a map means
that the key is absent or null, which the original tells apart from an empty one (docs/spec/config.md, section 13).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from licorne.config.nodes import YamlNode
from licorne.config.problems import Spot

_PLAIN_KEY: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/")


def join(path: str, key: str) -> str:
    """Return the path of a key below a path; a key with a dot or a blank in it is put in quotes."""
    if key and _PLAIN_KEY.issuperset(key):
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


class Value(msgspec.Struct, frozen=True):
    """A text with its place: an element of a list, or a value of a map."""

    text: str
    spot: Spot


class Item(msgspec.Struct, kw_only=True):
    """The base of all mappings of the schema: its own place, and the places of its keys' values.

    `broken` names the keys whose values were faulty themselves, so that no check reports them again as absent.
    """

    path: str
    node: YamlNode
    nodes: dict[str, YamlNode] = {}
    broken: set[str] = set()

    def spot(self, key: str = "") -> Spot:
        """Return the place of a key's value, or of the item itself if the key is absent."""
        node = self.nodes.get(key)
        return self.node.spot(self.path) if node is None else node.spot(join(self.path, key))


ResourceMap = dict[str, Value]


def plain(value: Any) -> Any:  # noqa: ANN401  what a field of any item holds
    """Return an item, or what a field of it holds, as plain data: of an item, the keys that are written."""
    match value:
        case Item():
            return {key: plain(getattr(value, key)) for key in value.nodes}
        case list():
            return [plain(each) for each in value]
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case Value(text=data) | (data, Spot()):
            return data
    return value


class RawResources(Item, kw_only=True):
    """The guarantee and the maximum of a queue or of a template."""

    guaranteed: ResourceMap | None = None
    max: ResourceMap | None = None


class RawLimit(Item, kw_only=True):
    """The maxima of users and groups."""

    limit: str = ""
    users: list[Value] | None = None
    groups: list[Value] | None = None
    maxresources: ResourceMap | None = None
    maxapplications: int = 0


class RawTemplate(Item, kw_only=True):
    """The settings of dynamic leaves."""

    maxapplications: int = 0
    properties: dict[str, Value] | None = None
    resources: RawResources | None = None


class RawQueue(Item, kw_only=True):
    """A queue of a configuration and the queues below it, as they are written, before they are checked."""

    name: str = ""
    parent: bool = False
    queues: list[RawQueue] | None = None
    resources: RawResources | None = None
    maxapplications: int = 0
    properties: dict[str, Value] | None = None
    adminacl: str = ""
    submitacl: str = ""
    childtemplate: RawTemplate | None = None
    limits: list[RawLimit] | None = None


class RawFilter(Item, kw_only=True):
    """The users and groups to which a rule applies."""

    type: str = ""
    users: list[Value] | None = None
    groups: list[Value] | None = None


class RawRule(Item, kw_only=True):
    """A placement rule and the one that makes its parent queue."""

    name: str = ""
    create: bool = False
    filter: RawFilter | None = None
    parent: RawRule | None = None
    value: str = ""


class RawPreemption(Item, kw_only=True):
    """Which kinds of preemption are enabled; None means the default."""

    enabled: bool | None = None
    quotapreemptionenabled: bool | None = None


class RawNodeSort(Item, kw_only=True):
    """The order in which nodes are tried."""

    type: str = ""
    resourceweights: dict[str, tuple[float, Spot]] | None = None


class RawResolver(Item, kw_only=True):
    """The method by which the groups of a user are resolved."""

    type: str = ""


class RawPartition(Item, kw_only=True):
    """A partition."""

    name: str = ""
    queues: list[RawQueue] | None = None
    placementrules: list[RawRule] | None = None
    limits: list[RawLimit] | None = None
    preemption: RawPreemption | None = None
    nodesortpolicy: RawNodeSort | None = None
    usergroupresolver: RawResolver | None = None


class RawConfig(Item, kw_only=True):
    """The whole document."""

    partitions: list[RawPartition] | None = None
    checksum: str = ""
