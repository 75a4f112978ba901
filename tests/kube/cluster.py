"""A real control plane of Kubernetes, and licorne in it, as the end-to-end tests use them.

licorne runs as `deploy/kubernetes` has it run: with the manifests applied, with the token of their ServiceAccount, and
with its requests in the API server's audit log, so that what it may do can be compared with what it does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx

from common.waiting import WAIT_S

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("LICORNE_CONTROLPLANE", ROOT / "build" / "controlplane" / "bin")).absolute()
MANIFESTS = ROOT / "deploy" / "kubernetes"
HOME: Final = "licorne"
"""The namespace of the manifests."""
ACCOUNT: Final = f"system:serviceaccount:{HOME}:licorne"
WATCHING: Final = f"system:serviceaccount:{HOME}:watching"
"""The account of a licorne that writes nothing."""
PORTS: Final = 6
"""Consecutive ports that the programs of a control plane take."""
FEATURES: Final = "--feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1beta1=true"
Y: Final = "yunikorn.apache.org/"

T = TypeVar("T")
Object = dict[str, Any]

AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT, WATCHING]}, {"level": "None"}],
}


class NotSoError(AssertionError):
    """What a case says did not come to be; the text has what was there instead."""


_given: Final[set[int]] = set()
_giving: Final = threading.Lock()


def free_ports(count: int = 1) -> int:
    """Return the first of some free ports that follow each other, below those from which connections go out.

    A port is given once: who was given it may listen only later, and two who got the same would answer for each other.
    """
    with _giving:
        while True:
            first = random.randrange(20000, 32000)
            ports = range(first, first + count)
            if _given.isdisjoint(ports) and all(map(_is_free, ports)):
                _given.update(ports)
                return first


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def comes(what: Callable[[], T], *, told: Callable[[], object] = lambda: "") -> T:
    """Wait until something is so (true, or not empty), and return it."""
    until = time.monotonic() + WAIT_S
    while not (found := what()):
        if time.monotonic() > until:
            raise NotSoError(f"this did not come to be within {WAIT_S:.0f} s; {told()}")
        time.sleep(0.1)
    return found


class ControlPlane:
    """etcd, API server, controllers and kwok on the loopback interface, with the manifests applied."""

    def __init__(self, folder: Path, *, nodes: int) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.audit = folder / "audit.jsonl"
        self.kubeconfig = self.run / "admin.kubeconfig"
        self.port = free_ports(PORTS)
        self._opened = False
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        self.environment = {
            **os.environ,
            "RUN": str(self.run),
            "BIN": str(PROGRAMS),
            "PORT": str(self.port),
            "NODES": str(nodes),
            "PYTHON": sys.executable,
            "KUBECONFIG": str(self.kubeconfig),
            "APISERVER_ARGS": f"{FEATURES} --audit-policy-file={policy} --audit-log-path={self.audit}",
        }

    def up(self) -> None:
        """Start it, and apply the manifests as a user does."""
        self._script("up.sh")
        context = ssl.create_default_context(cafile=str(self.run / "pki" / "ca.crt"))
        self.api = httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            verify=context,
            headers={"Authorization": "Bearer admin-token"},
            timeout=WAIT_S,
            limits=httpx.Limits(max_connections=32),
        )
        self._opened = True
        self.kubectl("apply", "-f", str(MANIFESTS / "namespace.yaml"))
        self.kubectl("apply", "-k", str(MANIFESTS), "--dry-run=server")
        self.kubectl("apply", "-k", str(MANIFESTS))

    def down(self) -> None:
        """Stop it, and remove what it wrote."""
        if self._opened:
            self.api.close()
        self._script("down.sh", WIPE="1")

    def start_kube_scheduler(self) -> None:
        """Start Kubernetes' own scheduler, which runs until the control plane is stopped."""
        self._script("kube-scheduler.sh")

    def _script(self, name: str, **more: str) -> None:
        command = [str(ROOT / "controlplane" / name)]
        done = subprocess.run(command, env={**self.environment, **more}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl, and return what it prints."""
        command = [str(PROGRAMS / "kubectl"), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, commands: str) -> None:
        """Run commands as a user does who has kubectl."""
        environment = {**self.environment, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
        command = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"

    # -- requests -----------------------------------------------------------------------------------------------

    def get(self, path: str, **query: str) -> Object:
        """Return an object or a list."""
        return self._answer(self.api.get(path, params=query))

    def find(self, path: str) -> Object | None:
        """Return an object, or None if there is none."""
        answer = self.api.get(path)
        return None if answer.status_code == 404 else self._answer(answer)

    def create(self, path: str, body: Object) -> Object:
        """Create an object in a collection."""
        return self._answer(self.api.post(path, json=body))

    def patch(self, path: str, body: object, kind: str = "merge-patch") -> Object:
        """Change fields of an object."""
        headers = {"Content-Type": f"application/{kind}+json"}
        return self._answer(self.api.patch(path, content=json.dumps(body), headers=headers))

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object, if it is there."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        answer = self.api.request("DELETE", path, json=body)
        if answer.status_code != 404:
            self._answer(answer)

    @staticmethod
    def _answer(answer: httpx.Response) -> Object:
        assert answer.is_success, f"{answer.request.method} {answer.request.url}: {answer.text}"
        found: Object = answer.json()
        return found

    # -- what licorne needs -------------------------------------------------------------------------------------

    def account_kubeconfig(self, name: str, port: int, account: str = ACCOUNT) -> Path:
        """Write a kubeconfig with a token of licorne's, or another, ServiceAccount alone, for an API server at this port."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{HOME}/serviceaccounts/{account.rpartition(':')[2]}/token"
        token = self.create(path, request)["status"]["token"]
        where = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.run / "pki" / "ca.crt")}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": where}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        made = self.folder / f"{name}.kubeconfig"
        made.write_text(json.dumps(content))
        return made

    def configure(self, data: dict[str, str], *, namespace: str = HOME, name: str = "yunikorn-configs") -> None:
        """Set the content of one of the ConfigMaps."""
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        answer = self.api.put(f"{path}/{name}", json=body)
        if answer.status_code == 404:
            self.create(path, body)
        else:
            self._answer(answer)

    def add_node(self, name: str, labels: dict[str, str] | None = None, **more: Any) -> None:
        """Add a node that kwok plays."""
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"} | more.pop("amounts", {})
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"type": "kwok", "kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": more,
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        self.create("/api/v1/nodes", body)


