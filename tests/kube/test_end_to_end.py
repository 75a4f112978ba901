"""`licorne kube` on a real control plane of Kubernetes: the cases of `kube.cases`, with the rights of the manifests.

`make controlplane` builds the control plane from Go modules, and `make end-to-end` runs these tests. Cases wait most of
the time, so all that were chosen run at once, each in a namespace of its own, and a test here takes the result of one.
That needs a process of its own: beside other workers these tests are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

import pytest

from kube.access import Act, asked_for, may_do
from kube.cases import (
    Case,
    Place,
    amounts,
    applications,
    gangs,
    placing,
    refreshed,
    restarted,
    running,
    strange,
    together,
    told,
    workloads,
)
from kube.cases.place import QUEUES
from kube.cluster import HOME, MANIFESTS, PROGRAMS, ROOT, WATCHING, ControlPlane, Licorne, comes

CASES: Final = [
    *applications.CASES,
    *amounts.CASES,
    *gangs.CASES,
    *placing.CASES,
    *refreshed.CASES,
    *restarted.CASES,
    *running.CASES,
    *strange.CASES,
    *together.CASES,
    *told.CASES,
    *workloads.CASES,
]
AT_ONCE: Final = 12
LIMIT_S: Final = 3600
DEPLOYMENT: Final = "/apis/apps/v1/namespaces/{}/deployments/{}"

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(
        not (PROGRAMS / "kubebox").exists(), reason="needs a control plane: make controlplane, which needs Go"
    ),
    pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="has a process of its own: make end-to-end"),
    pytest.mark.timeout(LIMIT_S),
]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    made = ControlPlane(tmp_path_factory.mktemp("cluster"), nodes=3)
    began = time.monotonic()
    try:
        made.up()
        _prepare(made)
        sys.stderr.write(f"\ncontrol plane: up in {time.monotonic() - began:.1f} s\n")
        yield made
    finally:
        made.down()


def _prepare(plane: ControlPlane) -> None:
    """Make what cases share: queues, priority classes, a runtime class."""
    plane.configure({"queues.yaml": QUEUES})
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    plane.create(classes, {"metadata": {"name": "cases-high"}, "value": 1000})
    plane.create(classes, {"metadata": {"name": "cases-humble"}, "value": 0, "preemptionPolicy": "Never"})
    heavy = {"metadata": {"name": "cases-heavy"}, "handler": "none"}
    plane.create(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {**heavy, "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}},
    )


@pytest.fixture(scope="module")
def licorne(plane: ControlPlane) -> Iterator[Licorne]:
    made = Licorne(plane, "licorne")
    made.started()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, plane: ControlPlane, licorne: Licorne
) -> Iterator[dict[Case, Future[float]]]:
    """Run all cases that were chosen, at once."""
    own = (item for item in request.session.items if item.getparent(pytest.Module) is request.node)
    chosen = [item.callspec.params["case"] for item in own if hasattr(item, "callspec")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        cases = [case for case in CASES if case in chosen]
        yield {case: pool.submit(_run, case, plane, licorne) for case in cases}
        pool.shutdown(cancel_futures=True)


def _run(case: Case, plane: ControlPlane, licorne: Licorne) -> float:
    """Run a case, and return how many seconds it took."""
    began = time.monotonic()
    place = Place(plane, licorne, f"case-{CASES.index(case)}")
    try:
        case.run(place)
    finally:
        place.close()
    return time.monotonic() - began


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, results: dict[Case, Future[float]]) -> None:
    results[case].result(LIMIT_S)


def test_the_account_may_do_what_it_needs_and_no_more(plane: ControlPlane, results: dict[Case, Future[float]]) -> None:
    wait(results.values())
    used, refused = asked_for(plane)
    assert refused == set()
    assert used <= may_do(plane)
    if len(results) == len(CASES):
        # `list` is for an API server that does not stream what is there at the beginning of a watch; this one does.
        streamed = {act._replace(verb="list") for act in used if act.verb == "watch"}
        # The API server asks itself whether who gives devices to a claim may do so, which no audit log shows.
        asked_within = {Act(verb, "resource.k8s.io", "resourceclaims/binding") for verb in ("update", "patch")}
        assert may_do(plane) - used <= streamed | asked_within


def test_the_api_server_queues_requests_as_those_of_kube_scheduler(
    plane: ControlPlane, results: dict[Case, Future[float]]
) -> None:
    wait(results.values())
    counts = {}
    for line in plane.api.get("/metrics").text.splitlines():
        if line.startswith("apiserver_flowcontrol_dispatched_requests_total{") and 'flow_schema="licorne' in line:
            counts[line.split('flow_schema="')[1].partition('"')[0]] = 'priority_level="workload-high"' in line
    assert counts == {"licorne": True, "licorne-bindings": True}


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands need jq")
def test_the_commands_of_changing_over_work(
    plane: ControlPlane, licorne: Licorne, results: dict[Case, Future[float]]
) -> None:
    """Those of docs/use/kubernetes.md, from YuniKorn to licorne and back, where YuniKorn has only one of its ConfigMaps."""
    wait(results.values())
    copy, stop, service, page, back, remove = shell_blocks("Beside YuniKorn, instead of it, and back")
    assert remove == "kubectl delete -k deploy/kubernetes\n", "it ends what the other cases need, and is not run"
    plane.kubectl("create", "namespace", "yunikorn")
    plane.configure({"queues.yaml": QUEUES + "          - {name: copied}\n"}, namespace="yunikorn")
    images = ("--image=none", "--image=none/yunikorn-scheduler-web")  # whose last parts are the names of the containers
    plane.kubectl("-n", "yunikorn", "create", "deployment", "yunikorn-scheduler", *images)
    plane.kubectl("-n", "yunikorn", "create", "service", "clusterip", "yunikorn-service", "--tcp=9080:9080")
    try:
        plane.shell(copy.replace("yunikorn-defaults yunikorn-configs", "yunikorn-configs"))
        comes(lambda: licorne.queue("root.copied"), told=licorne.log)
        plane.shell(stop)
        assert plane.get(DEPLOYMENT.format("yunikorn", "yunikorn-scheduler"))["spec"]["replicas"] == 0
        plane.shell(service)
        moved = plane.get("/api/v1/namespaces/yunikorn/services/yunikorn-service")["spec"]
        name = plane.get(f"/api/v1/namespaces/{HOME}/services/licorne")["metadata"]["name"]
        assert (moved["type"], moved["externalName"]) == ("ExternalName", f"{name}.{HOME}.svc.cluster.local")
        plane.shell(page.rpartition("kubectl --namespace licorne port-forward")[0])  # which would not end
        (server,) = plane.get(DEPLOYMENT.format(HOME, "yunikorn-web"))["spec"]["template"]["spec"]["containers"]
        assert (server["image"], server["env"][0]["name"]) == ("none/yunikorn-scheduler-web", "PROXY_URL")
        plane.shell(back)
        replicas = [("yunikorn", "yunikorn-scheduler", 1), (HOME, "licorne", 0)]
        for namespace, name, expected in replicas:
            assert plane.get(DEPLOYMENT.format(namespace, name))["spec"]["replicas"] == expected
    finally:
        plane.kubectl("delete", "namespace", "yunikorn", "--wait=false")
        plane.kubectl("-n", HOME, "delete", "deployment,service", "yunikorn-web", "--ignore-not-found")
        plane.kubectl("apply", "-k", str(MANIFESTS))
        plane.configure({"queues.yaml": QUEUES})


READS: Final = [
    {"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["list", "watch"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["persistentvolumeclaims", "persistentvolumes"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["storage.k8s.io"],
        "resources": ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims", "resourceslices", "deviceclasses"],
        "verbs": ["list", "watch"],
    },
]
"""The rights that docs/use/kubernetes.md states for a licorne that writes nothing, and the ConfigMaps of its namespace."""


def test_a_dry_run_beside_kube_scheduler_writes_nothing(
    plane: ControlPlane, results: dict[Case, Future[float]]
) -> None:
    """It has the rights to read alone, and none of its requests is refused: it does not even try to write."""
    wait(results.values())
    rbac, meta = "/apis/rbac.authorization.k8s.io/v1", {"name": "watching"}
    account = [{"kind": "ServiceAccount", "name": "watching", "namespace": HOME}]
    plane.create(f"/api/v1/namespaces/{HOME}/serviceaccounts", {"metadata": meta})
    maps = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
    for path, kind, rules in (
        (rbac, "ClusterRole", READS),
        (f"{rbac}/namespaces/{HOME}", "Role", maps),
    ):
        plane.create(f"{path}/{kind.lower()}s", {"metadata": meta, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "watching"}
        plane.create(f"{path}/{kind.lower()}bindings", {"metadata": meta, "roleRef": role, "subjects": account})
    # A pod of another test that is still being deleted would count as one that ended before it was bound. Pods of licorne's
    # own Deployment stay.
    others = f"spec.schedulerName=default-scheduler,spec.nodeName=,metadata.namespace!={HOME}"
    comes(lambda: not plane.get("/api/v1/pods", fieldSelector=others)["items"])
    watching = Licorne(plane, "watching", "--dry-run", "--scheduler-name", "default-scheduler", account=WATCHING)
    plane.create("/api/v1/namespaces", {"metadata": {"name": "beside"}})
    comes(lambda: plane.find("/api/v1/namespaces/beside/serviceaccounts/default"))
    try:
        watching.started()
        for number in range(10):
            labels = {"applicationId": "beside", "queue": "root.open"}
            requests = {"cpu": "100m" if number else "1000", "memory": "1Mi"}  # the first fits nowhere
            container = {"name": "c", "image": "none", "resources": {"requests": requests}}
            plane.create(
                "/api/v1/namespaces/beside/pods",
                {"metadata": {"name": f"p{number}", "labels": labels}, "spec": {"containers": [container]}},
            )
        # So that licorne has decided before: kube-scheduler starts now.
        comes(lambda: _shadow(watching)["onlyLicorne"] >= 9, told=watching.log)
        plane.start_kube_scheduler()
        comes(lambda: sum(_shadow(watching)["pods"].values()) >= 9, told=watching.log)
        assert {name for name, number in _shadow(watching)["pods"].items() if number} <= {"same", "elsewhere"}
        assert watching.end() == 0
    finally:
        watching.close()
        plane.kubectl("delete", "namespace", "beside", "--wait=false")
    used, refused = asked_for(plane, WATCHING)
    assert used
    assert {act.verb for act in used} <= {"list", "watch"}
    assert refused == set()


def _shadow(licorne: Licorne) -> dict[str, Any]:
    """Return what a licorne that writes nothing says of the other scheduler."""
    found: dict[str, Any] = licorne.ask("/debug/fullstatedump")["rmDiagnostics"]["shadow"]
    return found


def shell_blocks(title: str) -> list[str]:
    """Return the blocks of commands below a title of the page docs/use/kubernetes.md."""
    _, _, part = (ROOT / "docs" / "use" / "kubernetes.md").read_text(encoding="utf-8").partition(f"## {title}\n")
    found = re.findall(r"^ *```\n(.*?)^ *```$", part.partition("\n## ")[0], re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


def test_the_command_and_the_probes_of_the_deployment_work(plane: ControlPlane, licorne: Licorne) -> None:
    """Beside a process that holds the Lease: this one lives, and only the other one is ready."""
    spec = plane.get(DEPLOYMENT.format(HOME, "licorne"))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["command"] == ["licorne", "kube"]
    made = Licorne(plane, "deployment")
    address = made.address.replace("127.0.0.1", "0.0.0.0")  # noqa: S104  as in a pod
    try:
        made.start([word.replace("0.0.0.0:9080", address) for word in container["args"]])
        for probe in ("startupProbe", "livenessProbe"):
            path = container[probe]["httpGet"]["path"]
            comes(lambda path=path: made.answers(path), told=made.log)  # type: ignore[misc]
        ready = container["readinessProbe"]["httpGet"]["path"]
        comes(lambda: licorne.answers(ready), told=licorne.log)
        assert made.rest.get(ready).status_code == 503
        assert made.end() == 0
        assert all(line.startswith("{") for line in made.log().splitlines())
    finally:
        made.close()
