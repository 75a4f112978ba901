"""The dashboard and the alert rules ask for metrics and labels that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rest.world import busy

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
WORDS = frozenset(
    [
        "sum",
        "by",
        "rate",
        "increase",
        "histogram_quantile",
        "absent",
        "abs",
        "ignoring",
        "on",
        "and",
        "or",
        "unless",
        "without",
        "max",
        "min",
        "avg",
        "count",
    ]
)
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def rules() -> list[dict[str, object]]:
    found = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield a name and an expression for each panel and alert."""
    for panel in json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for rule in rules():
        yield str(rule["alert"]), str(rule["expr"])


def asked_for(expression: str) -> tuple[set[str], set[str]]:
    """Return the metrics and the labels that an expression names."""
    labels = {
        label for found in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+)\s*(?:=|!)", found)
    }
    grouped = re.findall(r"(?:by|ignoring|on|without)\s*\(([^)]*)\)", expression)
    labels |= {label for found in grouped for label in NAME.findall(found)}
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"", "", expression)
    bare = re.sub(r"(?:by|ignoring|on|without)\s*\([^)]*\)", "", bare)
    return set(NAME.findall(bare)) - WORDS, labels - {"le"}


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The labels of each metric, as the page of metrics lists them and a running scheduler names them."""
    world = busy()
    world.monitor.tick()
    text = world.request("GET", "/ws/v1/metrics").text
    found: dict[str, set[str]] = {}
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        endings = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        found |= {name + ending: set() for ending in endings}
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\}", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    for names, cell in re.findall(r"^\| (`[^|]+) \| [^|]+ \| ([^|]*)\|", page, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            for whole in (name, f"yunikorn_scheduler_{name}", f"{name}_bucket"):
                found.get(whole, set()).update(re.findall(r"`(\w+)`", cell))
    return found


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_an_expression_asks_for_what_exists(known: dict[str, set[str]], name: str, expression: str) -> None:
    metrics, labels = asked_for(expression)
    assert metrics
    assert metrics <= known.keys(), name
    assert labels <= set().union(*(known[metric] for metric in metrics)), name


def test_the_check_would_find_a_misspelt_metric_and_label() -> None:
    metrics, labels = asked_for('sum by (kue) (rate(yunikorn_queue_apq{state="x"}[5m])) > 3')
    assert (metrics, labels) == ({"yunikorn_queue_apq"}, {"kue", "state"})


def test_each_alert_says_what_is_wrong_and_what_to_look_at() -> None:
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}  # type: ignore[index]
        assert {"summary", "description"} == set(rule["annotations"])  # type: ignore[call-overload]


def test_the_dashboard_is_what_its_list_of_panels_makes() -> None:
    assert (
        subprocess.run([sys.executable, str(ROOT / "tools" / "dashboard.py"), "--check"], check=False).returncode == 0
    )


def test_the_service_monitor_finds_the_service_of_the_manifests() -> None:
    monitor = yaml.safe_load((MONITORING / "servicemonitor.yaml").read_text(encoding="utf-8"))
    manifests = ROOT / "deploy" / "kubernetes"
    service = yaml.safe_load((manifests / "service.yaml").read_text(encoding="utf-8"))
    namespace = yaml.safe_load((manifests / "kustomization.yaml").read_text(encoding="utf-8"))["namespace"]
    assert monitor["metadata"]["namespace"] == namespace
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert busy().request("GET", endpoint["path"]).status_code == 200
