"""`licorne convert` of a cluster: what kubectl prints as a workload, in which pods ask for what they ask for with `licorne kube`."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli.conftest import Command, licorne
from licorne.kube.importing import Imported, ImportedError
from licorne.kube.objects import Pod
from licorne.kube.pods.work import PodContext, read_pod
from licorne.sim.runner import simulate
from licorne.state.recording import Names
from licorne.workload import lines
from licorne.workload.workload import Workload, read_workload, write_workload

__all__ = ["licorne"]

QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: dev
            limits: [{limit: of annabella, users: [annabella], maxapplications: 2}]
"""
GROUPS = [
    {"name": "workers", "minMember": 2, "minResource": {"cpu": "500m", "memory": "1Gi"}, "labels": {"of": "annabella"}}
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/kubernetes"
EVERYTHING = ("annabella", "developers")


def pod(name: str, second: int = 0, *, scheduler: str = "yunikorn", node: str = "", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "dev",
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-11-03T10:00:{second:02}Z",
            "labels": {"applicationId": more.get("app", "a1"), "queue": "root.dev", "owner": "annabella"},
            "annotations": {
                "yunikorn.apache.org/user.info": '{"user":"annabella","groups":["developers"]}',
                **more.get("annotations", {}),
            },
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "nodeSelector": {"zone": "a"},
            **more.get("spec", {}),
        },
        "status": {"phase": "Running" if node else "Pending", **more.get("status", {})},
    }
    if node:
        made["spec"]["nodeName"] = node
    return made


NODE = {
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
MAP = {
    "kind": "ConfigMap",
    "metadata": {"name": "yunikorn-configs", "namespace": "yunikorn"},
    "data": {"queues.yaml": QUEUES, "log.level": "DEBUG"},
}
ENDED = {
    "phase": "Succeeded",
    "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-03T10:00:05Z"}],
    "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-11-03T10:01:05Z"}}}],
}


def made(*objects: dict[str, Any], **more: Any) -> Workload:
    found = Imported(**more)
    for each in objects:
        found.add(each)
    return found.workload("imported")


def of(workload: Workload, kind: type[lines.Line]) -> list[Any]:
    return [line for line in workload.lines if type(line) is kind]


def test_a_pod_asks_for_what_it_asks_for_with_licorne_kube() -> None:
    waiting = pod("p", spec={"tolerations": [{"key": "gpu", "operator": "Exists"}], "priority": 7})
    [ask] = of(made(NODE, waiting), lines.Ask)
    work = read_pod(msgspec.convert(waiting, Pod), PodContext())
    assert (ask.key, ask.app, ask.res, ask.prio) == (
        work.ask.key,
        work.ask.application_id,
        work.ask.resource,
        7,
    )
    assert ask.tags == work.ask.tags
    assert ask.tags["licorne/node-constraints"] == (
        '{"nodeSelector":{"zone":"a"},"tolerations":[{"key":"gpu","operator":"Exists"}]}'
    )
    [app] = of(made(NODE, waiting), lines.App)
    assert (app.queue, app.user, app.groups) == ("root.dev", "annabella", ("developers",))
    assert app.tags == {"namespace": "dev"}


