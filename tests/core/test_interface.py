"""The life of a resource manager, and its configuration.

Source: docs/spec/scheduler-interface.md, section 6; docs/spec/config.md, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.bench import Bench, cluster, config, partition, partitions
from licorne import ConfigurationError, NotRegisteredError, RegistrationError, SchedulerAPI
from licorne.si import first, v19
from licorne.si.messages import AddApplication, Allocation, Input, NodeAction

BROKEN = "partitions: [{name: default}]\n"


def api(**groups: str) -> SchedulerAPI:
    return SchedulerAPI(policy_groups={name: (text, {}) for name, text in groups.items()})


def register(made: SchedulerAPI, rm_id: str = "rm", *, text: str = "", **extra: str) -> None:
    request = v19.RegisterResourceManagerRequest(rm_id=rm_id, config=text or config("a"), extra_config=extra)
    made.register_resource_manager(request)


def add(made: SchedulerAPI, rm_id: str, *inputs: Input) -> None:
    made.submit(rm_id, inputs)
    made.validate()


# -- registration --------------------------------------------------------------------------------------------

REFUSED = [
    ({"rm_id": ""}, "registration of RM failed: rmID: must not be empty"),
    ({"config": BROKEN}, "registration of RM failed: <config>:1:"),
    ({"config": "]"}, "registration of RM failed: <config>:1:1"),
    ({"extra_config": {"priority.class.high": "x"}}, "registration of RM failed: priority.class.high: 'x': must be"),
    ({"extra_config": {"reservation.delay": "soon"}}, "registration of RM failed: reservation.delay: 'soon': must be"),
    (
        {"extra_config": {"scheduler.parking": "maybe"}},
        "registration of RM failed: scheduler.parking: 'maybe': must be",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_a_refused_registration_changes_nothing(fields: dict[str, object], reason: str) -> None:
    made = api()
    register(made)
    add(made, "rm", AddApplication(application_id="x", queue="root.a", user="u"))
    fields = {"rm_id": "rm", "config": config("b"), **fields}
    with pytest.raises(RegistrationError) as error:
        made.register_resource_manager(v19.RegisterResourceManagerRequest(**fields))  # type: ignore[arg-type]
    assert str(error.value).startswith(reason)
    assert list(made.cluster.partition("rm").applications) == ["x"]
    assert made.cluster.partition("rm").tree.find("root.a") is not None


def test_without_a_configuration_the_built_in_one_counts() -> None:
    made = api()
    made.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"))
    add(made, "rm", AddApplication(application_id="x", user="u", tags={"namespace": "dev"}))
    assert made.cluster.partition("rm").applications["x"].queue.path == "root.dev"


@pytest.mark.parametrize("first_interface", [False, True])
def test_the_same_id_again_forgets_everything(first_interface: bool) -> None:
    b = cluster(config("a"), 10, apps="x", first_interface=first_interface)
    b.ask("x", "runs", vcore=6)
    b.run()
    b.ask("x", "waits", vcore=6, age_s=10)
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=20)
    b.run()
    old = b.partition
    b.register()
    assert b.partition is not old
    assert (b.run(after=1000), b.partition.nodes, b.states(), b.queues()) == ("", {}, "", ["root", "root.a"])
    assert b.api.next_deadline_ns() is None
    assert b.app("x") == ["accepted x"]  # it reports anew
    assert b.node("n1", vcore=10) == ["accepted n1"]
    b.ask("x", "runs", node="n1", vcore=6)
    b.ask("x", "waits", vcore=4)
    assert b.run() == "waits@n1"


def test_another_configuration_and_dialect_can_come_with_it() -> None:
    made = api(group=config("b"))
    register(made)
    made.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"))
    assert [getattr(queue, "path", "") for queue in made.cluster.partition("rm").tree.queues()] == ["root", "root.b"]
    made.update(first.UpdateRequest(rm_id="rm"))
    with pytest.raises(NotRegisteredError, match="registered in the other dialect"):
        made.update_node(v19.NodeRequest(rm_id="rm"))


def test_several_resource_managers_share_nothing() -> None:
    """The original refuses a second one."""
    made = api()
    for rm_id in ("one", "two"):
        register(made, rm_id)
        add(made, rm_id, AddApplication(application_id="x", queue="root.a", user=rm_id))
    made.stop("one")
    made.stop("one")
    assert made.cluster.partition("two").applications["x"].user == "two"
    with pytest.raises(NotRegisteredError):
        made.submit("one", [])
    with pytest.raises(KeyError):
        made.cluster.partition("one")


# -- requests of one that is not registered --------------------------------------------------------------------

REQUESTS = [
    ("update_application", v19.ApplicationRequest(rm_id="x"), "received ApplicationRequest"),
    ("update_allocation", v19.AllocationRequest(rm_id="x"), "received AllocationRequest"),
    ("update_node", v19.NodeRequest(rm_id="x"), "received NodeRequest"),
    ("update", first.UpdateRequest(rm_id="x"), "received UpdateRequest"),
]


@pytest.mark.parametrize(("method", "request_", "text"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_requests_of_an_unregistered_resource_manager(method: str, request_: object, text: str) -> None:
    with pytest.raises(NotRegisteredError) as error:
        getattr(api(), method)(request_)
    assert str(error.value) == f'{text}, but RmID="x" not registered'


# -- policy groups -----------------------------------------------------------------------------------------------


def test_a_registration_in_the_first_interface_names_its_policy_group() -> None:
    made = api(one=config("a"), two=config("b"))
    for rm_id, group in (("r1", "one"), ("r2", "two"), ("r3", "one")):
        made.register_resource_manager(first.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=group))
    leaves = {rm_id: made.cluster.partition(rm_id).tree.queues()[1] for rm_id in ("r1", "r2", "r3")}
    assert [leaf.path for leaf in leaves.values()] == ["root.a", "root.b", "root.a"]
    assert leaves["r1"] is not leaves["r3"]  # the text is shared, never the queues


def test_an_unknown_policy_group_is_refused_in_the_first_interface() -> None:
    made = api(one=config("a"))
    with pytest.raises(RegistrationError, match="policyGroup: 'three': unknown, there are: one"):
        made.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="three"))


def test_a_reload_reads_the_policy_group_again() -> None:
    b = Bench(config("a"), first_interface=True)
    b.reload(config("a", "b"))
    assert b.queues() == ["root", "root.a", "root.b"]
    with pytest.raises(ConfigurationError, match="update of configuration failed: <config>:1:"):
        b.reload(BROKEN)
    assert b.queues() == ["root", "root.a", "root.b"]
    with pytest.raises(ConfigurationError, match="RM other is not registered"):
        b.api.reload_configuration("other")


# -- update of the configuration (1.9) ------------------------------------------------------------------------------


def update(b: Bench, text: str, **extra: str) -> list[str]:
    start = len(b.said)
    request = v19.UpdateConfigurationRequest(rm_id="rm", config=text, extra_config=extra)
    b.api.update_configuration(request)
    b.api.validate()
    return b.said[start:]


def test_a_refused_configuration_keeps_the_old_one() -> None:
    b = Bench(config("a"))
    for text in (BROKEN, "]", partitions(partition("default", "x"), partition("default", "x"))):
        with pytest.raises(ConfigurationError, match=r"^update of configuration failed: "):
            update(b, text)
    assert b.queues() == ["root", "root.a"]
    with pytest.raises(ConfigurationError, match="RM other has no active partitions, make sure it is registered"):
        b.api.update_configuration(v19.UpdateConfigurationRequest(rm_id="other"))


def test_the_same_content_is_no_work() -> None:
    b = Bench(config("a"))
    made = b.partition.config
    update(b, config("a"))
    assert b.partition.config is made


def test_an_empty_configuration_is_the_built_in_one() -> None:
    b = Bench(config("a"))
    update(b, "")
    b.run(after=10)
    assert b.queues() == ["root"]


def test_placement_rules_that_cannot_be_used_keep_the_old_configuration() -> None:
    b = Bench(config("a"))
    rules = "placementrules: [{name: fixed, value: root.a}, {name: fixed, value: 'root.a', create: true, parent: {name: tag}}]"
    with pytest.raises(ConfigurationError):
        update(b, config("a", "b", more=rules))
    assert b.queues() == ["root", "root.a"]
    assert b.app("x") == ["accepted x"]


def test_a_partition_that_is_gone_fails_its_applications() -> None:
    b = Bench(partitions(partition("default", "a"), partition("gpu", "a")))
    b.node("g1", partition="gpu", vcore=10)
    b.app("x", partition="gpu")
    b.ask("x", "k1", partition="gpu", vcore=6)
    b.ask("x", "k2", partition="gpu", vcore=6)
    b.run()
    found = update(b, config("a"))
    assert found == ["x Failing: PartitionRemoved", "released k1 STOPPED_BY_RM: Partition gpu Removed"]
    assert list(b.api.cluster.managers["rm"].partitions) == ["default"]
    assert b.node("g2", partition="gpu", vcore=1) == ["rejected g2: failed to find partition [rm]gpu for new node g2"]
    assert b.app("x", partition="gpu") == [
        "rejected x: Failed to add application x to partition [rm]gpu, partition doesn't exist"
    ]
    update(b, partitions(partition("default", "a"), partition("gpu", "a")))  # it comes back, and is empty
    assert (b.node("g1", partition="gpu", vcore=1), b.app("x", partition="gpu")) == (["accepted g1"], ["accepted x"])


def test_a_qualified_name_is_the_same_partition() -> None:
    b = Bench(partitions(partition("default", "a"), partition("'[rm]default'", "a", "b")))
    assert b.queues() == ["root", "root.a", "root.b"]


def test_a_raised_quota_wakes_asks_that_wait() -> None:
    b = cluster(config("a resources: {max: {vcore: 5m}}"), 10, apps="x")
    b.ask("x", "k", vcore=6)
    assert b.run() == ""
    update(b, config("a resources: {max: {vcore: 6m}}"))
    assert b.run() == "k@n1"
    update(b, config("a resources: {max: {vcore: 3m}}"))  # below what is used: nothing is taken away
    b.ask("x", "k2", vcore=1)
    assert (b.run(), b.allocated("root.a")) == ("", {"vcore": 6})


def test_node_order_follows_a_reload() -> None:
    b = Bench(config("a"))
    for node in ("n1", "n2"):
        b.node(node, vcore=10)
    b.app("x")
    b.ask("x", "k0", node="n1", vcore=5)
    update(b, config("a", more="nodesortpolicy: {type: binpacking}"))
    b.ask("x", "k1", vcore=1)
    assert b.run() == "k1@n1"


@pytest.mark.parametrize("first_interface", [False, True])
def test_a_draining_queue_that_is_configured_again_is_active_in_both_interfaces(first_interface: bool) -> None:
    """Difference 118: by the text of the first interface it stays Draining and takes no application again."""
    b = cluster(config("a", "b"), apps="x", first_interface=first_interface)
    b.reload(config("b"))
    assert b.app("y")[0].startswith("rejected y: ")
    b.reload(config("a", "b"))
    queue = b.partition.tree.find("root.a")
    assert queue is not None
    assert (str(queue.state), b.app("y")) == ("Active", ["accepted y"])


def test_requests_of_all_kinds_are_handled_in_the_order_of_the_calls() -> None:
    """Difference 8: in the original nodes, applications and configurations wait in queues without an order between."""
    b = Bench(config("a"))
    no_node = ["rejected k of x: failed to find node n1"]
    assert b.app("x") == ["accepted x"]
    assert b.ask("x", "k", node="n1", vcore=1) == no_node
    assert b.node("n1", vcore=1) == ["accepted n1"]
    assert b.ask("x", "k", node="n1", vcore=1) != no_node
    assert b.app("y", "root.b")[0].startswith("rejected y: ")
    b.reload(config("a", "b"))
    assert b.app("y", "root.b") == ["accepted y"]
    b.node("n1", NodeAction.DECOMISSION)
    assert b.ask("x", "k2", node="n1", vcore=1) == ["rejected k2 of x: failed to find node n1"]


def test_one_partition_after_the_other_is_decided_in_the_order_of_their_names() -> None:
    """Difference 9: the original makes one decision for each partition in turn, so that they alternate."""
    b = Bench(partitions(partition("gpu", "a"), partition("default", "a")))
    for name in ("gpu", "default"):
        b.node(f"n-{name}", partition=name, vcore=10)
        b.app(f"x-{name}", partition=name)
        for number in (1, 2):
            b.ask(f"x-{name}", f"{name}{number}", partition=name, vcore=1)
    assert b.run() == "default1@n-default default2@n-default gpu1@n-gpu gpu2@n-gpu"


# -- settings --------------------------------------------------------------------------------------------------------------


def ask_of_class(b: Bench, key: str, name: str) -> Sequence[str]:
    return b.send(Allocation(key=key, application_id="x", resource={"vcore": 1}, priority_class=name))


def test_priority_classes_follow_an_update_of_the_configuration() -> None:
    b = cluster(config("a"), apps="x", priority_class_high="100")
    assert ask_of_class(b, "k1", "high") == ["x Accepted: runApplication"]
    assert b.application("x").asks["k1"].priority == 100
    update(b, config("a"), **{"priority.class.low": "-7"})  # the host's own settings stay, this is added
    assert ask_of_class(b, "k2", "low") == []
    assert b.application("x").asks["k2"].priority == -7
    update(b, config("a", "b"))  # none given: those of before stay
    assert ask_of_class(b, "k3", "low") == []
    with pytest.raises(ConfigurationError, match=r"priority\.class\.low: '-': must be an integer of 32 bits"):
        update(b, config("a"), **{"priority.class.low": "-"})
    assert b.queues() == ["root", "root.a", "root.b"]
    update(b, config("a", "b"), **{"priority.class.high": "5"})
    assert ask_of_class(b, "k4", "low") == ["rejected k4 of x: priorityClassName: 'low': no such priority class is set"]
    assert b.application("x").asks["k1"].priority == 100  # existing asks keep their priority


# -- independent asks (first interface) ------------------------------------------------------------------------------------


def independent() -> Bench:
    return cluster(config("a", more="placementrules: [{name: fixed, value: root.a}]"), 10, first_interface=True)


def test_an_independent_ask_is_an_application_of_its_own() -> None:
    b = independent()
    assert b.ask("", "k", times=2, vcore=4) == []  # accepting an ask is not confirmed
    app = b.application("k")
    assert (app.user, app.groups, app.queue.path) == ("nobody", ("nogroup",), "root.a")
    assert b.hear() == ["new k@n1", "new k@n1"]
    for uuid in b.uuids():
        assert b.release("k", uuid)[0].startswith("released k STOPPED_BY_RM")
    assert (b.states(), b.allocated("root"), b.api.next_deadline_ns()) == ("", {}, None)
    assert b.ask("", "k", vcore=1) == []


def test_an_independent_ask_that_is_released_leaves_nothing() -> None:
    b = independent()
    b.ask("", "k", vcore=11)
    b.run(after=1)
    b.release("", "k", what="ask")
    assert (b.states(), b.pending()) == ("", {})


def test_a_refused_independent_ask_leaves_nothing() -> None:
    b = independent()
    assert b.ask("", "k", node="n9", vcore=1) == ["rejected k of k: failed to find node n9"]
    assert b.states() == ""


def test_an_independent_ask_that_no_rule_places_is_refused() -> None:
    b = Bench(config("a"), first_interface=True)
    reason = "failed to place application k: application rejected: no placement rule matched"
    assert b.ask("", "k", vcore=1) == [f"rejected k of k: {reason}"]


def test_an_independent_ask_and_an_application_do_not_share_an_id() -> None:
    b = independent()
    b.app("x")
    assert b.ask("", "x", vcore=1) == ["rejected x of x: allocationKey: 'x': an application has this ID"]