class Licorne:
    """A process of `licorne kube`, and what its REST says."""

    def __init__(
        self, plane: ControlPlane, name: str, *options: str, namespace: str = HOME, account: str = ACCOUNT
    ) -> None:
        self.plane = plane
        self.account = account
        self.options = options
        self.namespace = namespace
        self.name = name
        self.port = plane.port
        self.log_file = plane.folder / f"{name}.log"
        self.process: subprocess.Popen[str] | None = None
        self.address = f"127.0.0.1:{free_ports()}"
        self.rest = httpx.Client(base_url=f"http://{self.address}", timeout=WAIT_S)

    def start(self, options: list[str] | None = None) -> None:
        """Start it, with the rights of the manifests. `options` replace its usual ones."""
        usual = ["--rest", self.address, *self.options]
        command = [sys.executable, "-m", "licorne.cli", "kube", *(usual if options is None else options)]
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.plane.account_kubeconfig(self.name, self.port, self.account)),
            "NAMESPACE": self.namespace,
        }
        with self.log_file.open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True)

    def answers(self, path: str = "/readyz") -> bool:
        """Return whether a probe succeeds, by default that it is ready, so that the first decisions are made."""
        try:
            return self.rest.get(path).is_success
        except httpx.TransportError:
            return False

    def started(self) -> None:
        """Start it, and wait until it decides."""
        self.start()
        comes(self.answers, told=self.log)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it, and return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        """End it at once, if it runs, and ask it no more."""
        if self.process is not None:
            self.end(signal.SIGKILL)
        self.rest.close()

    def log(self) -> str:
        """Return what it has logged."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    def ask(self, path: str) -> Any:
        """Return what REST says, or None for 404; raises a NotSoError with the log where it does not answer."""
        try:
            answer = self.rest.get(path)
        except httpx.TransportError as error:
            ended = None if self.process is None else self.process.poll()
            raise NotSoError(f"{self.address}{path}: {error}; exit status {ended}; {self.log()}") from error
        if answer.status_code == 404:
            return None
        assert answer.is_success, answer.text
        return answer.json()

    def application(self, application_id: str) -> Object | None:
        """Return an application that runs or waits, as REST shows it."""
        found: Object | None = self.ask(f"/ws/v1/partition/default/application/{application_id}")
        return found

    def queue(self, name: str) -> Object | None:
        """Return a queue, as REST shows it."""
        found: Object | None = self.ask(f"/ws/v1/partition/default/queue/{name}")
        return found

    def node(self, name: str) -> Object | None:
        """Return a node, as REST shows it."""
        found: Object | None = self.ask(f"/ws/v1/partition/default/node/{name}")
        return found
