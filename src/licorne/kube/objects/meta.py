"""What all objects have: the metadata, and the envelope of a watch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

NOTHING: dict[str, str] = {}


class Object(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Base of all structs here: names in camel case, defaults left out."""


class OwnerReference(Object):
    """The object that another belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Object):
    """`metadata`: identity, version and description. Times are texts in RFC 3339."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class KubernetesObject(Object):
    """An object with metadata."""

    metadata: ObjectMeta

    @property
    def key(self) -> tuple[str, str]:
        """The key of an object among those of its kind: its namespace and its name."""
        return self.metadata.namespace, self.metadata.name


class LabelSelectorRequirement(Object):
    """One condition of a selector: `In`, `NotIn`, `Exists`, `DoesNotExist`; of nodes also `Gt` and `Lt`."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Object):
    """Which labels are meant: all pairs and all conditions must hold; an empty selector means every object."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class ListMeta(Object):
    """`metadata` of a list: its version, and where the next page begins."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


def micro_time(time_s: float) -> str:
    """Return a time in seconds since 1970 as fields of the type MicroTime have it."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


Quantities = dict[str, Any]
"""Amounts of resources by name, as the API gives them: texts such as `500m`, or numbers."""
