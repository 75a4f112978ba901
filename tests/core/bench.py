"""A small cluster to try rules on: one resource manager, time in seconds, messages as short lines of text.

Everything goes through the API, and after every step all invariants are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.core.inspection.explain import Reason
from licorne.core.partition import Partition
from licorne.core.queues.application import Application
from licorne.si import first, messages, v19
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    RemoveApplication,
    Termination,
)

SECOND_NS = 1_000_000_000
START_S = 1_000_000
"""When a bench begins; young enough for asks that are older."""

NODE_REJECTED = "failure while adding new node, node rejected with error: \n"


def partition(name: str, *queues: str, root: str = "", more: str = "") -> str:
    """A partition in YAML's flow style: `queues` as of `queue`, further keys of `root`, `more` of its own."""
    inside = f"queues: [{', '.join(map(queue, queues))}]"
    top = ", ".join(filter(None, ["name: root", "submitacl: '*'", root, inside]))
    return f"{{{', '.join(filter(None, [f'name: {name}', more, f'queues: [{{{top}}}]']))}}}"


def config(*queues: str, root: str = "", more: str = "") -> str:
    """A configuration of one partition."""
    return partitions(partition("default", *queues, root=root, more=more))


def partitions(*texts: str) -> str:
    """A configuration."""
    return f"partitions: [{', '.join(texts)}]\n"


def queue(text: str) -> str:
    """A queue from `name` or `name key: value, key: value`."""
    name, _, rest = text.partition(" ")
    return f"{{name: {name}{', ' + rest if rest else ''}}}"


def parent(text: str, *children: str) -> str:
    """A queue with children, in the form that `queue` takes."""
    return f"{text}{',' if ' ' in text else ''} queues: [{', '.join(map(queue, children))}]"


def limit(users: str = "", groups: str = "", apps: int = 0, **resources: int) -> str:
    """A limit of these users and groups, amounts of vcore in milli."""
    names = [
        f"{kind}: [{', '.join(map(repr, text.split()))}]"
        for kind, text in (("users", users), ("groups", groups))
        if text
    ]
    amounts = [f"{name}: {value}{'m' if name == 'vcore' else ''}" for name, value in resources.items()]
    numbers = [f"maxapplications: {apps}"] if apps else []
    numbers += [f"maxresources: {{{', '.join(amounts)}}}"] if amounts else []
    return f"{{limit: x, {', '.join(names + numbers)}}}"


class Plugin(ResourceManagerCallback):
    """A resource manager that answers predicates and does nothing else."""

    def __init__(self, holds: Callable[[str, str, bool], bool]) -> None:
        self._holds = holds

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        return None if self._holds(args.allocation_key, args.node_id, args.allocate) else "no"


