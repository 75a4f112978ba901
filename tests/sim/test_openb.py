"""The openb trace: small tables by hand, and facts of the real one."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.core.nodes.constraints import CONSTRAINTS_TAG
from licorne.workload.device_models import OPENB_LABEL
from licorne.workload.lines import App, Ask, Node, to_ns
from licorne.workload.traces.openb import DEFAULT_PODS, GPU, NODES, Pod, peak_share, read_openb, squeeze
from licorne.workload.workload import Mode, Workload, WorkloadError

NODE_TABLE = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1024,0,\nn1,8000,2048,2,T4\n"
POD_HEAD = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
POD_TABLE = POD_HEAD + (
    "p0,1000,512,0,0,,LS,Running,10,110,20\n"
    "p1,2000,256,1,460,T4|P100|T4,BE,Pending,5,65,\n"
    "p2,500,128,2,1000,,Burstable,Failed,30,30,30\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / NODES).write_text(NODE_TABLE)
    (tmp_path / DEFAULT_PODS).write_text(POD_TABLE)
    return tmp_path


def asks_of(workload: Workload) -> dict[str, Ask]:
    return {line.key: line for line in workload.lines if isinstance(line, Ask)}


def test_the_tables_become_nodes_applications_and_asks(folder: Path) -> None:
    workload = read_openb(folder, how="recorded")
    assert workload.mode is Mode.TIMED
    assert list(workload.lines)[:2] == [
        Node(id="n0", res={"vcore": 32000, "memory": 1 << 30}, attrs={"si/hostname": "n0"}),
        Node(
            id="n1",
            res={"vcore": 8000, "memory": 2 << 30, GPU: 2000},
            attrs={"si/hostname": "n1", f"label/{OPENB_LABEL}": "T4"},
        ),
    ]
    assert workload.notes[1:] == [f"{DEFAULT_PODS}: no node has these models of gpu_spec: P100 (1 pod); nodes have T4"]
    # In order of arrival; p0 from scheduling to deletion, p1 from creation, as it never was scheduled.
    asks = asks_of(workload)
    found = [(ask.key, ask.at, ask.duration_s) for ask in asks.values()]
    assert found == [("p1", 5, 60), ("p0", 10, 90), ("p2", 30, 0)]
    assert asks["p1"].res == {"vcore": 2000, "memory": 256 << 20, GPU: 460}
    assert asks["p2"].res == {"vcore": 500, "memory": 128 << 20, GPU: 2000}
    assert asks["p0"].res == {"vcore": 1000, "memory": 512 << 20}
    apps = [line for line in workload.lines if isinstance(line, App)]
    made = [(app.id, app.queue, app.user) for app in apps]
    assert made == [("p1", "root.be", "BE"), ("p0", "root.ls", "LS"), ("p2", "root.burstable", "Burstable")]
    assert workload.devices == GPU


def test_gpu_models_are_node_constraints(folder: Path) -> None:
    tags = asks_of(read_openb(folder, how="recorded"))["p1"].tags
    assert tags is not None
    assert msgspec.json.decode(tags[CONSTRAINTS_TAG]) == {
        "nodeAffinity": [[{"key": OPENB_LABEL, "operator": "In", "values": ["T4", "P100"]}]]
    }


def test_fill_lets_pods_stay(folder: Path) -> None:
    assert {ask.duration_s for ask in asks_of(read_openb(folder, how="fill")).values()} == {None}


def test_without_a_configuration_each_class_has_a_queue(folder: Path) -> None:
    config = read_openb(folder).config
    assert config is not None
    for name in ("be", "burstable", "ls"):
        assert f"- name: {name}\n" in config


def test_a_folder_or_a_pod_list_is_meant_as_the_trace(folder: Path) -> None:
    assert read_openb(folder / DEFAULT_PODS) == read_openb(folder)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (NODES, None, f"{NODES}: no such file; the node list must lie beside the pod list"),
        (
            NODES,
            "sn,cpu_milli\n",
            f"{NODES}:1: no column 'memory_mib'; there are sn, cpu_milli; the node list must lie",
        ),
        (DEFAULT_PODS, None, f"{DEFAULT_PODS}: no such file; give the trace's folder or one of its pod lists"),
        (DEFAULT_PODS, POD_TABLE.replace(",512,", ",half,"), f"{DEFAULT_PODS}:2: memory_mib: 'half' is not a whole"),
        (DEFAULT_PODS, POD_TABLE.replace("10,110,20", "10,15,20"), f"{DEFAULT_PODS}:2: deletion_time: is before"),
        (
            DEFAULT_PODS,
            POD_TABLE.replace(",2,1000,", ",2,500,"),
            f"{DEFAULT_PODS}:4: gpu_milli: a pod has a share of one",
        ),
        (
            DEFAULT_PODS,
            POD_TABLE.replace(",1,460,", ",1,1460,"),
            f"{DEFAULT_PODS}:3: gpu_milli: a pod has a share of one",
        ),
        (
            DEFAULT_PODS,
            POD_HEAD + "p0,1000\n",
            f"{DEFAULT_PODS}:2: has 2 fields, where the header has 11; is the line cut off?",
        ),
        (DEFAULT_PODS, POD_TABLE.replace("p0,", ","), f"{DEFAULT_PODS}:2: name: is empty"),
        (
            DEFAULT_PODS,
            POD_TABLE.replace("10,110,20", "10,110,20,7"),
            f"{DEFAULT_PODS}:2: has 12 fields, where the header has 11",
        ),
        (
            DEFAULT_PODS,
            POD_TABLE.replace("10,110,20", "10,5,0"),
            f"{DEFAULT_PODS}:2: deletion_time: is before the pod's cr",
        ),
    ],
)
def test_a_refusal_names_file_line_and_column(folder: Path, name: str, text: str | None, complaint: str) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(WorkloadError, match=re.escape(complaint)):
        read_openb(folder)


@pytest.mark.parametrize("name", [DEFAULT_PODS, NODES])
def test_a_file_that_may_be_cut_off_is_noted(folder: Path, name: str) -> None:
    text = (folder / name).read_text()
    assert not any("line end" in note for note in read_openb(folder).notes)
    (folder / name).write_text(text.rstrip("\n"))
    lines = text.count("\n")
    said = f"the last line has no line end; it was taken as whole ({folder / name}:{lines})"
    assert said in read_openb(folder).notes


@pytest.mark.parametrize("load", [0, -1, 101, float("nan")])
def test_a_load_must_make_sense(folder: Path, load: float) -> None:
    with pytest.raises(WorkloadError, match="load must be above 0"):
        read_openb(folder, load=load)


pods = st.lists(
    st.builds(
        Pod,
        name=st.just("p"),
        qos=st.just("LS"),
        created_s=st.integers(0, 40),
        duration_s=st.integers(0, 15),
        resource=st.fixed_dictionaries({"vcore": st.integers(1, 9)}, optional={"gpu": st.integers(1, 3)}),
        models=st.just(()),
    ),
    min_size=1,
    max_size=25,
).map(lambda given: sorted(given, key=lambda pod: pod.created_s))
CAPACITY = {"vcore": 30, "gpu": 4}


@given(pods)
def test_peak_demand_is_the_largest_of_all_moments(given_pods: list[Pod]) -> None:
    arrivals = [pod.created_s * 10**9 for pod in given_pods]
    expected = max(
        sum(pod.resource.get(name, 0) for pod in given_pods if pod.created_s <= second < pod.created_s + pod.duration_s)
        / CAPACITY[name]
        for name in CAPACITY
        for second in range(60)
    )
    assert peak_share(given_pods, arrivals, CAPACITY)[0] == pytest.approx(expected)


@given(pods, st.floats(0.05, 3))
def test_squeezing_reaches_the_load_and_keeps_the_order(given_pods: list[Pod], load: float) -> None:
    arrivals, note = squeeze(given_pods, CAPACITY, load)
    assert arrivals == sorted(arrivals)
    assert all(at <= pod.created_s * 10**9 for at, pod in zip(arrivals, given_pods, strict=True))
    recorded = peak_share(given_pods, [pod.created_s * 10**9 for pod in given_pods], CAPACITY)[0]
    if recorded <= load:
        assert peak_share(given_pods, arrivals, CAPACITY)[0] <= load
    else:
        assert "as recorded" in note


def test_the_real_trace_agrees_with_its_readme(openb: Path) -> None:
    recorded = read_openb(openb, how="recorded")
    nodes = [line for line in recorded.lines if isinstance(line, Node)]
    asks = list(asks_of(recorded).values())
    assert (len(nodes), len(asks)) == (1523, 8152)
    assert sum(node.res.get(GPU, 0) for node in nodes) == 6_212_000
    assert round(sum(ask.res.get(GPU, 0) for ask in asks) / 1000) == 6087
    changes = sorted(
        change
        for ask in asks
        if ask.duration_s
        for change in ((to_ns(ask.at or 0), 1), (to_ns((ask.at or 0) + ask.duration_s), -1))
    )
    alive = peak = 0
    for _, change in changes:
        alive += change
        peak = max(peak, alive)
    assert peak == 56


def test_a_third_of_the_gpu_pods_name_models_in_the_other_list(openb: Path) -> None:
    asks = asks_of(read_openb(openb / "openb_pod_list_gpuspec33.csv")).values()
    assert sum(ask.tags is not None for ask in asks) == 2388


def test_the_default_load_is_reached(openb: Path) -> None:
    workload = read_openb(openb)
    assert any("peak demand would be 90.0% of alibabacloud.com/gpu-milli" in note for note in workload.notes)


# -- overload ----------------------------------------------------------------------------------------------------


def test_a_load_that_all_pods_at_once_do_not_reach_takes_the_trace_several_times(folder: Path) -> None:
    """All pods at once want 768 of 3072 MiB, without p2, which runs no time: a quarter."""
    workload = read_openb(folder, load=0.6)
    assert list(asks_of(workload)) == ["p1", "p0", "p2", "p1~2", "p0~2", "p2~2", "p1~3", "p0~3", "p2~3"]
    assert any("the trace is taken 3 times" in note for note in workload.notes)
    assert list(asks_of(read_openb(folder, load=0.25))) == ["p1", "p0", "p2"]


@pytest.mark.gate
def test_overload_of_the_real_trace_exceeds_the_cluster(openb: Path) -> None:
    workload = read_openb(openb, load=1.3)
    capacity = sum(line.res.get(GPU, 0) for line in workload.lines if isinstance(line, Node))
    changes: list[tuple[int, int]] = []
    for ask in asks_of(workload).values():
        if ask.duration_s:
            start_ns = to_ns(ask.at or 0)
            changes += [(start_ns, ask.res.get(GPU, 0)), (start_ns + to_ns(ask.duration_s), -ask.res.get(GPU, 0))]
    level = peak = 0
    for _, change in sorted(changes):
        level += change
        peak = max(peak, level)
    assert peak / capacity == pytest.approx(1.3, abs=0.01)
    assert peak / capacity <= 1.3


def test_a_load_below_that_of_the_recorded_times_is_refused(folder: Path) -> None:
    with pytest.raises(
        WorkloadError, match=r"load 0\.001 is out of reach: the recorded times have 0\.25, of memory; .*--as"
    ):
        read_openb(folder, load=0.001)


def test_a_folder_that_is_not_the_trace_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"a folder, but not that of the openb trace.* or a workload in JSON lines"):
        read_openb(tmp_path)


def test_a_model_that_no_node_has_is_noted_with_the_pods_that_accept_it(folder: Path) -> None:
    (folder / DEFAULT_PODS).write_text(POD_TABLE.replace("T4|P100|T4", "V100|P100") + "p3,1,1,1,9,V100|T4,LS,,1,9,\n")
    notes = read_openb(folder, how="recorded").notes
    assert notes[1] == (
        f"{DEFAULT_PODS}: no node has these models of gpu_spec: P100 (1 pod), V100 (2 pods); "
        "1 pod accepts no other, and cannot be placed; nodes have T4"
    )
    (folder / DEFAULT_PODS).write_text(POD_TABLE.replace("T4|P100|T4", "T4|T4"))
    assert len(read_openb(folder, how="recorded").notes) == 1
