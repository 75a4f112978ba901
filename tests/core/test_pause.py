"""A resource manager for which nothing is decided for a while (`SchedulerAPI.pause`); translations handed in (`take`)."""

from __future__ import annotations

import pytest

from licorne import NotRegisteredError, SchedulerAPI
from licorne.si import adapt_v19, v19

SECOND_NS = 10**9


def with_an_ask(api: SchedulerAPI, rm_id: str) -> None:
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id=rm_id))
    node = v19.NodeInfo(node_id="n1", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 10})
    api.update_node(v19.NodeRequest(rm_id=rm_id, nodes=[node]))
    owner = v19.UserGroupInformation(user="ann")
    app = v19.AddApplicationRequest(application_id="app", ugi=owner, tags={"namespace": "dev"})
    api.update_application(v19.ApplicationRequest(rm_id=rm_id, new=[app]))
    ask = v19.Allocation(allocation_key="k", application_id="app", resource_per_alloc={"vcore": 1})
    api.update_allocation(v19.AllocationRequest(rm_id=rm_id, allocations=[ask]))


def test_nothing_is_decided_for_a_paused_resource_manager_only() -> None:
    api = SchedulerAPI()
    with_an_ask(api, "a")
    with_an_ask(api, "b")
    api.pause("a")
    api.pause("unknown")
    assert api.schedule() == 1
    assert len(api.cluster.partition("b").applications["app"].allocations) == 1
    assert api.schedule() == 0
    api.pause("a", paused=False)
    assert api.schedule() == 1


def test_registration_ends_a_pause() -> None:
    api = SchedulerAPI()
    with_an_ask(api, "a")
    api.pause("a")
    with_an_ask(api, "a")
    assert api.schedule() == 1


def test_a_pause_leaves_no_deadline_that_is_always_due() -> None:
    """The inspection of waiting asks belongs to decisions; a host would call again and again for it."""
    api = SchedulerAPI()
    with_an_ask(api, "a")
    api.pause("a")
    now_ns = 5 * SECOND_NS
    api.schedule(now_ns=now_ns)
    due = api.next_deadline_ns()
    assert due is None or due > now_ns
    api.pause("a", paused=False)
    assert (api.next_deadline_ns() or 0) <= now_ns


def test_a_translation_is_taken_as_its_request() -> None:
    api = SchedulerAPI()
    with_an_ask(api, "a")
    ask = v19.Allocation(allocation_key="k2", application_id="app", resource_per_alloc={"vcore": 2})
    translation = adapt_v19.inputs_from_allocation_request(v19.AllocationRequest(rm_id="a", allocations=[ask]))
    api.take("a", translation)
    assert api.schedule() == 2
    with pytest.raises(NotRegisteredError):
        api.take("b", translation)
