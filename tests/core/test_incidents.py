"""Incidents reach a handler once: refusals that no callback takes, errors of callbacks, ignored parts of requests."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest  # noqa: TC002  as in the code under test

from core.bench import config
from core.listener import Listener, apps, ask, node, v19_api
from licorne import Incident, ResourceManagerCallback, SchedulerAPI
from licorne.si import adapt_first, first, v19


def scheduler(callback: ResourceManagerCallback | None, **given: Any) -> tuple[SchedulerAPI, list[Incident]]:
    heard: list[Incident] = []
    api = SchedulerAPI(on_incident=heard.append, **given)
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=config("a")), callback)
    return api, heard


def first_scheduler(callback: ResourceManagerCallback | None = None) -> tuple[SchedulerAPI, list[Incident]]:
    heard: list[Incident] = []
    api = SchedulerAPI(on_incident=heard.append)
    api.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm"), callback)
    return api, heard


NOTHING = first.UpdateRequest(
    rm_id="rm",
    releases=first.AllocationReleasesRequest(allocations_to_release=[first.AllocationRelease()]),
)
"""A release that names nothing."""


def refuse_one_of_each(api: SchedulerAPI) -> None:
    node(api)
    node(api)  # once more
    apps(api, "x", "")
    ask(api, "bad", vcore=0)


def facts(heard: list[Incident]) -> list[tuple[str, str, str]]:
    return [(one.kind, one.callback, type(one.refusal).__name__) for one in heard]


EACH = [
    ("refusal", "update_node", "RejectedNode"),
    ("refusal", "update_application", "RejectedApplication"),
    ("refusal", "update_allocation", "RejectedAllocation"),
]


class Nodes(ResourceManagerCallback):
    """Overrides one of the three."""

    def __init__(self) -> None:
        self.heard: list[v19.NodeResponse] = []

    def update_node(self, response: v19.NodeResponse) -> None:
        self.heard.append(response)


def test_without_a_callback_refusals_reach_the_handler() -> None:
    api, heard = scheduler(None)
    refuse_one_of_each(api)
    assert facts(heard) == EACH
    assert heard[2].text == "allocation 'bad' of application 'x' was refused: allocation contains no resources"
    refusal: Any = heard[2].refusal
    assert (heard[2].rm_id, refusal.allocation_key, refusal.application_id) == ("rm", "bad", "x")


def test_methods_that_are_not_overridden_take_no_refusals() -> None:
    manager = Nodes()
    api, heard = scheduler(manager)
    refuse_one_of_each(api)
    assert facts(heard) == EACH[1:]
    assert len(manager.heard) == 2


def test_a_method_may_be_set_on_the_object_later() -> None:
    manager = Nodes()
    api, heard = scheduler(manager)
    taken: list[Any] = []
    manager.update_allocation = taken.append  # type: ignore[method-assign, assignment]
    refuse_one_of_each(api)
    assert facts(heard) == EACH[1:2]
    assert len(taken) == 1


def test_a_callback_with_all_methods_receives_all_and_the_handler_nothing() -> None:
    api, heard = scheduler(Listener())
    refuse_one_of_each(api)
    ask(api, "k")
    assert api.schedule() == 1
    assert heard == []


def test_a_host_that_takes_outputs_takes_refusals() -> None:
    said: list[Any] = []
    api, heard = scheduler(None, on_output=lambda _, outputs: said.extend(outputs))
    refuse_one_of_each(api)
    assert (heard, len([one for one in said if hasattr(one, "reason")])) == ([], 3)


def test_the_first_interface_has_one_method_for_all() -> None:
    api, heard = first_scheduler(ResourceManagerCallback())
    info = first.NewNodeInfo(node_id="n1", schedulable_resource={"vcore": -1})
    wanted = first.AllocationAsk(allocation_key="k", application_id="x", resource_ask={"vcore": 1}, max_allocations=1)
    application = first.AddApplicationRequest(application_id="y")
    request = first.UpdateRequest(
        rm_id="rm", new_schedulable_nodes=[info], asks=[wanted], new_applications=[application]
    )
    api.update(request)
    assert {one.callback for one in heard} == {"recv_update_response"}
    assert sorted(type(one.refusal).__name__ for one in heard) == [
        "RejectedAllocationAsk", "RejectedApplication", "RejectedNode",
    ]  # fmt: skip


def test_meaningless_releases_on_the_wire_are_reported() -> None:
    api, heard = first_scheduler()
    api.update(NOTHING)
    (said,) = heard
    assert said.kind == "ignored"
    assert "must name an application, or what is to be released" in said.text


def test_a_host_that_translates_requests_itself_receives_no_incident() -> None:
    api, heard = first_scheduler()
    translation = adapt_first.inputs_from_update_request(NOTHING)
    assert len(translation.ignored) == 1
    api.take("rm", translation)
    assert heard == []


def test_an_unknown_policy_group_of_1_9_is_reported() -> None:
    api, heard = scheduler(None, policy_groups={"queues": (config("b"), {})})
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="other", policy_group="queus"))
    assert [(one.kind, one.rm_id, one.text) for one in heard] == [
        ("ignored", "other", "policyGroup: 'queus': unknown; the built-in configuration counts")
    ]


# -- errors of callbacks -------------------------------------------------------------------------------------


class Typo(ResourceManagerCallback):
    def __init__(self) -> None:
        self.placed: list[str] = []

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        for new in response.new:
            self.placed.append(new.key)  # type: ignore[attr-defined]


def test_an_error_of_a_callback_reaches_the_handler_with_its_traceback() -> None:
    api, heard = scheduler(Typo())
    node(api)
    apps(api, "x")
    ask(api, "k")
    assert api.schedule() == 1
    (said,) = heard
    assert (said.kind, said.rm_id, said.callback) == ("callback error", "rm", "update_allocation")
    assert isinstance(said.error, AttributeError) and said.error.__traceback__ is not None
    assert api.callback_errors == ["AttributeError: 'Allocation' object has no attribute 'key'"]


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_a_text_changes_nothing() -> None:
    class Manager(Listener):
        def update_node(self, response: v19.NodeResponse) -> None:
            raise UnspeakableError

    api, heard = scheduler(Manager())
    node(api)
    assert api.callback_errors == ["UnspeakableError"]
    assert [one.text for one in heard] == ["update_node raised UnspeakableError"]


def test_a_handler_that_fails_changes_nothing_either() -> None:
    def fail(incident: Incident) -> None:
        api.schedule()  # refused: the call that tells is under way

    api = SchedulerAPI(on_incident=fail)
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=config("a")))
    node(api, vcore=-1)
    node(api)
    assert list(api.cluster.partition("rm").nodes) == ["n1"]
    (kept,) = api.callback_errors
    assert kept.startswith("RuntimeError: SchedulerAPI was called from within a callback")


def test_at_most_a_hundred_errors_are_kept() -> None:
    api, heard = scheduler(Typo())
    apps(api, "x")
    node(api, vcore=1000)
    for number in range(105):
        ask(api, f"k{number}")
        api.schedule()
    assert (len(api.callback_errors), len(heard)) == (100, 105)


# -- the default ------------------------------------------------------------------------------------------------


def test_without_a_handler_incidents_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    api = v19_api(Typo())
    with caplog.at_level(logging.WARNING, logger="licorne"):
        node(api)
        apps(api, "x")
        ask(api, "bad", vcore=0)  # `update_allocation` is overridden, and takes it
        node(api)
        ask(api, "k")
        api.schedule()
    refused, raised = caplog.records
    assert (refused.name, refused.levelname) == ("licorne", "WARNING")
    assert refused.getMessage().startswith(
        "resource manager 'rm': node 'n1' was refused: failure while adding new node"
    )
    assert (raised.name, raised.levelname) == ("licorne", "ERROR")
    assert raised.exc_info is not None and raised.exc_info[0] is AttributeError


PROGRAM = """
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.si import v19
scheduler = SchedulerAPI()
scheduler.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), ResourceManagerCallback())
node = v19.NodeInfo(node_id="n1", schedulable_resource={"vcore": 1})
scheduler.update_node(v19.NodeRequest(rm_id="rm", nodes=[node]))
"""


def test_a_program_that_configures_no_logging_sees_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stderr == (
        "resource manager 'rm': node 'n1' was refused: invalid nodes[0].action 0: must say what is to be done with the node\n"
    )
