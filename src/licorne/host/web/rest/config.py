"""The running configuration in the original's form, and verdicts on configurations that a client sends.

Source: docs/spec/rest-api.md, "Config".

The running configuration is shown as it was read: quantities as they were written, plus what reading adds, which is root
where it was left out, and the limits of a partition, which become root's. Which empty fields are shown is as in the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import convert

from licorne.config import Report
from licorne.config.lint import lint
from licorne.config.nodes import compose
from licorne.config.places import named_places
from licorne.config.problems import Notes
from licorne.config.raw import RawFilter, RawLimit, RawPartition, RawQueue, RawResources, RawRule, RawTemplate, Value
from licorne.config.reader import read
from licorne.config.resources import Quantities
from licorne.config.structure import check_config, partition_name
from licorne.core.manager import RegisteredManager
from licorne.si import rest_objects as objects

from .amounts import plain

Map = dict[str, Any]
DEADLOCK = {"DeadlockDetectionEnabled": False, "DeadlockTimeoutSeconds": 60}
"""The original's settings for watching its locks; constant here, as licorne has no locks."""


def verdict(report: Report) -> objects.ConfigVerdict:
    """Return whether a configuration would be accepted, from the report of its check."""
    return objects.ConfigVerdict(
        allowed=not report.faults,
        reason=str(report.faults[0]) if report.faults else "",
        problems=convert(report.faults, list[objects.Problem], from_attributes=True),
        warnings=convert(report.warnings, list[objects.Problem], from_attributes=True),
    )


NO_PARTITION = objects.ConfigVerdict(
    allowed=False, reason="the configuration has no partition: all applications and nodes would be gone"
)
"""The verdict on a new configuration without partitions, which is legal and surely not meant."""


def running(manager: RegisteredManager | None, extra: Mapping[str, str]) -> tuple[Map, Report | None]:
    """Return the configuration of a resource manager, with the keys of the JSON form, and what is odd about it.

    Without a resource manager it has only the constant fields.
    """
    if manager is None:
        return dict(DEADLOCK), None
    text = manager.configuration.text
    notes = Notes("<running>")
    raw = read(compose(text, notes), notes)
    partitions = []
    if raw is not None:
        roots = check_config(raw, Quantities(notes), notes)
        notes.place = named_places(raw, roots)
        lint(raw, roots, notes)
        partitions = [_partition(p, roots[index]) for index, p in enumerate(raw.partitions or ()) if index in roots]
    shown = {"Partitions": partitions, "Checksum": manager.configuration.checksum}
    return shown | {"Extra": dict(sorted(extra.items()))} | DEADLOCK, notes.report()


def _partition(partition: RawPartition, root: RawQueue) -> Map:
    sort, preemption = partition.nodesortpolicy, partition.preemption
    enabled = {} if preemption is None else {"Enabled": preemption.enabled}
    if preemption is not None:
        enabled["QuotaPreemptionEnabled"] = preemption.quotapreemptionenabled
    weights = {name: plain(weight) for name, (weight, _) in ((sort and sort.resourceweights) or {}).items()}
    resolver = partition.usergroupresolver
    found: Map = {
        "Name": partition_name(partition.name),
        "Queues": [_queue(root)],
        "PlacementRules": [_rule(rule) for rule in partition.placementrules or ()],
        "Limits": [_limit(limit) for limit in partition.limits or ()],
        "Preemption": {key: value for key, value in enabled.items() if value is not None},
        "NodeSortPolicy": _said({"Type": "" if sort is None else sort.type, "ResourceWeights": weights}, "Type"),
        "UserGroupResolver": _said({"type": "" if resolver is None else resolver.type}),
    }
    return _said(found, "Preemption", "NodeSortPolicy", "UserGroupResolver")


def _queue(queue: RawQueue) -> Map:
    found: Map = {
        "Name": queue.name,
        "Parent": queue.parent,
        "Resources": _resources(queue.resources),
        "MaxApplications": queue.maxapplications,
        "Properties": _texts(queue.properties),
        "AdminACL": queue.adminacl,
        "SubmitACL": queue.submitacl,
        "ChildTemplate": _template(queue.childtemplate),
        "Queues": [_queue(child) for child in queue.queues or ()],
        "Limits": [_limit(limit) for limit in queue.limits or ()],
    }
    return _said(found, "Name", "Resources", "ChildTemplate")


def _resources(resources: RawResources | None) -> Map:
    if resources is None:
        return {}
    return _said({"Guaranteed": _texts(resources.guaranteed), "Max": _texts(resources.max)})


def _template(template: RawTemplate | None) -> Map:
    if template is None:
        return {"Resources": {}}
    found: Map = {
        "MaxApplications": template.maxapplications,
        "Properties": _texts(template.properties),
        "Resources": _resources(template.resources),
    }
    return _said(found, "Resources")


def _limit(limit: RawLimit) -> Map:
    found: Map = {
        "Limit": limit.limit,
        "Users": _list(limit.users),
        "Groups": _list(limit.groups),
        "MaxResources": _texts(limit.maxresources),
        "MaxApplications": limit.maxapplications,
    }
    return _said(found, "Limit")


def _rule(rule: RawRule) -> Map:
    found: Map = {
        "Name": rule.name,
        "Create": rule.create,
        "Filter": _filter(rule.filter),
        "Parent": None if rule.parent is None else _rule(rule.parent),
        "Value": rule.value,
    }
    return _said(found, "Name", "Filter")


def _filter(found: RawFilter | None) -> Map:
    if found is None:
        return {"Type": ""}
    return _said({"Type": found.type, "Users": _list(found.users), "Groups": _list(found.groups)}, "Type")


def _said(found: Map, *always: str) -> Map:
    """Return the fields that the original shows: the non-empty ones, and those named by `always`."""
    return {key: value for key, value in found.items() if value or key in always}


def _texts(values: Mapping[str, Value] | None) -> dict[str, str]:
    return {key: value.text for key, value in (values or {}).items()}


def _list(values: list[Value] | None) -> list[str]:
    return [value.text for value in values or ()]
