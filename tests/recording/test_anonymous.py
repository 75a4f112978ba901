"""A recording without names of users and groups decides the same, and holds none of them in any byte."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from licorne import SchedulerAPI
from licorne.config import ConfigError, load
from licorne.config.acl import ACL
from licorne.si import v19, wire
from licorne.state.recording import Bounds, Names, Recorder, Replay, choose_run
from licorne.state.recording.anonymous import AnonymityError
from licorne.state.recording.blocks import read_blocks
from licorne.state.recording.folder import segments_in
from recording.recorded import assert_replays, record_history

SECOND_NS = 10**9
DATA = Path(__file__).resolve().parents[1] / "data"
PEOPLE = ("annabella", "boris@example.org", "caroline$", "developers", "operators", "strangers", "no/body", "!illegal!")
QUEUES = """\
partitions:
  - name: default
    placementrules:
      - name: provided
        create: false
        filter: {type: deny, users: [annabella, strangers], groups: [operators]}
      - {name: tag, value: team, create: true}
      - {name: fixed, value: root.rest}
    limits:
      - {limit: for annabella, users: [annabella], maxresources: {vcore: 3}}
      - {limit: "", groups: [developers], maxapplications: 3, maxresources: {vcore: 5}}
      - {limit: all, users: ["*"], maxresources: {vcore: 2}}
    queues:
      - name: root
        queues:
          - name: closed  # caroline$ asked for it
            submitacl: "annabella,caroline$ operators"
          - name: rest
            submitacl: "boris@example.org,no/body developers"
          - name: red
            submitacl: "*"
