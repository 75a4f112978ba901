"""The manifests for Kubernetes, beside what else may be in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

MANIFESTS = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"


def manifests(kind: str) -> list[dict[str, Any]]:
    """Return all manifests of a kind."""
    documents = [one for file in MANIFESTS.glob("*.yaml") for one in YAML(typ="safe").load_all(file.read_text())]
    return [one for one in documents if one["kind"] == kind]


def test_an_admission_controller_of_yunikorn_leaves_licorne_to_kube_scheduler() -> None:
    """It would name `yunikorn`, so licorne itself, as the scheduler of licorne's pod (docs/spec/k8shim.md, section 12)."""
    (namespace,) = manifests("Namespace")
    (deployment,) = manifests("Deployment")
    assert namespace["metadata"]["annotations"]["yunikorn.apache.org/namespace.enableYuniKorn"] == "false"
    assert "schedulerName" not in deployment["spec"]["template"]["spec"]