def test_pods_of_the_ray_cluster_of_the_examples_run_in_their_queue() -> None:
    queues, cluster = (yaml.safe_load((EXAMPLES / name).read_text("utf-8")) for name in ("queues.yaml", "ray.yaml"))
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    pods: list[dict[str, Any]] = []
    for group in groups:
        each = pod(f"ray-{len(pods)}")
        each["metadata"]["labels"] = group["template"]["metadata"]["labels"]
        pods.append({**each, "spec": group["template"]["spec"]})
    node = {**NODE, "spec": {}, "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}
    result = simulate(made(node, {**MAP, "data": queues["data"]}, *pods))
    assert {(each.queue, each.application, each.outcome) for each in result.pods} == {
        ("root.batch", "sweeps", "running")
    }
    assert len(result.pods) == 2


def test_times_begin_with_the_first_pod_and_what_has_ended_ran_as_long_as_it_ran() -> None:
    found = made(
        NODE,
        pod("late", 9),
        pod("done", 3, node="n1", status=ENDED),
        pod("first", 1, node="n1"),
        pod("lost", 4, node="n1", status={"phase": "Failed"}),
    )
    asks = {line.key: line for line in of(found, lines.Ask)}
    assert {key: (line.at, line.duration_s) for key, line in asks.items()} == {
        "uid-first": (0, None),
        "uid-done": (2, 60),
        "uid-late": (8, None),
    }
    assert any("pods run; for how long is not known" in note and "(1)" in note for note in found.notes)
    assert any("have ended, and when is not known" in note and "(1)" in note for note in found.notes)


def test_nodes_taints_and_pods_of_others() -> None:
    found = made(NODE, pod("p"), pod("daemon", scheduler="default-scheduler", node="n1"), pod("w", scheduler="other"))
    [node] = of(found, lines.Node)
    assert node.res == {"vcore": 4000, "memory": 8 << 30, "pods": 110}
    assert json.loads(node.attrs["taints"]) == [{"key": "gpu", "effect": "NoSchedule"}]
    [foreign] = of(found, lines.Foreign)
    assert (foreign.key, foreign.node, foreign.res["vcore"]) == ("uid-daemon", "n1", 500)
    assert any("wait for other schedulers" in note for note in found.notes)


def test_what_pods_demand_of_each_other_is_taken_over() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = (pod("daemon", scheduler="default-scheduler", node="n1"), pod("p"))
    for one in pods:
        one["spec"]["affinity"] = apart
    found = made({"kind": "Namespace", "metadata": {"name": "dev", "labels": {"team": "x"}}}, NODE, *pods)
    for line in (*of(found, lines.Foreign), *of(found, lines.Ask)):
        assert json.loads(line.tags["licorne/pod-terms"]) == {"antiAffinity": [term]}
        assert json.loads(line.tags["licorne/pod"])["namespaceLabels"] == {"team": "x"}
    assert found.notes == made(NODE, pod("daemon", scheduler="default-scheduler", node="n1"), pod("p")).notes


DISK = "disk.example.com"


def volume(name: str, claim: str) -> list[dict[str, Any]]:
    """Return a volume in zone b, and the claim that it is bound to."""
    source = {"csi": {"driver": DISK, "volumeHandle": name}, "claimRef": {"namespace": "dev", "name": claim}}
    meta = {"name": claim, "namespace": "dev", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    zone = {"topology.kubernetes.io/zone": "b"}
    return [
        {"kind": "PersistentVolume", "metadata": {"name": name, "labels": zone}, "spec": source},
        {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": name}},
    ]


@pytest.mark.parametrize("node", ["", "n2"])
def test_volumes_keep_pods_to_their_zone_and_nodes_to_their_number(node: str) -> None:
    nodes = [
        {**NODE, "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}, "spec": {}}
        for name, zone in (("n1", "a"), ("n2", "b"))
    ]
    one = {
        "kind": "CSINode",
        "metadata": {"name": "n2"},
        "spec": {"drivers": [{"name": DISK, "allocatable": {"count": 1}}]},
    }
    pods = []
    for number, (name, claim) in enumerate((("p", "data"), ("q", "more"))):
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
        pods.append(pod(name, number, node=node if name == "p" else "", spec={"volumes": volumes, "nodeSelector": {}}))
    found = made(*nodes, one, *volume("v", "data"), *volume("w", "more"), *pods)
    assert {each.key: each.node for each in simulate(found).pods} == {"uid-p": "n2", "uid-q": None}
    assert not any("claims that are not in the files" in note for note in found.notes)
    lost = made(*nodes, *pods)
    assert any("claims that are not in the files" in note and "(2)" in note for note in lost.notes)


def test_devices_count_in_quotas_and_nowhere_else_and_the_notes_say_so() -> None:
    queues = QUEUES.replace(
        "limits:", "resources: {max: {gpu.deviceclass.resource.k8s.io/devices: 3}}\n            limits:"
    )
    objects: list[dict[str, Any]] = [
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    ]
    for number in range(2):
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]
        meta = {"name": f"c{number}", "namespace": "dev"}
        objects.append({"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": requests}}})
        claims = [{"name": "c", "resourceClaimName": f"c{number}"}]
        objects.append(pod(f"p{number}", number, spec={"resourceClaims": claims, "nodeSelector": {}}))
    limits = [{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}]
    objects.append(pod("extended", 5, spec={"containers": limits, "nodeSelector": {}}))
    free = {**NODE, "spec": {}}
    found = made(free, {**MAP, "data": {"queues.yaml": queues}}, *objects)
    assert any("pods have claims of devices" in note and "(3)" in note for note in found.notes)
    [node] = of(found, lines.Node)
    assert node.res["gpu.deviceclass.resource.k8s.io/devices"] == 4
    assert {each.key: bool(each.node) for each in simulate(found).pods} == {
        "uid-p0": True,
        "uid-p1": False,
        "uid-extended": True,
    }


def test_a_gang_is_one_for_the_simulator_and_its_placeholders_are_left_out() -> None:
    annotations = {
        "yunikorn.apache.org/task-groups": json.dumps(GROUPS),
        "yunikorn.apache.org/task-group-name": "workers",
        "yunikorn.apache.org/schedulingPolicyParameters": "gangSchedulingStyle=Hard placeholderTimeoutInSeconds=30",
    }
    placeholder = pod("ph", 1, annotations={"yunikorn.apache.org/placeholder": "true"})
    found = made(NODE, pod("p", annotations=annotations), placeholder)
    [app] = of(found, lines.App)
    [group] = app.gang
    assert (group.name, group.min, group.res) == ("workers", 2, {"vcore": 500, "memory": 1 << 30, "pods": 1})
    assert (app.style, app.ph_timeout_ms) == ("Hard", 30_000)
    [ask] = of(found, lines.Ask)
    assert ask.group == "workers"
    assert any("placeholders of gangs are left out" in note for note in found.notes)


def test_namespaces_give_quotas_and_config_maps_the_queues() -> None:
    namespace = {
        "kind": "Namespace",
        "metadata": {"name": "dev", "annotations": {"yunikorn.apache.org/namespace.quota": '{"cpu": "2"}'}},
    }
    found = made(NODE, pod("p"), namespace, MAP, {"kind": "Service", "metadata": {"name": "s"}})
    assert found.config == QUEUES
    assert found.extra == {"log.level": "DEBUG"}
    [app] = of(found, lines.App)
    assert json.loads(app.tags["namespace.resourcequota"]) == {"resources": {"vcore": {"value": 2000}}}
    assert any("other kinds were passed over (1)" in note for note in found.notes)


def test_without_names() -> None:
    annotations = {"yunikorn.apache.org/task-groups": json.dumps(GROUPS)}
    names = Names(b"key")
    file = BytesIO()
    write_workload(made(NODE, pod("p", annotations=annotations), MAP), file, names)
    text = file.getvalue().decode()
    assert [name for name in EVERYTHING if name in text] == []
    assert (
        text.count(names.of("annabella")) == 3
    )  # the user of the application, that of a limit, and a label of the pod


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([pod("p")], "there is no node"),
        ([NODE], "no pod names the scheduler yunikorn; there are: no pods"),
        ([NODE, pod("p", scheduler="default-scheduler")], r"there are: default-scheduler \(1\). --scheduler-name"),
        ([NODE, {"metadata": {}}], "an object without a kind"),
        ([NODE, {"kind": "Pod", "metadata": {"name": "x"}, "spec": 3}], "Pod 'x': Expected `object`, got `int`"),
        ([{"kind": "Pod", "spec": {"nodeSelector": {"a": "b", "gpu": True}}}], r"nodeSelector\['gpu'\]"),
        ([NODE, pod("p", spec={"containers": [{"resources": {"requests": {"cpu": "many"}}}]})], "none of the pods"),
    ],
)
def test_objects_that_make_no_workload_are_told(objects: list[dict[str, Any]], expected: str) -> None:
    with pytest.raises(ImportedError, match=expected):
        made(*objects)


