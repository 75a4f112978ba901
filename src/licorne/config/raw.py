"""A configuration as it was written: typed, but not yet checked.

The nodes of the document have no types, and the model has no lines and columns. The checks need both: the value as
the author spelled it, and its place. Field names are the keys of the document. `None` for a list or a map means
that the key is absent or null, which the original tells apart from an empty one (docs/spec/config.md, section 13).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from licorne.config.nodes import YamlNode
from licorne.config.problems import Spot

_PLAIN_KEY: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/")


def join(path: str, key: str) -> str:
    """Return the path of a key below a path; a key with a dot or a blank in it is put in quotes."""
    if key and _PLAIN_KEY.issuperset(key):
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


@dataclass(slots=True, frozen=True)
class Value:
    """A text with its place: an element of a list, or a value of a map."""

    text: str
    spot: Spot


@dataclass(slots=True, kw_only=True)
class Item:
    """The base of all mappings of the schema: its own place, and the places of its keys' values.

    `broken` names the keys whose values were faulty themselves, so that no check reports them again as absent.
    """

    path: str
    node: YamlNode
    nodes: dict[str, YamlNode] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

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


@dataclass(slots=True, kw_only=True)
class RawResources(Item):
    """The guarantee and the maximum of a queue or of a template."""

    guaranteed: ResourceMap | None = None
    max: ResourceMap | None = None


@dataclass(slots=True, kw_only=True)
class RawLimit(Item):
    """The maxima of users and groups."""

    limit: str = ""
    users: list[Value] | None = None
    groups: list[Value] | None = None
    maxresources: ResourceMap | None = None
    maxapplications: int = 0


@dataclass(slots=True, kw_only=True)
class RawTemplate(Item):
    """The settings of dynamic leaves."""

    maxapplications: int = 0
    properties: dict[str, Value] | None = None
    resources: RawResources | None = None


@dataclass(slots=True, kw_only=True)
class RawQueue(Item):
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


@dataclass(slots=True, kw_only=True)
class RawFilter(Item):
    """The users and groups to which a rule applies."""

    type: str = ""
    users: list[Value] | None = None
    groups: list[Value] | None = None


@dataclass(slots=True, kw_only=True)
class RawRule(Item):
    """A placement rule and the one that makes its parent queue."""

    name: str = ""
    create: bool = False
    filter: RawFilter | None = None
    parent: RawRule | None = None
    value: str = ""


@dataclass(slots=True, kw_only=True)
class RawPreemption(Item):
    """Which kinds of preemption are enabled; None means the default."""

    enabled: bool | None = None
    quotapreemptionenabled: bool | None = None


@dataclass(slots=True, kw_only=True)
class RawNodeSort(Item):
    """The order in which nodes are tried."""

    type: str = ""
    resourceweights: dict[str, tuple[float, Spot]] | None = None


@dataclass(slots=True, kw_only=True)
class RawResolver(Item):
    """The method by which the groups of a user are resolved."""

    type: str = ""


@dataclass(slots=True, kw_only=True)
class RawPartition(Item):
    """A partition."""

    name: str = ""
    queues: list[RawQueue] | None = None
    placementrules: list[RawRule] | None = None
    limits: list[RawLimit] | None = None
    preemption: RawPreemption | None = None
    nodesortpolicy: RawNodeSort | None = None
    usergroupresolver: RawResolver | None = None


@dataclass(slots=True, kw_only=True)
class RawConfig(Item):
    """The whole document."""

    partitions: list[RawPartition] | None = None
    checksum: str = ""
