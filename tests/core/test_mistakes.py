"""A mistake of the program that embeds the scheduler raises at once, with the field and the value, and changes nothing."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from core.bench import config
from core.listener import Listener, apps, ask, node, releases, v19_api
from licorne import (
    ConfigurationError,
    NotRegisteredError,
    RegistrationError,
    RequestError,
    ResourceManagerCallback,
    SchedulerAPI,
    SettingsError,
)
from licorne.core.base.setting_table import SETTINGS
from licorne.core.checkpoint.columns import CheckpointError
from licorne.si import WireError, first, v19, wire
from licorne.si._schema import Message, fields
from licorne.si.messages import AddApplication, Allocation

CREATE = v19.ActionFromRM.CREATE


def nodes(value: Any) -> v19.NodeRequest:
    return v19.NodeRequest(rm_id="rm", nodes=value)


def node_of(**fields: Any) -> v19.NodeInfo:
    return v19.NodeInfo(**{"node_id": "n9", "action": CREATE, "schedulable_resource": {"vcore": 1}, **fields})


def asks(*values: Any) -> v19.AllocationRequest:
    return v19.AllocationRequest(rm_id="rm", allocations=list(values))


def ask_of(**fields: Any) -> v19.Allocation:
    return v19.Allocation(
        **{"allocation_key": "k", "application_id": "x", "resource_per_alloc": {"vcore": 1}, **fields}
    )


REQUESTS: dict[str, tuple[str, Any, str]] = {
    "another kind": ("update_node", v19.ApplicationRequest(rm_id="rm"), "invalid message ApplicationRequest"),
    "the other dialect": ("update_node", first.UpdateRequest(rm_id="rm"), "must be a NodeRequest"),
    "a class": ("update_node", v19.NodeRequest, "invalid message NodeRequest: must be a NodeRequest, not the class"),
    "a dict": ("update_allocation", {"allocations": []}, "invalid message {'allocations': []}: must be a Allo"),
    "nothing": ("update_application", None, "invalid message None: must be a ApplicationRequest"),
    "bytes of a kind": ("update_application", bytearray(), r"invalid message bytearray(b''): must be"),
    "rm_id": ("update_node", v19.NodeRequest(rm_id=5), "invalid rmID 5: must be a string"),  # type: ignore[arg-type]
    "no list": ("update_node", nodes(node_of()), "invalid nodes NodeInfo(node_id='n9'"),
    "a class in a list": ("update_node", nodes([v19.NodeInfo]), "invalid nodes[0] <class 'licorne.si.v19.NodeInfo'>: must be"),
    "a node that is a dict": ("update_node", nodes([{}]), "invalid nodes[0] {}: must be NodeInfo"),
    "a number for an action": ("update_node", nodes([node_of(action=99)]), "invalid nodes[0].action 99: must be one of"),
    "half an amount": (
        "update_node",
        nodes([node_of(node_id="n8"), node_of(schedulable_resource={"vcore": 4.5})]),
        "invalid nodes[1].schedulableResource['vcore'] 4.5: must be an integer",
    ),
    "half an amount of an ask": (
        "update_allocation",
        asks(ask_of(), ask_of(resource_per_alloc={"vcore": 1.5})),
        "invalid allocations[1].resourcePerAlloc['vcore'] 1.5: must be an integer; nothing of the request was taken in",
    ),
    "two of them": (
        "update_allocation",
        asks(ask_of(priority="1"), ask_of(placeholder=1)),
        "invalid allocations[0].priority '1': must be an integer (and 1 more such values)",
    ),
    "a key that is none": ("update_allocation", asks(ask_of(allocation_key=None)), "allocations[0].allocationKey None"),
    "asks that are none": (
        "update_allocation",
        v19.AllocationRequest(rm_id="rm", allocations=ask_of()),  # type: ignore[arg-type]
        "invalid allocations Allocation(",
    ),
    "a release": (
        "update_allocation",
        releases(v19.AllocationRelease(application_id="x", allocation_key=7)),  # type: ignore[arg-type]
        "invalid releases.allocationsToRelease[0].allocationKey 7: must be a string",
    ),
    "releases that are none": (
        "update_allocation",
        v19.AllocationRequest(rm_id="rm", releases=v19.AllocationRelease()),  # type: ignore[arg-type]
        "invalid releases.allocationsToRelease AllocationRelease(",
    ),
    "a removal": (
        "update_application",
        v19.ApplicationRequest(rm_id="rm", remove=["x"]),  # type: ignore[list-item]
        "invalid remove[0] 'x': must be RemoveApplicationRequest",
    ),
    "a configuration": ("update_configuration", {"config": ""}, "invalid message {'config': ''}: must be a UpdateConf"),
    "a text that is none": (
        "update_configuration",
        v19.UpdateConfigurationRequest(rm_id="rm", config=5),  # type: ignore[arg-type]
        "invalid config 5: must be a string",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_not_what_is_declared_raises_and_changes_nothing(name: str) -> None:
    method, request_, text = REQUESTS[name]
    rm = Listener()
    api = v19_api(rm)
    node(api)
    apps(api, "x")
    ask(api, "present", vcore=11)
    rm.take()
    before = api.state_dump()
    with pytest.raises(RequestError, match=re.escape(text)):
        getattr(api, method)(request_)
    assert (api.state_dump(), rm.take(), api.callback_errors) == (before, [], [])


def test_the_first_interface_is_looked_at_as_well() -> None:
    api = SchedulerAPI()
    api.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm"))
    wrong: dict[str, Any] = {
        "asks[0].resourceAsk['vcore'] 0.5": {"asks": [first.AllocationAsk(resource_ask={"vcore": 0.5})]},  # type: ignore[dict-item]
        "newSchedulableNodes NewNodeInfo(": {"new_schedulable_nodes": first.NewNodeInfo()},
        "releases AllocationRelease(": {"releases": first.AllocationRelease()},
    }
    for text, values in wrong.items():
        with pytest.raises(RequestError, match=re.escape(text)):
            api.update(first.UpdateRequest(rm_id="rm", **values))
    with pytest.raises(RequestError, match="must be a UpdateRequest"):
        api.update(v19.NodeRequest(rm_id="rm"))  # type: ignore[arg-type]


def test_a_meaningless_value_of_the_right_type_is_refused_in_an_answer() -> None:
    """Of the right type, so that a peer could send it: an answer, and no exception."""
    rm = Listener()
    api = v19_api(rm)
    api.update_node(nodes([node_of(action=v19.ActionFromRM.UNKNOWN_ACTION_FROM_RM), node_of(node_id="n1")]))
    ((_, response),) = rm.take()
    assert [one.node_id for one in response.rejected] == ["n9"] and [one.node_id for one in response.accepted] == ["n1"]
    apps(api, "x")
    ask(api, "k", vcore=-1)
    assert rm.take()[-1][1].rejected_allocations[0].reason == "allocation contains negative resources"
    api.update_node(wire.encode(nodes([node_of(action=99)])))  # the same from the wire
    assert rm.take()[-1][1].rejected[0].reason.startswith("invalid nodes[0].action 99: must be one of")


# -- registration ---------------------------------------------------------------------------------------------


class Manager(ResourceManagerCallback):
    """A class, given in place of an object."""


class Duck:
    """No subclass, but with a method of a callback."""

    def update_node(self, response: v19.NodeResponse) -> None:
        self.heard = response


@pytest.mark.parametrize(
    ("callback", "text"),
    [
        (Manager, "invalid callback Manager: is a class; give an object of it: Manager()"),
        (print, "invalid callback <built-in function print>: has none of the methods of ResourceManagerCallback"),
        (5, "invalid callback 5: has none"),
    ],
)
def test_a_callback_that_is_none_is_refused(callback: Any, text: str) -> None:
    api = SchedulerAPI()
    with pytest.raises(RequestError) as error:
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), callback)
    assert str(error.value).startswith(text)
    assert api.cluster.managers == {}


def test_any_object_with_a_method_of_a_callback_is_one() -> None:
    duck: Any = Duck()
    api = v19_api(duck)
    node(api)
    assert [one.node_id for one in duck.heard.accepted] == ["n1"]
    assert api.callback_errors == []


@pytest.mark.parametrize(
    "request_", [{"rm_id": "rm"}, v19.RegisterResourceManagerRequest, v19.NodeRequest(rm_id="rm"), "rm"]
)
def test_a_registration_that_is_none_is_refused(request_: Any) -> None:
    with pytest.raises(RequestError, match="must be a RegisterResourceManagerRequest"):
        SchedulerAPI().register_resource_manager(request_)


@pytest.mark.parametrize(("field", "value"), [("rm_id", 5), ("config", None), ("extra_config", {"a": 1})])
def test_fields_of_a_registration_are_looked_at(field: str, value: Any) -> None:
    request_ = v19.RegisterResourceManagerRequest(**{"rm_id": "rm", field: value})
    with pytest.raises(RequestError, match="invalid "):
        SchedulerAPI().register_resource_manager(request_)


# -- settings --------------------------------------------------------------------------------------------------

SETTING_SLIPS: list[tuple[Any, str]] = [
    ({"reservation.dealy": "5s"}, "'reservation.dealy': no such setting; did you mean reservation.delay?"),
    ({"foo": "bar"}, "'foo': no such setting; docs/reference/settings.md lists all"),
    ({"event.ringbufferCapacity": "1"}, "write event.ringBufferCapacity"),
    ({"licorne.rm-timeout": "1"}, "'licorne.rm-timeout': is a setting of `licorne serve`, not of the scheduler"),
    ({"reservation.delay": 2}, "reservation.delay: 2: must be a text, such as '2s'"),
    ({"scheduler.parking": False}, "scheduler.parking: False: must be a text, such as 'true'"),
    ({5: "x"}, "5: 'x': must be a text"),
    ([("reservation.delay", "2s")], "settings: [('reservation.delay', '2s')]: must be a map"),
]


@pytest.mark.parametrize(("settings", "text"), SETTING_SLIPS)
def test_a_setting_that_is_none_is_refused_wherever_it_comes_from(settings: Any, text: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(text)):
        SchedulerAPI(settings=settings)
    if not isinstance(settings, dict):
        return
    grouped = SchedulerAPI(policy_groups={"group": (config("a"), settings)})
    with pytest.raises(RegistrationError, match=re.escape(text)):
        grouped.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"))
    api = SchedulerAPI()
    api.settings.update(settings)
    with pytest.raises(RegistrationError, match=re.escape(text)):
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"))


def test_settings_that_the_original_knows_are_taken() -> None:
    texts = {one.key.replace("<logger>", "core.x").replace("<name>", "high").replace("<policyGroup>", "queues"): "1"
             for one in SETTINGS if not one.scheduler}  # fmt: skip
    assert {"service.clusterId", "admissionController.accessControl.externalUsers", "queues.yaml"} <= texts.keys()
    assert SchedulerAPI(settings=texts).settings == texts


def test_a_host_may_skip_unknown_settings() -> None:
    """As `licorne serve`: a resource manager may be newer than the scheduler."""
    heard: list[Any] = []
    api = SchedulerAPI(other_settings=True, on_incident=heard.append)
    extra = {"service.newInRelease2": "x", "reservation.delay": "1s"}
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", extra_config=extra))
    assert [(one.kind, one.rm_id) for one in heard] == [("ignored", "rm")]
    assert "'service.newInRelease2': no such setting" in heard[0].text


# -- other arguments ---------------------------------------------------------------------------------------------

CALLS: list[tuple[Callable[[SchedulerAPI], object], str]] = [
    (lambda api: api.schedule(now_ns=1.5), "invalid now_ns 1.5: must be a whole number of nanoseconds, 0 or more"),  # type: ignore[arg-type]
    (lambda api: api.schedule(now_ns=-5), "invalid now_ns -5: must be"),
    (lambda api: api.schedule(now_ns=True), "invalid now_ns True: must be"),
    (lambda api: api.schedule(now_ns="5"), "invalid now_ns '5': must be"),  # type: ignore[arg-type]
    (lambda api: api.schedule(now_ns=1 << 62), f"now_ns: {1 << 62}: no time is later"),
    (lambda api: api.update_node(nodes([]), now_ns=0.5), "invalid now_ns 0.5: must be"),  # type: ignore[arg-type]
    (lambda api: api.schedule(limit=-1), "invalid limit -1: must be a whole number, 0 or more, or None"),
    (lambda api: api.schedule(limit=1.5), "invalid limit 1.5: must be"),  # type: ignore[arg-type]
    (lambda api: api.submit("rm", [AddApplication]), "invalid inputs[0] the class AddApplication: must be one of"),  # type: ignore[list-item]
    (lambda api: api.submit("rm", [3]), "invalid inputs[0] 3: must be one of Allocation"),  # type: ignore[list-item]
    (lambda api: api.stop(5), "invalid rm_id 5: must be a string"),  # type: ignore[arg-type]
    (lambda api: api.pause(None), "invalid rm_id None: must be a string"),  # type: ignore[arg-type]
    (lambda api: api.reload_configuration(5), "invalid rm_id 5: must be"),  # type: ignore[arg-type]
    (lambda api: api.change_configuration("rm", b""), "invalid text b'': must be a string"),  # type: ignore[arg-type]
    (lambda _: SchedulerAPI(clock=5), "invalid clock 5: must be something that can be called"),  # type: ignore[arg-type]
    (lambda _: SchedulerAPI(clock=lambda: 1.5).schedule(), "invalid what clock returned 1.5: must be"),  # type: ignore[arg-type, return-value]
    (lambda _: SchedulerAPI(on_incident="x"), "invalid on_incident 'x'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "text"), CALLS, ids=[text for _, text in CALLS])
def test_arguments_that_make_no_sense(call: Callable[[SchedulerAPI], object], text: str) -> None:
    api = v19_api(None)
    with pytest.raises(RequestError) as error:
        call(api)
    assert str(error.value).startswith(text)
    assert api.cluster.now == 0
    api.validate()


def test_internal_messages_before_a_wrong_one_are_taken_in() -> None:
    api = v19_api(None)
    inputs: list[Any] = [AddApplication(application_id="x", queue="root.a", user="u"), "?", Allocation(key="k")]
    with pytest.raises(RequestError, match=r"invalid inputs\[1\] '\?'"):
        api.submit("rm", inputs)
    assert list(api.cluster.partition("rm").applications) == ["x"]
    api.validate()


def test_a_partition_is_asked_for_by_its_resource_manager() -> None:
    api = v19_api(None)
    with pytest.raises(KeyError, match="rm_id: 'default': no such resource manager is registered; registered: rm"):
        api.cluster.partition("default")
    with pytest.raises(KeyError, match="name: 'gpu': no such partition of 'rm'; there are: default"):
        api.cluster.partition("rm", "gpu")
    with pytest.raises(KeyError, match="registered: none"):
        SchedulerAPI().cluster.partition("rm")


# -- laws: whatever is handed in --------------------------------------------------------------------------------


JUNK: list[Any] = [
    None,
    True,
    5,
    -1,
    1.5,
    "x",
    b"x",
    [],
    {},
    (),
    [None],
    {"a": 1},
    object(),
    object,
    print,
    v19.NodeRequest,
]
TOLD = (RequestError, RegistrationError, ConfigurationError, NotRegisteredError, WireError, CheckpointError)
ARGUMENTS = {
    "register_resource_manager": ("request", "callback", "now_ns"),
    "update_configuration": ("request", "now_ns"),
    "reload_configuration": ("rm_id", "now_ns"),
    "change_configuration": ("rm_id", "text", "now_ns"),
    "extra_config": ("rm_id",),
    "stop": ("rm_id", "now_ns"),
    "pause": ("rm_id",),
    "ages": ("rm_id",),
    "restore_ages": ("rm_id", "ages", "now_ns"),
    "update": ("request", "now_ns"),
    "update_application": ("request", "now_ns"),
    "update_allocation": ("request", "now_ns"),
    "update_node": ("request", "now_ns"),
    "schedule": ("now_ns", "limit"),
    "restore_checkpoint": ("data", "callbacks"),
}
NO_ARGUMENTS = {"checkpoint", "diagnostics", "next_deadline_ns", "state_dump", "validate"}
FOR_HOSTS = {"submit", "take"}
"""They take internal messages, made by a host that looks at them itself."""


def test_the_table_has_all_calls() -> None:
    calls = {name for name in dir(SchedulerAPI) if not name.startswith("_") and callable(getattr(SchedulerAPI, name))}
    assert calls == ARGUMENTS.keys() | NO_ARGUMENTS | FOR_HOSTS


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_object_of_the_caller_is_kept_inside(name: str) -> None:
    """Junk in each argument of each call: an error that tells of it, or no effect; never one from within."""
    good: dict[str, Any] = {"rm_id": "rm", "ages": {}, "text": config("a"), "request": v19.NodeRequest(rm_id="rm")}
    good["data"] = SchedulerAPI().checkpoint()
    for wrong in ARGUMENTS[name]:
        for junk in JUNK:
            api = SchedulerAPI() if name == "restore_checkpoint" else v19_api(None)
            given = {one: good[one] for one in ARGUMENTS[name] if one in good}
            with contextlib.suppress(*TOLD):
                getattr(api, name)(**{**given, wrong: junk})
            api.validate()


MESSAGES: list[tuple[str, Callable[[Any], Any], type[Message]]] = [
    ("update_node", lambda item: v19.NodeRequest(rm_id="rm", nodes=[item]), v19.NodeInfo),
    ("update_application", lambda item: v19.ApplicationRequest(rm_id="rm", new=[item]), v19.AddApplicationRequest),
    ("update_application", lambda item: v19.ApplicationRequest(rm_id="rm", remove=[item]), v19.RemoveApplicationRequest),
    ("update_allocation", asks, v19.Allocation),
    ("update_allocation", releases, v19.AllocationRelease),
    ("update", lambda item: first.UpdateRequest(rm_id="rm", asks=[item]), first.AllocationAsk),
    ("update", lambda item: first.UpdateRequest(rm_id="rm", new_schedulable_nodes=[item]), first.NewNodeInfo),
    ("update", lambda item: first.UpdateRequest(rm_id="rm", updated_nodes=[item]), first.UpdateNodeInfo),
    ("update", lambda item: first.UpdateRequest(rm_id="rm", new_applications=[item]), first.AddApplicationRequest),
    ("update", lambda item: first.UpdateRequest(rm_id="rm", remove_applications=[item]), first.RemoveApplicationRequest),
]  # fmt: skip


@pytest.mark.parametrize(("method", "request_of", "message"), MESSAGES)
def test_a_wrong_value_in_any_field_raises(
    method: str, request_of: Callable[[Any], Any], message: type[Message]
) -> None:
    api = SchedulerAPI()
    kind = first if method == "update" else v19
    api.register_resource_manager(kind.RegisterResourceManagerRequest(rm_id="rm"))
    before = api.state_dump()
    for field in fields(message):
        for junk in (object(), 0.5, object):
            with pytest.raises(RequestError, match=rf"{field.name}(\[0\])? .*: must be"):
                getattr(api, method)(request_of(message(**{field.attribute: [junk] if field.repeated else junk})))
    with pytest.raises(RequestError):
        getattr(api, method)(request_of(message))  # the class
    assert api.state_dump() == before
