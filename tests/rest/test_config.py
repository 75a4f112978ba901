"""The running configuration, the check of another one, and the change to it."""

from __future__ import annotations

import msgspec
import pytest

from licorne.config import load
from rest.world import CONFIG, World, busy

JSON = {"accept": "application/json"}
SMALL = """\
partitions:
  - name: DEFAULT
    limits:
      - users: [u]
        maxapplications: 3
    placementrules:
      - {name: tag, value: namespace, create: true}
    queues:
      - name: a
        resources: {max: {memory: 10G}}
"""


def test_nothing_is_registered() -> None:
    world = World()
    assert world.request("GET", "/ws/v1/config").text == "deadlockdetectionenabled: false\ndeadlocktimeoutseconds: 60\n"
    found = world.request("GET", "/ws/v1/config", headers=JSON).json()
    assert found == {"DeadlockDetectionEnabled": False, "DeadlockTimeoutSeconds": 60}


def test_json_has_the_names_of_the_original() -> None:
    world = World().register(text=SMALL, **{"log.level": "DEBUG"})
    answer = world.request("GET", "/ws/v1/config", headers=JSON)
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    found = answer.json()
    assert list(found) == ["Partitions", "Checksum", "Extra", "DeadlockDetectionEnabled", "DeadlockTimeoutSeconds"]
    assert found["Checksum"] == load(SMALL).checksum
    assert found["Extra"] == {"log.level": "DEBUG"}
    (partition,) = found["Partitions"]
    assert list(partition) == [
        "Name", "Queues", "PlacementRules", "Limits", "Preemption", "NodeSortPolicy", "UserGroupResolver",
    ]  # fmt: skip
    assert [partition[name] for name in ("Preemption", "NodeSortPolicy", "UserGroupResolver")] == [{}, {"Type": ""}, {}]
    (root,) = partition["Queues"]
    assert (partition["Name"], root["Name"], root["Parent"]) == ("default", "root", True)
    assert root["Limits"] == [{"Limit": "", "Users": ["u"], "MaxApplications": 3}]
    assert root["Queues"] == [
        {"Name": "a", "Resources": {"Max": {"memory": "10G"}}, "ChildTemplate": {"Resources": {}}},
    ]
    assert partition["PlacementRules"] == [
        {"Name": "tag", "Create": True, "Filter": {"Type": ""}, "Value": "namespace"},
    ]


RICH = """\
partitions:
  - name: default
    nodesortpolicy: {type: fair, resourceweights: {vcore: 2.0, memory: 0.5}}
    preemption: {enabled: false}
    usergroupresolver: {type: os}
    queues:
      - name: a
        limits:
          - {limit: l, groups: [g], maxresources: {vcore: 1}}
"""


def test_empty_fields_are_left_out_as_in_the_original() -> None:
    world = World().register(text=RICH)
    (partition,) = world.request("GET", "/ws/v1/config", headers=JSON).json()["Partitions"]
    assert list(partition) == ["Name", "Queues", "Preemption", "NodeSortPolicy", "UserGroupResolver"]
    assert partition["Preemption"] == {"Enabled": False}
    assert partition["NodeSortPolicy"] == {"Type": "fair", "ResourceWeights": {"vcore": 2, "memory": 0.5}}
    assert partition["UserGroupResolver"] == {"type": "os"}
    (limit,) = partition["Queues"][0]["Queues"][0]["Limits"]
    assert limit == {"Limit": "l", "Groups": ["g"], "MaxResources": {"vcore": "1"}}
    body = world.request("GET", "/ws/v1/config")
    assert "maxapplications" not in body.text
    assert "vcore: 2\n" in body.text
    assert body.headers["content-type"] == "application/x-yaml; charset=UTF-8"


@pytest.mark.parametrize("text", [SMALL, CONFIG, RICH])
def test_yaml_answer_means_the_same_as_the_text_that_was_read(text: str) -> None:
    world = World().register(text=text)
    answer = world.request("GET", "/ws/v1/config")
    assert answer.headers["content-type"] == "application/x-yaml; charset=UTF-8"
    again, before = load(answer.text), load(text)
    assert again.partitions == before.partitions


