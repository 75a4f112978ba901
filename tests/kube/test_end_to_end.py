"""`licorne kube` on a real control plane of Kubernetes: what can be seen from outside, case by case.

`make controlplane` builds the control plane, from Go modules. Where it is not built these tests are skipped.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("LICORNE_CONTROLPLANE", ROOT / "build" / "controlplane" / "bin")).absolute()
WAIT_S = 30.0

pytestmark = [
    pytest.mark.skipif(
        not (PROGRAMS / "kubebox").exists(), reason="needs a control plane: make controlplane, which needs Go"
    ),
    pytest.mark.xdist_group("controlplane"),
    pytest.mark.timeout(300),
]

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: small
            resources: {max: {vcore: 2}}
          - name: large
          - name: gangs
            properties: {application.sort.policy: fifo}
          - name: whole
            properties: {gang.scheduling: atomic}
"""
Y = "yunikorn.apache.org/"


def free_port() -> int:
    """Return a port that is followed by free ones, for the programs of the control plane."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
        if port < 60000:
            return port


class Cluster:
    """A control plane with three nodes, and licorne in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "run" / "admin.kubeconfig"
        self.environment = {
            **os.environ,
            "RUN": str(folder / "run"),
            "BIN": str(PROGRAMS),
            "PORT": str(free_port()),
            "NODES": "3",
            "PYTHON": sys.executable,
            "KUBECONFIG": str(self.kubeconfig),
        }
        self.licorne: subprocess.Popen[str] | None = None
        self.rest = f"127.0.0.1:{free_port()}"

    def script(self, name: str, **more: str) -> None:
        """Run a script of the control plane."""
        command = [str(ROOT / "controlplane" / name)]
        done = subprocess.run(command, env={**self.environment, **more}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def kubectl(self, *arguments: str, given: object = None) -> str:
        """Run kubectl."""
        done = subprocess.run(
            [str(PROGRAMS / "kubectl"), *arguments],
            env=self.environment,
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Start licorne."""
        command = [sys.executable, "-m", "licorne.cli", "kube", "--rest", self.rest]
        with (self.folder / "licorne.log").open("a") as log:
            self.licorne = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, text=True)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End licorne, and return its exit status."""
        assert self.licorne is not None
        self.licorne.send_signal(number)
        return self.licorne.wait(20)

    def add_pod(
        self,
        name: str,
        queue: str,
        *,
        application: str = "",
        cpu: str = "1",
        annotations: dict[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Create a pod."""
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"applicationId": application or name, "queue": f"root.{queue}"},
                "annotations": annotations or {},
            },
            "spec": {
                "schedulerName": "yunikorn",
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }
        self.kubectl("create", "-f", "-", given=pod)

    def pods(self) -> dict[str, str]:
        """Return the node of each pod, "" for one that waits."""
        items = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    def events(self) -> str:
        """Return reason and note of all events."""
        items = json.loads(self.kubectl("get", "events", "-o", "json"))["items"]
        return "\n".join(f"{item['reason']}: {item['message']}" for item in items)

    def log(self) -> str:
        """Return what licorne has logged."""
        return (self.folder / "licorne.log").read_text()


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.script("up.sh")
    try:
        yield made
    finally:
        made.script("down.sh", WIPE="1")


@pytest.fixture
def cluster(control_plane: Cluster) -> Iterator[Cluster]:
    data = {"queues.yaml": QUEUES, "service.clusterId": "test"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yunikorn-configs"}, "data": data}
    control_plane.kubectl("apply", "-f", "-", given=config)
    control_plane.start()
    try:
        yield control_plane
    finally:
        if control_plane.licorne is not None and control_plane.licorne.poll() is None:
            control_plane.end(signal.SIGKILL)
        control_plane.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")


def comes(what: Callable[[], bool], cluster: Cluster) -> None:
    """Wait until something is so."""
    until = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < until, f"{cluster.pods()}\n{cluster.events()}\n{cluster.log()}"
        time.sleep(0.2)


def bound(cluster: Cluster, *names: str) -> Callable[[], bool]:
    """Return a test of whether all of these pods have nodes."""
    return lambda: all(cluster.pods().get(name) for name in names)


def test_a_pod_is_bound_and_a_quota_holds_another_back(cluster: Cluster) -> None:
    cluster.add_pod("p1", "small", cpu="2")
    comes(bound(cluster, "p1"), cluster)
    cluster.add_pod("p2", "small", cpu="1")
    cluster.add_pod("p3", "large")
    comes(bound(cluster, "p3"), cluster)
    assert not cluster.pods()["p2"]
    cluster.kubectl("delete", "pod", "p1")
    comes(bound(cluster, "p2"), cluster)


def test_pods_of_other_schedulers_are_left_alone(cluster: Cluster) -> None:
    cluster.add_pod("other", "large", schedulerName="default-scheduler")
    cluster.add_pod("ours", "large")
    comes(bound(cluster, "ours"), cluster)
    assert not cluster.pods()["other"]


def test_selectors_taints_and_cordons_count(cluster: Cluster) -> None:
    cluster.kubectl("label", "node", "kwok-00001", "disk=ssd", "--overwrite")
    cluster.kubectl("taint", "node", "kwok-00002", "gpu=yes:NoSchedule", "--overwrite")
    cluster.kubectl("cordon", "kwok-00000")
    try:
        cluster.add_pod("selects", "large", nodeSelector={"disk": "ssd"})
        cluster.add_pod("tolerates", "large", tolerations=[{"key": "gpu"}], nodeSelector={"type": "kwok"})
        cluster.add_pod("nowhere", "large", nodeSelector={"kubernetes.io/hostname": "kwok-00000"})
        gpu = [{"key": "gpu", "operator": "Exists"}]
        cluster.add_pod("there", "large", tolerations=gpu, nodeSelector={"kubernetes.io/hostname": "kwok-00002"})
        comes(bound(cluster, "selects", "tolerates", "there"), cluster)
        pods = cluster.pods()
        assert (pods["selects"], pods["there"], pods["nowhere"]) == ("kwok-00001", "kwok-00002", "")
        cluster.kubectl("uncordon", "kwok-00000")
        comes(bound(cluster, "nowhere"), cluster)
    finally:
        cluster.kubectl("uncordon", "kwok-00000")
        cluster.kubectl("taint", "node", "kwok-00002", "gpu-")


def gang(members: int) -> dict[str, str]:
    """Return the annotations of a pod of a gang."""
    groups = [{"name": "g", "minMember": members, "minResource": {"cpu": "1", "memory": "64Mi"}}]
    return {Y + "task-groups": json.dumps(groups), Y + "task-group-name": "g"}


def test_a_gang_takes_the_places_of_its_placeholders(cluster: Cluster) -> None:
    cluster.add_pod("g1", "gangs", application="gang", annotations=gang(3))
    comes(lambda: sum(name.startswith("tg-gang-g-") for name in cluster.pods()) >= 2, cluster)
    comes(bound(cluster, "g1"), cluster)
    for name in ("g2", "g3"):
        cluster.add_pod(name, "gangs", application="gang", annotations=gang(3))
    comes(lambda: set(cluster.pods()) == {"g1", "g2", "g3"} and all(cluster.pods().values()), cluster)
    assert "CreatingPlaceholders" in cluster.kubectl("get", "events.events.k8s.io", "-o", "json")


def test_a_gang_is_placed_as_a_whole_where_the_queue_says_so(cluster: Cluster) -> None:
    cluster.add_pod("w1", "whole", application="whole", annotations=gang(2))
    time.sleep(2.0)
    assert cluster.pods() == {"w1": ""}
    cluster.add_pod("w2", "whole", application="whole", annotations=gang(2))
    comes(bound(cluster, "w1", "w2"), cluster)


def test_a_killed_process_goes_on_where_the_cluster_is(cluster: Cluster) -> None:
    cluster.add_pod("k1", "small", cpu="2")
    comes(bound(cluster, "k1"), cluster)
    cluster.end(signal.SIGKILL)
    cluster.add_pod("k2", "small")
    cluster.add_pod("k3", "large")
    cluster.start()
    comes(bound(cluster, "k3"), cluster)
    assert not cluster.pods()["k2"]
    assert cluster.end() == 0


def test_pods_that_are_gated_or_strange_wait_and_others_go_on(cluster: Cluster) -> None:
    cluster.add_pod("gated", "large", schedulingGates=[{"name": "example.com/wait"}])
    cluster.add_pod("odd", "large", annotations={Y + "task-groups": "{", Y + "user.info": "["})
    cluster.add_pod("claim", "large", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}])
    comes(bound(cluster, "odd"), cluster)
    comes(lambda: "unable to get taskGroups" in cluster.events(), cluster)
    assert (cluster.pods()["gated"], cluster.pods()["claim"]) == ("", "")
    patch = '[{"op":"remove","path":"/spec/schedulingGates"}]'
    cluster.kubectl("patch", "pod", "gated", "--type=json", "-p", patch)
    comes(bound(cluster, "gated"), cluster)


def test_a_configuration_changes_at_once_or_is_refused(cluster: Cluster) -> None:
    cluster.add_pod("big", "small", cpu="3")
    cluster.add_pod("first", "large")
    comes(bound(cluster, "first"), cluster)
    broken = json.dumps({"data": {"queues.yaml": "partitions: ["}})
    cluster.kubectl("patch", "configmap", "yunikorn-configs", "-p", broken)
    comes(lambda: "ConfigurationRefused" in cluster.events(), cluster)
    larger = json.dumps({"data": {"queues.yaml": QUEUES.replace("vcore: 2", "vcore: 4")}})
    cluster.kubectl("patch", "configmap", "yunikorn-configs", "-p", larger)
    comes(bound(cluster, "big"), cluster)
