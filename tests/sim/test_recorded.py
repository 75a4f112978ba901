"""A recording as a workload: under the configuration that was recorded, the same is decided once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from licorne import SchedulerAPI, simulate
from licorne.core import compiled
from licorne.si import first, messages, v19
from licorne.si.constants import FOREIGN_STATIC, TAG_FOREIGN, TAG_REQUIRED_NODE
from licorne.state.recording import Recorder
from licorne.workload import WorkloadError, load_workload
from licorne.workload.lines import App, Ask, Foreign, Node, NodeDrain, NodeRemove, NodeUndrain, Release, Reload
from licorne.workload.workload import Workload, write_workload
from machine.wire import send_first, send_v19

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECOND_NS = 10**9
EVICTED = messages.Termination.PREEMPTED_BY_SCHEDULER


def recorded(workload: Workload | Path, folder: Path) -> str:
    """Record the simulation of a workload into a folder; return the digest of its decisions."""
    with Recorder(folder) as recorder:
        return simulate(workload, input_log=recorder).digest


@pytest.mark.gate
@pytest.mark.parametrize(
    "name",
    [
        "gpu-holiday/workload",
        "lowered-quota/workload",
        "big-gang/workload",
        "big-gang/in-pieces",
        "big-gang/no-limits",
        pytest.param("demo/week", marks=pytest.mark.skipif(not compiled, reason="it takes long on plain Python")),
    ],
)
def test_what_was_recorded_of_a_simulation_is_decided_once_more(name: str, tmp_path: Path) -> None:
    """Among them: preemption, pods that are created again, quotas that are lowered, gangs with placeholders."""
    digest = recorded(EXAMPLES / f"{name}.jsonl", tmp_path)
    again = simulate(tmp_path)
    assert again.digest == digest
    assert again.placed > 10


def test_another_configuration_decides_otherwise(tmp_path: Path) -> None:
    digest = recorded(EXAMPLES / "gpu-holiday" / "workload.jsonl", tmp_path)
    other = (EXAMPLES / "gpu-holiday" / "no-preemption.yaml").read_text(encoding="utf-8")
    result = simulate(tmp_path, config=other)
    assert result.digest != digest
    assert result.evictions == []


class Told:
    """A resource manager that is told by hand, and recorded. `placed`: the nodes and UUIDs of asks, in the order of decisions."""

    def __init__(self, folder: Path, rm_id: str = "rm", *, first_interface: bool = False) -> None:
        self.recorder = Recorder(folder)
        self.evicted = False
        self.placed: dict[str, tuple[str, str]] = {}
        self.rm_id = rm_id
        self.api = SchedulerAPI(on_output=self._take)
        self.api.input_log = self.recorder
        config = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
        request: v19.RegisterResourceManagerRequest | first.RegisterResourceManagerRequest
        request = v19.RegisterResourceManagerRequest(rm_id=rm_id, config=config)
        if first_interface:
            rules = (
                "placementrules: [{name: provided}, {name: fixed, value: root.q}]"  # for asks without an application
            )
            config = config.replace("name: default,", f"name: default, {rules},")
            self.api.policy_groups = {"own": (config, {})}
            request = first.RegisterResourceManagerRequest(rm_id=rm_id, policy_group="own")
        self.api.register_resource_manager(request, now_ns=100 * SECOND_NS)
        self.config = config

    def _take(self, _: str, outputs: list[messages.Output]) -> None:
        self.evicted |= any(isinstance(one, messages.Released) and one.termination is EVICTED for one in outputs)

        self.placed |= {one.key: (one.node_id, one.uuid) for one in outputs if isinstance(one, messages.NewAllocation)}

    def tell(self, second: int, *inputs: messages.Input) -> None:
        self.api.submit(self.rm_id, inputs, now_ns=(100 + second) * SECOND_NS)
        self.api.schedule(now_ns=(100 + second) * SECOND_NS)

    def send(self, second: int, *inputs: messages.Input) -> None:
        """Tell the scheduler in requests of its interface, as hosts do."""
        sender = send_first if self.api.policy_groups else send_v19
        for method, (request,), _ in sender(self.rm_id, list(inputs)):
            getattr(self.api, method)(request, now_ns=(100 + second) * SECOND_NS)
        self.tell(second)


def ask(key: str, application_id: str = "a", **more: object) -> messages.Allocation:
    return messages.Allocation(key=key, application_id=application_id, resource={"vcore": 1000}, **more)  # type: ignore[arg-type]


def release(key: str) -> messages.Release:
    return messages.Release(application_id="a", key=key)


def node(action: messages.NodeAction, **more: object) -> messages.NodeUpdate:
    return messages.NodeUpdate(node_id="n", action=action, **more)  # type: ignore[arg-type]


def test_each_kind_of_input_is_a_line_and_what_was_decided_is_not(tmp_path: Path) -> None:
    told = Told(tmp_path)
    action = messages.NodeAction
    told.tell(0, node(action.CREATE, capacity={"vcore": 2005}, attributes={"zone": "a"}))
    told.tell(1, messages.AddApplication(application_id="a", queue="root.q", user="u", groups=("g",)))
    told.tell(2, ask("first", priority=5), ask("second"), ask("waits"))
    told.tell(12, release("first"))
    told.tell(13, messages.Allocation(key="f", node_id="n", tags={TAG_FOREIGN: FOREIGN_STATIC}, resource={"vcore": 5}))
    told.tell(14, node(action.DRAIN_NODE))
    told.tell(15, ask("never"))
    told.tell(16, release("never"), node(action.DRAIN_TO_SCHEDULABLE))
    told.api.update_configuration(
        v19.UpdateConfigurationRequest(rm_id="rm", config=told.config + "\n"), now_ns=117 * SECOND_NS
    )
    told.tell(20, messages.RemoveApplication(application_id="a"))
    told.tell(21, node(action.DECOMISSION))
    told.recorder.close()
    workload = load_workload(tmp_path)
    asks = {line.key: line for line in workload.lines if isinstance(line, Ask)}
    assert {key: (line.at, line.duration_s) for key, line in asks.items()} == {
        "first": (2, 10.0),
        "second": (2, 18.0),
        "waits": (2, 8.0),  # from the moment at which the first one ended
        "never": (15, None),
    }
    assert asks["first"].prio == 5
    kinds = [(type(line), line.at) for line in workload.lines if not isinstance(line, Ask)]
    assert kinds == [
        (Node, 0),
        (App, 1),
        (Foreign, 13),
        (NodeDrain, 14),
        (Release, 16),
        (NodeUndrain, 16),
        (Reload, 17),
        (NodeRemove, 21),
    ]


@pytest.mark.parametrize("first_interface", [True, False])
def test_what_a_host_has_sent_is_decided_once_more(tmp_path: Path, *, first_interface: bool) -> None:
    """The adapters put the id of the resource manager into attributes of nodes; the simulator has another id."""
    told = Told(tmp_path, "mycluster", first_interface=first_interface)
    action = messages.NodeAction
    others = {"occupied": {"vcore": 1000}} if first_interface else {}  # 1.9 has foreign allocations instead
    told.send(0, node(action.CREATE, capacity={"vcore": 4000}, attributes={"zone": "a"}, **others))
    told.send(1, messages.AddApplication(application_id="a", queue="root.q", user="u", groups=("g",)))
    told.send(2, ask("one", timeout_ms=-1), ask("two"), ask("three"), ask("four", allow_preempt_self=True))
    if first_interface:
        told.send(3, ask("alone", "alone", independent=True))
        told.send(9, messages.Release(application_id="", uuid=told.placed["one"][1], what="allocation"))
        told.send(10, messages.Release(application_id="a", uuid=told.placed["two"][1], what="allocation"))
        told.send(12, messages.Release(application_id="", uuid=told.placed["alone"][1], what="allocation"))
        told.send(13, node(action.UPDATE, occupied={"vcore": 0}))
    else:
        told.send(9, release("one"))
    told.send(20, node(action.UPDATE, capacity={"vcore": 5000}, attributes={"zone": "b"}), ask("five"), ask("six"))
    told.recorder.close()
    workload = load_workload(tmp_path)
    simulate(workload, decisions=tmp_path / "decisions")
    decided = (tmp_path / "decisions").read_text().splitlines()
    assert decided == [f"{key}\t{at}" for key, (at, _) in told.placed.items()]
    assert len(decided) == (7 if first_interface else 6)
    with (tmp_path / "workload.jsonl").open("wb") as stream:
        write_workload(workload, stream)
    assert simulate(tmp_path / "workload.jsonl").placed == len(decided)


def test_an_application_is_simulated_whatever_the_name_of_its_user(tmp_path: Path) -> None:
    told = Told(tmp_path)
    found = messages.AddApplication(application_id="a", queue="root.q", user="1001", groups=("g",), groups_found=True)
    told.tell(0, node(messages.NodeAction.CREATE, capacity={"vcore": 1000}), found, ask("k"))
    told.recorder.close()
    assert simulate(load_workload(tmp_path)).placed == 1


def test_an_ask_in_place_of_an_evicted_pod_is_that_pod(tmp_path: Path) -> None:
    """Also where it has another key, and comes before the evicted pod is gone."""
    told = Told(tmp_path)
    told.tell(0, node(messages.NodeAction.CREATE, capacity={"vcore": 1000}))
    spare = messages.NodeUpdate(node_id="spare", action=messages.NodeAction.CREATE_DRAIN, capacity={"vcore": 1000})
    told.tell(0, spare)  # room in the quota of root, which is the size of the cluster
    told.tell(0, messages.AddApplication(application_id="a", queue="root.q", user="u"))
    told.tell(1, ask("one", allow_preempt_self=True))
    told.tell(5, messages.AddApplication(application_id="b", queue="root.q", user="u"))
    told.tell(5, ask("daemon", "b", priority=9, tags={TAG_REQUIRED_NODE: "n"}, allow_preempt_other=True))
    second = 5
    while not told.evicted:
        second += 1
        assert second < 60
        told.tell(second)
    told.tell(second + 1, ask("two", allow_preempt_self=True))
    told.tell(second + 2, messages.Release(application_id="a", key="one", termination=EVICTED))
    told.tell(second + 12, messages.Release(application_id="b", key="daemon"))
    told.tell(second + 52, release("two"))
    told.recorder.close()
    workload = load_workload(tmp_path)
    asks = {line.key: (line.at, line.duration_s) for line in workload.lines if isinstance(line, Ask)}
    assert asks == {"one": (1, 40.0), "daemon": (5, 10.0)}
    assert (workload.resubmit, workload.grace_s) == (True, 2.0)
    assert workload.notes == [
        "pods were evicted and asked for again; each counts as one pod, which is created again where it is evicted (1)"
    ]


def test_what_a_workload_cannot_say_is_counted_in_its_notes(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.tell(0, node(messages.NodeAction.CREATE, capacity={"vcore": 2000}))
    told.tell(1, messages.AddApplication(application_id="a", queue="root.q", user="u"))
    told.tell(2, ask("one", priority_class="high"))
    told.tell(3, messages.DisruptionBudgetUpdate(name="b", allowed=0))
    told.tell(4, messages.AddApplication(application_id="b", partition="gpu"))
    told.api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="other"), now_ns=105 * SECOND_NS)
    told.api.submit("other", [node(messages.NodeAction.CREATE, capacity={"vcore": 1})], now_ns=106 * SECOND_NS)
    told.recorder.close()
    assert load_workload(tmp_path).notes == [
        "priority classes are left out; priorities are numbers (1)",
        "disruption budgets are left out (1)",
        "inputs for other partitions than default are left out (1)",
        "inputs of other resource managers than the first are left out (1)",
    ]


def test_a_recording_without_an_ask_or_with_too_many_is_refused(tmp_path: Path) -> None:
    Told(tmp_path / "empty").recorder.close()
    with pytest.raises(WorkloadError, match="has no ask"):
        load_workload(tmp_path / "empty")
    recorded(EXAMPLES / "gpu-holiday" / "workload.jsonl", tmp_path / "holiday")
    with pytest.raises(WorkloadError, match="48 asks are more than 40; --max-asks allows more"):
        load_workload(tmp_path / "holiday", asks_max=40)
    with pytest.raises(WorkloadError, match="a seed and a load are for a scenario"):
        load_workload(tmp_path / "holiday", load=0.5)