# -- the command --------------------------------------------------------------------------------------------

OBJECTS = [NODE, pod("p", node="n1"), pod("q", 5), MAP]


def as_yaml(*documents: object) -> str:
    text: str = yaml.safe_dump_all(documents)
    return text


FORMS = {
    "list.json": json.dumps({"kind": "List", "items": OBJECTS}, indent=2),
    "several.json": "\n".join(json.dumps(each) for each in OBJECTS),
    "bare.json": json.dumps(OBJECTS),
    "list.yaml": as_yaml({"kind": "List", "items": OBJECTS}),
    "documents.yaml": as_yaml(*OBJECTS),
    "empty.yaml": "# from a chart\n---\n# nothing\n---\n" + as_yaml(*OBJECTS),
    "unquoted.yaml": as_yaml(*OBJECTS).replace("'2026-11-03T10:00:00Z'", "2026-11-03T10:00:00Z"),
}


def laughing(many: str) -> str:
    """Return a small text of YAML of which each level has nine times the one below it."""
    lines = [
        f"k{n}: &a{n} {{kind: List, a{n}: 1, {many.format(ones=', '.join([f'*a{n - 1}'] * 9))}}}" for n in range(1, 12)
    ]
    return "k0: &a0 {kind: Pod}\n" + "\n".join(lines) + "\nkind: List\n"


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_give_the_same(tmp_path: Path, licorne: Command, name: str) -> None:
    file, out = tmp_path / name, tmp_path / "week.jsonl"
    file.write_text(FORMS[name], encoding="utf-8")
    done = licorne("convert", file, "-o", out)
    assert done.status == 0, done.err
    assert f"{out}: 2 asks" in done.err
    assert read_workload(out).lines == made(*OBJECTS).lines
    assert licorne("simulate", out).status == 0


