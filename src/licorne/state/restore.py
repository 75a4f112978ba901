"""A scheduler in the state of a dump: configuration, nodes, applications, allocations and pending asks.

A dump names the queue in which each application runs, not what it asked for, so the applications are submitted under a
configuration that puts each into its queue and lets nobody be refused: placement rules, access control lists, limits and
maximum applications are left out. When all are there, the configuration of the dump is applied as a reload. Times are
those of the dump, so asks keep their age and order.

What a dump does not say is assumed, and each assumption is listed in `Restored.notes`, with everything that could not
be taken over. Nothing is guessed silently.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from licorne.config import as_data, load
from licorne.core.api import RegistrationError, SchedulerAPI
from licorne.core.checkpoint import CheckpointError
from licorne.core.placement.rules import RECOVERY_QUEUE
from licorne.si import constants, messages, v19
from licorne.si import rest_objects as objects
from licorne.si.partitions import short_partition
from licorne.state.configuration import as_yaml
from licorne.state.dump import FETCH_AGAIN, REMEDY, Dump, DumpError
from licorne.state.exact import restore_exactly
from licorne.state.restored import Note, Outputs, Restored

WITHOUT: Final = {
    "nodes": "no node is known",
    "queues": "sums of queues are not compared, and queues that were created have no quotas",
    "config": "settings are the defaults",
    "applications": "what uses and waits for something is not known",
}
"""What follows where a member of a dump is missing. All others only describe."""
ASSUMED_OF_ASKS: Final = (
    (
        "each ask may preempt others at once, and each allocation may be evicted: a dump does not say who tried, or "
        "opted out"
    ),
    (
        "what the resource manager alone knows keeps no ask off a node: affinity, spread, ports, volumes, and labels "
        "and taints unless licorne's resource manager sent them"
    ),
)
"""What is assumed where asks wait."""
ENDED: Final = frozenset({"Completed", "Failed", "Rejected", "Expired", "Killed"})
RECOVERY_PATH: Final = f"root.{RECOVERY_QUEUE}"
SHOWN: Final = 5
"""How many objects a note names."""


def restore(dump: Dump, config: str | None = None) -> Restored:
    """Return a scheduler in the state of a dump. `config`: a queue configuration in place of that of the dump.

    A dump of licorne that has a checkpoint is restored exactly, if this licorne can use it.

    Raises:
        DumpError: the dump has no resource manager or no configuration, or contradicts itself.
        ConfigError: the configuration cannot be used.
    """
    return msgspec.structs.replace(_restore(dump, config), held=_held(dump.state))


def _restore(dump: Dump, config: str | None) -> Restored:
    notes: list[Note] = []
    if dump.state.licorne is not None:
        try:
            return restore_exactly(dump.state.licorne, config)
        except CheckpointError as error:
            notes.append(Note("left out", f"the exact state of the dump: {error}"))
    return _restore_shown(dump, config, notes)


def _held(state: objects.FullState) -> dict[str, str]:
    """Return the pods that licorne kube knows and does not ask for, with its reasons; none of another resource manager."""
    found = state.rm_diagnostics.get("held")
    return {pod: str(why) for pod, why in found.items()} if isinstance(found, dict) else {}


def _restore_shown(dump: Dump, config: str | None, notes: list[Note]) -> Restored:
    """Restore what a dump shows, and assume what it does not."""
    state = dump.state
    managers = list(dict.fromkeys(each.cluster_id for each in state.partitions))
    if not managers and (state.applications or state.nodes):
        raise DumpError(f"the dump has no member partitions; {REMEDY}")
    if not managers:
        raise DumpError("the dump has no partition: no resource manager was registered when it was made")
    text = _configuration(state) if config is None else config
    load(text)
    restored = _Restoring(dump, managers, text).run()
    return msgspec.structs.replace(restored, notes=(*notes, *restored.notes))


def _configuration(state: objects.FullState) -> str:
    if not state.config.get("Partitions"):
        raise DumpError(
            f"the dump has no member config with the queue configuration; {FETCH_AGAIN}, "
            "or give the configuration: `licorne why --config queues.yaml`"
        )
    return as_yaml({"Partitions": state.config["Partitions"]})


class _Restoring:
    """One restoration, step by step."""

    def __init__(self, dump: Dump, managers: list[str], text: str) -> None:
        self.dump = dump
        self.state = dump.state
        self.rm_id = managers[0]
        self.text = text
        self.notes: list[Note] = [
            Note("left out", "another resource manager; a dump has the configuration of one alone", 1, (rm_id,))
            for rm_id in managers[1:]
        ]
        self.partitions = [each.name for each in self.state.partitions if each.cluster_id == self.rm_id]
        apps = (app for app in self.state.applications if app.application_state not in ENDED)
        self.applications = sorted(
            (app for app in apps if app.partition in self.partitions), key=lambda app: app.submission_time
        )
        self.nodes = [
            (part.partition_name, node)
            for part in self.state.nodes
            if part.partition_name in self.partitions
            for node in part.nodes_info
        ]
        self._check_nodes()
        self.now_ns = max([self.state.timestamp, *self._times()])
        self.refused: dict[str, list[str]] = {}
        self.outputs = Outputs()
        self.outputs.handler = self._take
        self.api = SchedulerAPI(other_settings=True, on_incident=lambda _: None, on_output=self.outputs)

    def _check_nodes(self) -> None:
        """Refuse a dump whose allocations run on no node: without its nodes each answer would be wrong."""
        have_nodes = {partition for partition, _ in self.nodes}
        lost = {app.partition for app in self.applications if app.allocations} - have_nodes
        if lost:
            raise DumpError(
                f"allocations run in partition {min(lost)}, and the dump has no node of it, so its member nodes is missing "
                f"or not whole; {REMEDY}"
            )

    def _take(self, output: messages.Output) -> None:
        """Collect what the scheduler refuses, by reason."""
        match output:
            case (
                messages.RejectedAllocation(key=name)
                | messages.RejectedApplication(application_id=name)
                | messages.RejectedNode(node_id=name)
            ):
                self.refused.setdefault(output.template or output.reason, []).append(name)

    def _times(self) -> Iterator[int]:
        for app in self.applications:
            yield app.submission_time
            yield from (each.request_time for each in app.requests)
            yield from (each.request_time for each in app.allocations)

    def run(self) -> Restored:
        extra = {name: str(value) for name, value in (self.state.config.get("Extra") or {}).items()}
        try:
            self.api.register_resource_manager(
                v19.RegisterResourceManagerRequest(
                    rm_id=self.rm_id, version="dump", config=_admitting(self.text), extra_config=extra
                ),
                now_ns=self.now_ns,
            )
        except RegistrationError as error:
            raise DumpError(f"the settings of the dump cannot be used: {error}") from None
        self._submit_nodes()
        self._submit_applications()
        self._submit_allocations()
        self._submit_asks()
        self.api.restore_ages(self.rm_id, self._ages(), now_ns=self.now_ns)
        self.api.update_configuration(
            v19.UpdateConfigurationRequest(rm_id=self.rm_id, config=self.text, extra_config=extra), now_ns=self.now_ns
        )
        self._note_what_is_missing()
        self._compare()
        self.outputs.handler = None
        seen = self._has_constraints()
        return Restored(
            self.api,
            self.rm_id,
            self.now_ns,
            self.text,
            tuple(self.notes),
            self.outputs,
            has_constraints=seen,
            logs={} if seen else dict(self._logs()),
        )

    # -- what is submitted ----------------------------------------------------------------------------------------

    def _submit_nodes(self) -> None:
        infos = [
            v19.NodeInfo(
                node_id=node.node_id,
                action=v19.ActionFromRM.CREATE if node.schedulable else v19.ActionFromRM.CREATE_DRAIN,
                attributes={**node.attributes, constants.NODE_PARTITION: partition},
                schedulable_resource=node.capacity,
            )
            for partition, node in self.nodes
        ]
        self.api.update_node(v19.NodeRequest(rm_id=self.rm_id, nodes=infos), now_ns=self.now_ns)
        self._send(
            v19.Allocation(
                allocation_key=each.allocation_key,
                allocation_tags=each.allocation_tags
                | {constants.TAG_FOREIGN: constants.FOREIGN_DEFAULT if each.preemptable else constants.FOREIGN_STATIC},
                resource_per_alloc=each.resource,
                priority=_priority(each.priority, each.allocation_key),
                node_id=node.node_id,
                partition_name=partition,
            )
            for partition, node in self.nodes
            for each in node.foreign_allocations
        )

    def _submit_applications(self) -> None:
        quotas = dict(self._quotas_of_dynamic_queues())
        requests = []
        for app in self.applications:
            recovered = app.queue_name == RECOVERY_PATH
            requests.append(
                messages.AddApplication(
                    application_id=app.application_id,
                    queue="" if recovered else app.queue_name,
                    partition=short_partition(app.partition, self.rm_id),
                    user=app.user,
                    groups=tuple(app.groups),
                    groups_found=True,
                    tags={
                        **quotas.get(app.queue_name, {}),
                        **({constants.TAG_CREATE_FORCE: "true"} if recovered else {}),
                    },
                )
            )
        self.api.submit(self.rm_id, requests, now_ns=self.now_ns)

    def _quotas_of_dynamic_queues(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the tags that give a dynamic leaf queue the quota that it has in the dump."""
        for queue in _walk(self.state.queues):
            if queue.is_leaf and not queue.is_managed:
                tags = {}
                for tag, amounts in (
                    (constants.TAG_RESOURCE_QUOTA, queue.max_resource),
                    (constants.TAG_RESOURCE_GUARANTEED, queue.guaranteed_resource),
                ):
                    if amounts:
                        tags[tag] = json.dumps({"resources": {name: {"value": n} for name, n in amounts.items()}})
                if queue.max_running_apps:
                    tags[constants.TAG_RESOURCE_MAX_APPS] = str(queue.max_running_apps)
                yield queue.queuename, tags

    def _submit_allocations(self) -> None:
        running = [(app, each) for app in self.applications for each in app.allocations]
        running.sort(key=lambda pair: pair[1].allocation_time)
        self._send(_allocation(app, each, each.node_id) for app, each in running)

    def _submit_asks(self) -> None:
        waiting = [(app, each) for app in self.applications for each in app.requests]
        waiting.sort(key=lambda pair: pair[1].request_time)
        self._send(_allocation(app, each, "") for app, each in waiting)

    def _send(self, allocations: Iterable[v19.Allocation]) -> None:
        self.api.update_allocation(
            v19.AllocationRequest(rm_id=self.rm_id, allocations=list(allocations)), now_ns=self.now_ns
        )

    def _ages(self) -> dict[str, Any]:
        found: dict[str, dict[str, Any]] = {name: {} for name in self.partitions}
        for app in self.applications:
            objects_of_app: list[objects.Ask | objects.Allocation] = [*app.requests, *app.allocations]
            created = {
                each.allocation_key: max(each.request_time, 0)
                for each in sorted(objects_of_app, key=lambda each: each.request_time)
            }
            found[app.partition][app.application_id] = {
                "submitted_ns": max(app.submission_time, 0),
                "backoff_until_ns": _nanoseconds(app.backoff_deadline, app.application_id),
                "created_ns": created,
            }
        return found

    # -- what a reader must know ----------------------------------------------------------------------------------

    def _has_constraints(self) -> bool:
        """Whether anything says on which nodes a pod may run, in licorne's form: YuniKorn leaves that to its resource manager."""
        return any(
            name == constants.ATTRIBUTE_TAINTS or name.startswith(constants.ATTRIBUTE_LABEL_PREFIX)
            for _, node in self.nodes
            for name in node.attributes
        ) or any(
            constants.TAG_NODE_CONSTRAINTS in each.allocation_tags for app in self.applications for each in app.requests
        )

    def _logs(self) -> Iterator[tuple[tuple[str, str], tuple[objects.LogEntry, ...]]]:
        for app in self.applications:
            for each in app.requests:
                if each.allocation_log:
                    newest = sorted(each.allocation_log, key=lambda entry: -entry.last_occurrence)
                    yield (app.application_id, each.allocation_key), tuple(newest)

    def _note_what_is_missing(self) -> None:
        for reason, names in self.refused.items():
            self._note("left out", reason, names)
        self._note_missing_members()
        self._note("unknown", "members that the specification does not have were passed over", self.dump.unknown)
        if any(app.requests for app in self.applications):
            self.notes += [Note("assumed", text) for text in ASSUMED_OF_ASKS]
        gangs = [app.application_id for app in self.applications if app.placeholder_data]
        self._note("assumed", "gangs have the style Soft, and the time of their placeholders begins anew", gangs)
        going = [each.allocation_key for app in self.applications for each in app.allocations if each.preempted]
        self._note("assumed", "allocations that are being evicted go on running", going)
        reserved = [node.node_id for _, node in self.nodes if node.reservations]
        self._note("left out", "reservations of nodes; they are made anew", reserved)

    def _note_missing_members(self) -> None:
        absent = [name for name in self.dump.missing if name in WITHOUT]
        if not self.applications and any(
            queue.allocated_resource or queue.pending_resource for queue in _walk(self.state.queues)
        ):
            absent.append("applications")
        self.notes += [Note("missing", f"the dump has no member {name}, so {WITHOUT[name]}") for name in absent]
        others = [name for name in self.dump.missing if name not in WITHOUT]
        self._note("missing", "members of the dump that only describe", others)

    def _note(self, kind: str, text: str, names: Iterable[str]) -> None:
        found = list(names)
        if found:
            self.notes.append(Note(kind, text, len(found), tuple(found[:SHOWN])))

    def _compare(self) -> None:
        """Note each queue whose sums are not those of the dump."""
        cluster = self.api.cluster
        known = {
            (partition.name, queue.path): queue
            for partition in cluster.managers[self.rm_id].ordered
            for queue in partition.tree.queues()
        }
        by_text: dict[str, list[str]] = {}
        for root in self.state.queues:
            partition = root.partition or self.partitions[0]
            for shown in _walk([root]):
                queue = known.get((partition, shown.queuename))
                if queue is None:
                    if shown.allocated_resource or shown.pending_resource:
                        by_text.setdefault("the configuration has no such queue", []).append(shown.queuename)
                    continue
                for what, theirs, ours in (
                    ("allocated", shown.allocated_resource, queue.allocated_resource()),
                    ("pending", shown.pending_resource, queue.pending_resource()),
                    ("max", shown.max_resource, queue.max_resource() or {}),
                    ("guaranteed", shown.guaranteed_resource, queue.guaranteed_resource() or {}),
                ):
                    if _positive(theirs) != _positive(ours) and not (what == "max" and queue.parent is None):
                        by_text.setdefault(f"{what} resources of queues", []).append(shown.queuename)
        for text, names in by_text.items():
            self._note("differs", text, names)


