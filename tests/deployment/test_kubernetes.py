"""The manifests for Kubernetes, beside what else may be in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from licorne.host.security import Security
from licorne.host.web.rest.endpoints import ENDPOINTS
from licorne.host.web.server import Web
from licorne.kube.api.kinds import LEASES, WORKLOADS
from licorne.kube.lease import NAME

MANIFESTS = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
ALL_PODS = MANIFESTS.parent / "default-scheduler"


def manifests(kind: str) -> list[dict[str, Any]]:
    """Return all manifests of a kind."""
    documents = [one for file in MANIFESTS.glob("*.yaml") for one in yaml.safe_load_all(file.read_text())]
    return [one for one in documents if one["kind"] == kind]


def test_an_admission_controller_of_yunikorn_leaves_licorne_to_kube_scheduler() -> None:
    """It would name `yunikorn`, so licorne itself, as the scheduler of licorne's pod (docs/spec/k8shim.md, section 12)."""
    (namespace,) = manifests("Namespace")
    (deployment,) = manifests("Deployment")
    assert namespace["metadata"]["annotations"]["yunikorn.apache.org/namespace.enableYuniKorn"] == "false"
    assert "schedulerName" not in deployment["spec"]["template"]["spec"]


def container() -> dict[str, Any]:
    """Return the container of the Deployment."""
    (deployment,) = manifests("Deployment")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_as_installed_everybody_may_read_and_nobody_may_change_anything() -> None:
    arguments = container()["args"]
    assert "--insecure" in arguments
    web = Web(addresses=(arguments[arguments.index("--rest") + 1],))
    assert not web.access.wanted
    assert Security(insecure=True).exposed(web.addresses, tokens=False), "so `WebServer` lets nobody change anything"


def test_the_network_policy_that_lies_beside_is_about_the_port_of_rest() -> None:
    (policy,) = manifests("NetworkPolicy")
    (deployment,) = manifests("Deployment")
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    (rule,) = policy["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [port["name"] for port in container()["ports"]]
    (kustomization,) = manifests("Kustomization")
    assert "networkpolicy.yaml" not in kustomization["resources"], "reading is a choice"


def test_the_probes_ask_what_rest_answers() -> None:
    found = container()
    paths = {endpoint.path for endpoint in ENDPOINTS}
    probes = {name: found[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert set(probes.values()) <= paths
    assert probes["readinessProbe"] == "/readyz"
    assert probes["livenessProbe"] != "/readyz", "one that waits for the lease is alive"


def test_the_account_may_take_the_lease_and_no_other() -> None:
    rules = [rule for role in manifests("Role") for rule in role["rules"] if rule["resources"] == [LEASES.plural]]
    assert all(rule["apiGroups"] == [LEASES.group.split("/")[2]] for rule in rules)
    named = [rule["verbs"] for rule in rules if rule.get("resourceNames") == [NAME]]
    assert (named, [rule["verbs"] for rule in rules if "resourceNames" not in rule]) == (
        [["get", "patch"]],
        [["create"]],
    )


def test_what_is_put_over_the_manifests_to_place_all_pods_fits_them() -> None:
    """kustomize patches objects by kind, name and namespace, and refuses those that are not there."""
    overlay = yaml.safe_load((ALL_PODS / "kustomization.yaml").read_text())
    (base,) = overlay["resources"]
    assert (ALL_PODS / base).resolve() == MANIFESTS
    (kustomization,) = manifests("Kustomization")
    kinds = ("ConfigMap", "Deployment", "ClusterRole")
    named = {(one["kind"], one["metadata"]["name"]) for kind in kinds for one in manifests(kind)}
    queues, deployment, role = overlay["patches"]
    patch = yaml.safe_load((ALL_PODS / queues["path"]).read_text())
    assert (patch["kind"], patch["metadata"]["name"]) in named
    assert patch["metadata"]["namespace"] == kustomization["namespace"]
    for one in (deployment, role):
        assert (one["target"]["kind"], one["target"]["name"]) in named
    changes = [(change["path"], change["value"]) for change in yaml.safe_load(deployment["patch"])]
    assert changes == [
        ("/spec/template/spec/containers/0/args/-", "--scheduler-name=licorne"),
        ("/spec/template/spec/containers/0/args/-", "--spread-defaults=system"),
        ("/spec/template/spec/schedulerName", "kube-scheduler"),  # nobody can place the pod in which it runs
    ]
    more = [change["value"] for change in yaml.safe_load(role["patch"])]
    assert {plural for rule in more for plural in rule["resources"]} == {kind.plural for kind in WORKLOADS}
    assert all(rule["verbs"] == ["list", "watch"] for rule in more)
