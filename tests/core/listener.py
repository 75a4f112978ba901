"""A resource manager that records the messages it receives, and short calls of the scheduler's 1.9 interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.bench import config
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.si import first, v19

VCORE = "vcore"


class Listener(ResourceManagerCallback):
    """Records all messages that it receives, as (method, message)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self.heard.append(("allocation", response))

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self.heard.append(("application", response))

    def update_node(self, response: v19.NodeResponse) -> None:
        self.heard.append(("node", response))

    def recv_update_response(self, response: first.UpdateResponse) -> None:
        self.heard.append(("update", response))

    def update_container_scheduling_state(
        self, request: v19.UpdateContainerSchedulingStateRequest | first.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.heard.append(("state", request))

    def take(self) -> list[tuple[str, Any]]:
        heard, self.heard = self.heard, []
        return heard


def v19_api(callback: ResourceManagerCallback | None, text: str = "") -> SchedulerAPI:
    api = SchedulerAPI()
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=text or config("a")), callback)
    return api


def node(api: SchedulerAPI, id: str = "n1", vcore: int = 10) -> None:
    info = v19.NodeInfo(node_id=id, action=v19.ActionFromRM.CREATE, schedulable_resource={VCORE: vcore})
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[info]))


def apps(api: SchedulerAPI, *ids: str) -> None:
    ugi = v19.UserGroupInformation(user="u")
    new = [v19.AddApplicationRequest(application_id=app, queue_name="root.a", ugi=ugi) for app in ids]
    api.update_application(v19.ApplicationRequest(rm_id="rm", new=new))


def ask(api: SchedulerAPI, key: str, vcore: int = 1, **fields: Any) -> None:
    item = v19.Allocation(allocation_key=key, application_id="x", resource_per_alloc={VCORE: vcore}, **fields)
    api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=[item]))


def releases(*ends: v19.AllocationRelease, **fields: Any) -> v19.AllocationRequest:
    listed = v19.AllocationReleasesRequest(allocations_to_release=list(ends))
    return v19.AllocationRequest(rm_id="rm", releases=listed, **fields)


class Judge(Listener):
    """Answers predicates by a given function, and records each question as `key node allocate`."""

    def __init__(self, answer: Callable[[v19.PredicatesArgs], str | None]) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[str] = []

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        self.asked.append(f"{args.allocation_key} {args.node_id} {args.allocate}")
        return self.answer(args)