def _allocation(app: objects.Application, found: objects.Ask | objects.Allocation, node_id: str) -> v19.Allocation:
    tags = found.allocation_tags
    if isinstance(found, objects.Ask) and found.required_node_id:
        tags = {**tags, constants.TAG_REQUIRED_NODE: found.required_node_id}
    return v19.Allocation(
        allocation_key=found.allocation_key,
        allocation_tags=tags,
        resource_per_alloc=found.resource,
        priority=_priority(found.priority, found.allocation_key),
        node_id=node_id,
        application_id=app.application_id,
        partition_name=app.partition,
        task_group_name=found.task_group_name,
        placeholder=found.placeholder,
        originator=found.originator,
        preemption_policy=v19.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True),
    )


def _priority(text: str, key: str) -> int:
    try:
        return int(text or "0")
    except ValueError:
        raise DumpError(f"{key}: priority {text!r} is no number") from None


def _nanoseconds(moment: str, application_id: str) -> int:
    """Return a time of RFC 3339 in nanoseconds since 1970; 0 for an empty text."""
    if not moment:
        return 0
    whole, _, rest = moment.removesuffix("Z").partition(".")
    fraction = "".join(char for char in rest.partition("+")[0].partition("-")[0] if char.isdigit())
    try:
        at = dt.datetime.fromisoformat(whole if "+" in whole else whole + "+00:00")
    except ValueError:
        raise DumpError(f"application {application_id}: backoffDeadline {moment!r} is no time of RFC 3339") from None
    return max(int(at.timestamp()), 0) * 10**9 + int((fraction + "0" * 9)[:9])


def _positive(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}


def _walk(queues: Iterable[objects.Queue]) -> Iterator[objects.Queue]:
    for queue in queues:
        yield queue
        yield from _walk(queue.children)


# -- the configuration under which everything is admitted -------------------------------------------------------


def _admitting(text: str) -> str:
    """Return a configuration with the same queues, under which each application goes where it says and none is refused."""
    found = as_data(text)
    for partition in found.get("partitions") or ():
        partition.pop("limits", None)
        partition["placementrules"] = [{"name": "provided", "create": True}]
        queues = partition.get("queues") or []
        for queue in queues:
            _open(queue)
        if len(queues) == 1 and str(queues[0].get("name", "")).lower() == "root":
            queues[0]["submitacl"] = "*"
        else:
            partition["queues"] = [{"name": "root", "submitacl": "*", "queues": queues}]
    return msgspec.yaml.encode(found).decode()


def _open(queue: dict[str, Any]) -> None:
    for key in ("limits", "maxapplications", "submitacl", "adminacl"):
        queue.pop(key, None)
    for child in queue.get("queues") or ():
        _open(child)