def test_what_is_shown_can_be_put_back() -> None:
    world = World().register(text=RICH)
    shown = world.request("GET", "/ws/v1/config").text
    answer = world.request("PUT", "/ws/v1/config", shown)
    assert (answer.status_code, answer.json()["allowed"]) == (200, True)
    assert {warning["rule"] for warning in answer.json()["warnings"]} >= {"key-shown"}
    alone = world.request("PUT", "/ws/v1/config", "partitions: [{name: default, queues: []}]\nextra: {a: b}\n")
    assert (alone.status_code, alone.json()["problems"][0]["rule"]) == (409, "yaml-key-unknown")


VERDICTS = [
    ("", True, "", ""),
    (CONFIG, True, "", ""),
    ("partitions: [{name: default, queues: [{name: a, foo: 1}]}]", False, "foo", "yaml-key-unknown"),
    ("partitions: [{name: default}]", False, "a partition needs queues", "queues-missing"),
    ("]", False, "", ""),
    ("\x00\xff", False, "", ""),
]


@pytest.mark.parametrize(("text", "allowed", "reason", "rule"), VERDICTS)
def test_validate_conf(text: str, allowed: bool, reason: str, rule: str) -> None:
    answer = World().request("POST", "/ws/v1/validate-conf", text)
    found = answer.json()
    assert (answer.status_code, found["allowed"]) == (200, allowed)
    assert reason in found.get("reason", "")
    if allowed:
        assert [warning["rule"] for warning in found.get("warnings", ())] == ([] if text else ["config-empty"])
    else:
        assert found["problems"][0]["line"] >= 1
        assert found["problems"][0]["column"] >= 1
        assert not rule or found["problems"][0]["rule"] == rule


def test_a_configuration_is_applied_completely_or_not_at_all() -> None:
    world = busy()
    refused = world.request("PUT", "/ws/v1/config", CONFIG.replace("name: other", "name: 'no name'"))
    assert refused.status_code == 409
    assert refused.json()["allowed"] is False
    assert world.get("/ws/v1/partition/default/queue/root.a")["maxRunningApps"] == 5
    taken = world.request(
        "POST", "/ws/v1/config?rm=mycluster", CONFIG.replace("maxapplications: 5\n", "maxapplications: 7\n")
    )
    assert (taken.status_code, taken.json()) == (200, {"allowed": True})
    assert world.get("/ws/v1/partition/default/queue/root.a")["maxRunningApps"] == 7
    shown = msgspec.json.decode(world.request("GET", "/ws/v1/config", headers=JSON).content)
    assert shown["Checksum"] == world.api.cluster.managers["mycluster"].configuration.checksum
    world.api.validate()


@pytest.mark.parametrize("body", ["", " \n", "{}", "partitions: []", "partitions:", "\xff"])
def test_a_configuration_without_queues_is_refused(body: str) -> None:
    world = busy()
    before = world.get("/ws/v1/partitions")
    answer = world.request("PUT", "/ws/v1/config", body.encode("latin-1"))
    assert (answer.status_code, answer.json()["allowed"]) == (409, False)
    assert world.get("/ws/v1/partitions") == before


def test_without_a_resource_manager_no_configuration_is_taken() -> None:
    answer = World().request("PUT", "/ws/v1/config", CONFIG)
    assert (answer.status_code, answer.json()["message"]) == (404, "No resource manager is registered")


def test_a_configuration_that_the_host_cannot_use_is_refused() -> None:
    """As `licorne kube` refuses one without the partition `default`."""
    world = World().register()

    def admit(rm_id: str, text: str) -> None:
        assert (rm_id, text) == ("mycluster", CONFIG)
        raise ValueError("the queue configuration has no partition 'default'")

    world.backend.admit = admit
    answer = world.request("PUT", "/ws/v1/config", CONFIG)
    assert answer.status_code == 409
    assert "no partition 'default'" in answer.text