class Bench:
    """The scheduler with one resource manager, `rm`, in either dialect."""

    def __init__(
        self,
        text: str,
        *,
        first_interface: bool = False,
        settings: Mapping[str, str] | None = None,
        holds: Callable[[str, str, bool], bool] | None = None,
    ) -> None:
        self.seconds: float = START_S
        self.said: list[str] = []
        self.outputs: list[Output] = []
        self.first_interface = first_interface
        self.api = SchedulerAPI(
            policy_groups={"group": (text, {})},
            settings={"outstanding.inspection": "false", **(settings or {})},
            clock=lambda: int(self.seconds * SECOND_NS),
            on_output=lambda _, outputs: self._take(outputs),
        )
        self.register(Plugin(holds) if holds is not None else None)

    def register(self, callback: ResourceManagerCallback | None = None) -> None:
        """Register, or register again."""
        if self.first_interface:
            self.api.register_resource_manager(
                first.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"), callback
            )
        else:
            self.api.register_resource_manager(
                v19.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"), callback
            )

    def reload(self, text: str) -> None:
        """Another configuration."""
        self.api.policy_groups["group"] = (text, {})
        self.api.reload_configuration("rm")
        self.api.validate()

    def _take(self, outputs: list[Output]) -> None:
        self.outputs += outputs
        self.said += map(short, outputs)

    # -- inputs ----------------------------------------------------------------------------------------

    def send(self, *inputs: Input) -> list[str]:
        """Submit messages and return the messages that come back at once."""
        start = len(self.said)
        self.api.submit("rm", inputs)
        self.api.validate()
        return self.said[start:]

    def node(
        self,
        id: str,
        action: NodeAction = NodeAction.CREATE,
        *,
        partition: str = "default",
        attributes: dict[str, str] | None = None,
        occupied: dict[str, int] | None = None,
        capacity: dict[str, int] | None = None,
        **amounts: int,
    ) -> list[str]:
        return self.send(
            NodeUpdate(
                node_id=id,
                action=action,
                partition=partition,
                attributes=attributes,
                capacity=capacity or amounts or None,
                occupied=occupied,
                strict=self.first_interface,
            )
        )

    def app(
        self,
        id: str,
        queue: str = "root.a",
        user: str = "u",
        *groups: str,
        tags: dict[str, str] | None = None,
        partition: str = "default",
        timeout_ms: int = 0,
    ) -> list[str]:
        return self.send(
            AddApplication(
                application_id=id,
                queue=queue,
                user=user,
                groups=groups,
                tags=tags or {},
                partition=partition,
                execution_timeout_ms=timeout_ms,
                timeout_is_running_time=self.first_interface,
            )
        )

    def ask(
        self,
        app: str,
        key: str,
        *,
        times: int = 1,
        priority: int = 0,
        required: str = "",
        node: str = "",
        age_s: int | None = None,
        tags: dict[str, str] | None = None,
        timeout_ms: int = 0,
        partition: str = "default",
        preempt_self: bool = True,
        preempt_other: bool = False,
        originator: bool = False,
        placeholder: bool = False,
        resource: dict[str, int] | None = None,
        **amounts: int,
    ) -> list[str]:
        all_tags = dict(tags or {})
        if required:
            all_tags["yunikorn.apache.org/requiredNode"] = required
        if age_s is not None:
            all_tags["creationTime"] = str(int(self.seconds) - age_s)
        return self.send(
            Allocation(
                key=key,
                application_id=app or key,
                independent=not app,
                resource=amounts if resource is None else resource,
                priority=priority,
                tags=all_tags or None,
                node_id=node,
                max_allocations=times,
                timeout_ms=timeout_ms,
                partition=partition,
                allow_preempt_self=preempt_self,
                allow_preempt_other=preempt_other,
                originator=originator,
                placeholder=placeholder,
                task_group="group" if placeholder else "",
            )
        )

    def foreign(self, key: str, node: str, **resource: int) -> list[str]:
        return self.send(Allocation(key=key, resource=resource, node_id=node, tags={"foreign": "default"}))

    def release(
        self, app: str, key: str = "", *, termination: Termination = Termination.STOPPED_BY_RM, what: str = "both"
    ) -> list[str]:
        """A release of the 1.9 interface; in the first interface `key` is a UUID, or with `what="ask"` an ask's key."""
        uuid = ""
        if self.first_interface and what == "both":
            what, key, uuid = "allocation", "", key
        return self.send(Release(application_id=app, key=key, uuid=uuid, termination=termination, what=what))

    def remove(self, app: str) -> list[str]:
        return self.send(RemoveApplication(application_id=app))

    def run(self, *, after: float = 0, limit: int | None = None) -> str:
        """Let `after` seconds pass and decide: the new allocations as `key@node`, in order."""
        self.seconds += after
        start = len(self.outputs)
        self.api.schedule(limit=limit)
        self.api.validate()
        made = [o for o in self.outputs[start:] if isinstance(o, messages.NewAllocation)]
        return " ".join(f"{o.key}@{o.node_id}" for o in made)

    def hear(self, *, after: float = 0) -> list[str]:
        """Decide as in `run`, and return every message."""
        start = len(self.said)
        self.run(after=after)
        return self.said[start:]

    # -- looking ---------------------------------------------------------------------------------------

    @property
    def partition(self) -> Partition:
        return self.api.cluster.partition("rm")

    def application(self, id: str) -> Application:
        return self.partition.applications[id]

    def state(self, id: str) -> str:
        return str(self.application(id).state)

    def states(self) -> str:
        return " ".join(f"{name}:{app.state}" for name, app in self.partition.applications.items())

    def reserved(self) -> str:
        """All reservations as `key@node`."""
        nodes = self.partition.nodes.values()
        return " ".join(f"{ask.key}@{node.id}" for node in nodes for ask in node.reservations)

    def queues(self) -> list[str]:
        return [str(getattr(queue, "path", "")) for queue in self.partition.tree.queues()]

    def allocated(self, path: str) -> dict[str, int]:
        found = self.partition.tree.find(path)
        assert found is not None
        return found.allocated_resource()

    def pending(self, path: str = "root") -> dict[str, int]:
        found = self.partition.tree.find(path)
        assert found is not None
        return found.pending_resource()

    def free(self, node: str) -> dict[str, int]:
        """The free amount of a node."""
        return self.partition.nodes[node].free.named(self.partition.types)

    def why(self, key: str) -> list[Reason]:
        """Why the ask waits; empty if it does not."""
        return next((reasons for ask, _, reasons in self.partition.waiting() if ask == key), [])

    def uuids(self) -> dict[str, str]:
        """UUID -> `key@node` of all that was allocated."""
        new = [o for o in self.outputs if isinstance(o, messages.NewAllocation)]
        return {o.uuid: f"{o.key}@{o.node_id}" for o in new}


def cluster(text: str, *nodes: int, apps: str = "", first_interface: bool = False, **settings: str) -> Bench:
    """A bench with nodes n1, n2 ... of these amounts of vcore and applications of root.a; dots in settings are written `_`."""
    b = Bench(
        text,
        first_interface=first_interface,
        settings={key.replace("_", "."): value for key, value in settings.items()},
    )
    for number, vcore in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=vcore)
    for app in apps.split():
        b.app(app)
    return b


def short(output: Output) -> str:
    """An output as a line."""
    match output:
        case messages.NewAllocation():
            return f"new {output.key}@{output.node_id}"
        case messages.Released():
            return f"released {output.key} {output.termination.name}: {output.message}"
        case messages.RejectedAllocation():
            return f"rejected {output.key} of {output.application_id}: {output.reason}"
        case messages.AcceptedApplication():
            return f"accepted {output.application_id}"
        case messages.RejectedApplication():
            return f"rejected {output.application_id}: {output.reason}"
        case messages.UpdatedApplication():
            return f"{output.application_id} {output.state}: {output.message}"
        case messages.AcceptedNode():
            return f"accepted {output.node_id}"
        case messages.RejectedNode():
            return f"rejected {output.node_id}: {output.reason.removeprefix(NODE_REJECTED)}"
        case messages.WaitingForResources():
            return f"waiting {output.key} of {output.application_id}"