@pytest.mark.parametrize("name", ["list.json", "list.yaml"])
def test_a_file_may_be_utf_16_as_powershell_writes_it(tmp_path: Path, licorne: Command, name: str) -> None:
    file = tmp_path / name
    file.write_text(FORMS[name], encoding="utf-16")
    assert licorne("convert", file, "-o", tmp_path / "week.jsonl").status == 0


def test_several_files_and_another_scheduler(tmp_path: Path, licorne: Command) -> None:
    files = []
    for number, each in enumerate([NODE, pod("p", scheduler="mine"), MAP]):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(each), encoding="utf-8")
    out = tmp_path / "week.jsonl"
    assert licorne("convert", *files, "-o", out, "--scheduler-name", "mine", "--anonymous").status == 0
    assert "annabella" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "List",\n "items": [}', ":2: not JSON"),
        ('{"kind": "List",\n "items": [', ":2: not JSON: Input data was truncated. It is cut off; fetch it again"),
        (
            '{"kind": "List", "items": []}\n{"kind": "Li',
            "not JSON: the document that begins in line 2 is cut off; fetch it",
        ),
        ("kind: List\nitems: [\n", "objects:3:1: not YAML: "),
        ("kind: List\nitems: &a [*a]\n", "objects:2:12: items[0][0]: the value of the anchor 'a' contains itself"),
        (laughing("items: [{ones}]"), "the document consists of aliases almost wholly"),
        (laughing("<<: [{ones}]"), "the document consists of aliases almost wholly"),
        ("just a text", "holds no objects of Kubernetes"),
        ('{"kind": "List", "items": []}', "there is no node"),
    ],
)
def test_bad_files_are_told_and_nothing_is_written(tmp_path: Path, licorne: Command, text: str, expected: str) -> None:
    file = tmp_path / "objects"
    file.write_text(text, encoding="utf-8")
    done = licorne("convert", file, "-o", tmp_path / "week.jsonl")
    assert done.status == 4
    assert expected in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["objects"]


def test_the_packages_of_the_extra_are_not_needed(tmp_path: Path) -> None:
    blocked = "sys.modules.update(dict.fromkeys(('aiohttp', 'lightkube', 'structlog'), None))"
    program = f"import sys; {blocked}; from licorne.cli import run; sys.exit(run(sys.argv[1:]))"
    file = tmp_path / "objects.json"
    file.write_text('{"kind": "List", "items": []}', encoding="utf-8")
    command = [sys.executable, "-c", program, "convert", str(file), "-o", str(tmp_path / "week.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "there is no node" in done.stderr) == (4, True), done.stderr