"""


def texts_of(folder: Path) -> str:
    """Return everything that a recording holds: names of files, their bytes, and entries when they are unpacked."""
    found = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    found += [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]
    for run in folder.glob("run-*"):
        for segment in segments_in(run):
            found += [repr(block) for block in read_blocks(segment)]
    return "\n".join(found)


def play(api: SchedulerAPI) -> None:
    """Have people submit to queues that let them in or not, in messages with labels, up to their limits."""
    request = v19.RegisterResourceManagerRequest(
        rm_id="rm", config=QUEUES, extra_config={"admissionController.accessControl.systemUsers": "^annabella$"}
    )
    api.register_resource_manager(request, now_ns=SECOND_NS)
    node = v19.NodeInfo(node_id="n", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 16_000})
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[node]), now_ns=SECOND_NS)
    queues = ("root.closed", "root.rest", "root.red", "")
    selector = {
        "labelSelector": {"matchExpressions": [{"key": "owner", "operator": "In", "values": ["caroline$", "x"]}]}
    }
    for number, (user, queue) in enumerate((user, queue) for user in (*PEOPLE, "") for queue in queues):
        groups = [PEOPLE[3 + number % 3]] if number % 4 else []
        app = v19.AddApplicationRequest(
            application_id=f"a{number}",
            queue_name=queue,
            partition_name="default",
            ugi=v19.UserGroupInformation(user=user, groups=groups),
            tags={"team": "red" if number % 3 else "", "owner": user or "annabella", "namespace": "dev"},
        )
        api.update_application(v19.ApplicationRequest(rm_id="rm", new=[app]), now_ns=SECOND_NS)
        asks = v19.AllocationRequest(
            rm_id="rm",
            allocations=[
                v19.Allocation(
                    allocation_key=f"k{number}-{each}",
                    application_id=f"a{number}",
                    partition_name="default",
                    resource_per_alloc={"vcore": 700},
                    allocation_tags={
                        "kubernetes.io/label/owner": user or "annabella",
                        "licorne/pod": json.dumps({"namespace": "dev", "labels": {"owner": user or "annabella"}}),
                        "licorne/pod-terms": json.dumps({"antiAffinity": [{"topologyKey": "host", **selector}]}),
                    },
                )
                for each in range(3)
            ],
        )
        api.update_allocation(wire.encode(asks), now_ns=SECOND_NS)
        api.schedule(now_ns=(2 + number) * SECOND_NS)
    api.update_configuration(
        v19.UpdateConfigurationRequest(rm_id="rm", config=QUEUES.replace("vcore: 2", "vcore: 4")), now_ns=90 * SECOND_NS
    )
    api.schedule(now_ns=91 * SECOND_NS)


def test_the_same_is_decided_and_nobody_is_named(tmp_path: Path) -> None:
    api = SchedulerAPI(on_output=lambda *_: None, on_incident=lambda _: None)
    with Recorder(tmp_path, names=Names()) as recorder:
        api.input_log = recorder
        play(api)
        api.input_log = None
    replay = Replay(choose_run(tmp_path))
    outcome = replay.run()
    assert (outcome.checked, outcome.remark) == (outcome.messages, "")
    assert outcome.allocations > 10
    ours, theirs = api.cluster.partition("rm"), replay.api.cluster.partition("rm")
    assert [(app.id, app.queue.path, len(app.allocations)) for app in theirs.applications.values()] == [
        (app.id, app.queue.path, len(app.allocations)) for app in ours.applications.values()
    ]
    # Whom the limits keep waiting, they keep waiting there too; and the queue is another one for people of other rights.
    assert [(key, app) for key, app, _ in theirs.waiting()] == [(key, app) for key, app, _ in ours.waiting()]
    assert len({app.queue.path for app in ours.applications.values()}) == 3
    texts = texts_of(tmp_path)
    assert [name for name in PEOPLE if name in texts] == []
    assert "root.closed" in texts


def test_with_names_they_are_there(tmp_path: Path) -> None:
    """So the search above would find them."""
    api = SchedulerAPI(on_output=lambda *_: None, on_incident=lambda _: None)
    with Recorder(tmp_path) as recorder:
        api.input_log = recorder
        play(api)
    texts = texts_of(tmp_path)
    assert [name for name in PEOPLE if name not in texts] == []


@pytest.mark.parametrize("first_interface", [False, True])
def test_a_history_ends_in_the_same_state(tmp_path: Path, *, first_interface: bool) -> None:
    names = Names(b"key")
    life = record_history(tmp_path, 150, first_interface=first_interface, names=names)
    replay = Replay(choose_run(tmp_path))
    outcome = replay.run()
    assert (outcome.checked, outcome.allocations) == (outcome.messages, life.allocations)
    assert outcome.allocations > 30
    ours, theirs = life.api.cluster.partition("rm"), replay.api.cluster.partition("rm")
    assert [app.user for app in theirs.applications.values()] == [
        names.of(app.user) for app in ours.applications.values()
    ]
    replay.api.validate()


def test_recordings_with_names_are_as_before(tmp_path: Path) -> None:
    life = record_history(tmp_path, 60)
    assert_replays(tmp_path, life.api)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("[{name: user, create: true}]", "'user' names queues after users"),
        ("[{name: fixed, value: root.a, parent: {name: User}}]", "'user' names queues after users"),
        ("[{name: tag, value: x, filter: {users: ['^dev-.*']}}]", "an expression over names of users"),
    ],
)
def test_a_configuration_that_depends_on_the_names_ends_the_run_and_says_why(
    tmp_path: Path, rules: str, why: str
) -> None:
    text = f"partitions: [{{name: default, placementrules: {rules}, queues: [{{name: root, submitacl: '*'}}]}}]"
    with pytest.raises(AnonymityError, match=why):
        Names().configuration(text)
    troubles: list[str] = []
    api = SchedulerAPI(on_output=lambda *_: None, on_incident=lambda _: None)
    with Recorder(tmp_path, trouble=troubles.append, names=Names()) as recorder:
        api.input_log = recorder
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=text), now_ns=SECOND_NS)
        api.schedule(now_ns=SECOND_NS)
    assert len(troubles) == 1
    assert why in troubles[0]


def test_a_configuration_means_the_same_but_for_the_names() -> None:
    """Configurations that the original has judged: what is accepted stays so, and is equal with the names replaced."""
    names = Names(b"key")
    accepted = 0
    for line in (DATA / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()[::6]:
        text = json.loads(line)["yaml"]
        try:
            before = load(text)
        except ConfigError:
            continue
        try:
            after = load(names.configuration(text))
        except AnonymityError:
            continue
        accepted += 1
        assert comparable(after) == renamed(comparable(before), names)
    assert accepted > 20


def test_names_are_replaced_wherever_a_value_is_written_and_what_cannot_be_read_is_refused() -> None:
    names = Names(b"key")
    text = """\
