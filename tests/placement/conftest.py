"""Small partitions to place applications in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from licorne.config.model import NodeSortConfig, PartitionConfig, QueueConfig, RuleConfig
from licorne.core.placement.placer import Placement, PlacementRequest, Placer, is_forced
from licorne.core.placement.static_tree import StaticTree


def _queue(name: str, path: str, queues: Mapping[str, str]) -> QueueConfig:
    below = [other.removeprefix(f"{path}.") for other in queues if other.startswith(f"{path}.")]
    names = dict.fromkeys(rest.partition(".")[0] for rest in below if rest)
    return QueueConfig(
        name=name,
        parent=bool(below) or path == "root",
        children=tuple(_queue(child, f"{path}.{child}", queues) for child in names),
        submit_acl=queues.get(path, queues.get(f"{path}.", "")),
        admin_acl=queues.get(f"{path} admin", ""),
    )


def tree_of(queues: Mapping[str, str]) -> StaticTree:
    """A tree from paths and their submit lists; a dot at the end declares a parent, ` admin` names an admin list."""
    rules: tuple[RuleConfig, ...] = ()
    sort = NodeSortConfig(policy="fair", weights={})
    root = _queue("root", "root", queues)
    return StaticTree(PartitionConfig("default", root, rules, sort, True, False, ""))


@pytest.fixture(scope="session")
def make_tree() -> Callable[[Mapping[str, str]], StaticTree]:
    return tree_of


@pytest.fixture
def place() -> Callable[..., Placement]:
    """Place an application `app` by these rules among these queues; `tags` decide whether it is forced."""

    def placed(rules: Sequence[RuleConfig], queues: Mapping[str, str], **request: Any) -> Placement:
        tags = request.get("tags") or {}
        wanted = PlacementRequest("app", forced=is_forced(tags), **request)
        return Placer.first(rules).place(wanted, tree_of({"root": "*"} | dict(queues)))

    return placed