partitions:
  - name: default
    queues:
      - name: &who annabella
        limits:
          - &limit {limit: "", users: [*who], maxapplications: 010}
          - {<<: *limit, users: [boris]}
"""
    of = load(text).partitions[0].root.children[0]
    found = load(names.configuration(text)).partitions[0].root.children[0]
    assert found.name == of.name == "annabella"
    assert [(limit.users, limit.max_applications) for limit in found.limits] == [
        ((names.of(name),), 8) for name in ("annabella", "boris")
    ]
    with pytest.raises(AnonymityError, match=r"cannot be read: <config>:1:2: .*unknown key 'user'"):
        names.configuration("{user: annabella}")


def comparable(configuration: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(configuration.partitions))


def renamed(value: Any, names: Names, key: str = "") -> Any:
    """Return a configuration with names replaced, as plainly as can be."""
    if isinstance(value, dict):
        return {name: renamed(each, names, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(each, names, key) for each in value]
    if key in ("users", "groups"):
        return names.of(value)
    if key in ("admin_acl", "submit_acl"):
        return acl(value, names)
    return value


def acl(text: str, names: Names) -> str:
    found = ACL.parse(text)
    if found.everybody:
        return "*"
    users, groups = (",".join(sorted(map(names.of, each))) for each in (found.users, found.groups))
    return f"{users} {groups}" if groups else users


def test_digests_are_of_the_key_and_keep_what_a_name_may_be() -> None:
    one, other = Names(), Names()
    assert one.of("annabella") == one.of("annabella") != other.of("annabella")
    assert Names(b"k").of("annabella") == Names(b"k").of("annabella")
    assert [one.of(name) for name in ("", "*", "nobody", "nogroup")] == ["", "*", "nobody", "nogroup"]
    assert one.of("with blank").startswith("!")


def test_figures_tell_what_becomes_of_a_recording(tmp_path: Path) -> None:
    api = SchedulerAPI(on_output=lambda *_: None, on_incident=lambda _: None)
    with Recorder(tmp_path, Bounds(queue_bytes=200_000)) as recorder:
        assert recorder.figures().state == "waiting"
        api.input_log = recorder
        play(api)
        assert (recorder.figures().state, recorder.figures().counts.gaps) == ("on", 0)
        while recorder.figures().counts.entries == 0:
            time.sleep(0.02)
        assert recorder.figures().counts.bytes > 0
        api.update_allocation(
            v19.AllocationRequest(
                rm_id="rm", allocations=[v19.Allocation(allocation_key="k" * 300_000, application_id="a0")]
            ),
            now_ns=99 * SECOND_NS,
        )
        api.schedule(now_ns=99 * SECOND_NS)
        while recorder.figures().state != "ended":
            api.schedule(now_ns=100 * SECOND_NS)
            time.sleep(0.01)
    found = recorder.figures()
    assert (found.counts.gaps, found.queue_bytes, found.lag_s) == (1, 0, 0.0)


def test_images_of_nodes_and_of_pods_keep_fitting_each_other() -> None:
    """Labels of nodes, which preferences of nodes are about, are as they were."""
    names = Names(b"key")
    nodes = [{"weight": 1, "term": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    preferred = {"images": ["registry.example.com/secret:1"], "nodes": nodes}
    told = json.loads(names.tags({"licorne/pod-terms": json.dumps({"preferred": preferred})})["licorne/pod-terms"])
    fields = {"attributes": {"label/zone": "a", "licorne/images": '{"registry.example.com/secret:1": 5}'}}
    names.message("NodeUpdate", fields)
    has = json.loads(fields["attributes"]["licorne/images"])
    assert has == {told["preferred"]["images"][0]: 5} and "secret" not in str(has)
    assert told["preferred"]["nodes"] == nodes and fields["attributes"]["label/zone"] == "a"
