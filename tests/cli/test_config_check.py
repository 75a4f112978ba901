"""`licorne config check`: a line for each fault, and the exit status."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
GOOD = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
BAD = GOOD + "        maxapplications: many\n        colour: red\n"


@pytest.mark.parametrize(("text", "status"), [(GOOD, 0), (BAD, 1)])
def test_the_exit_status_is_the_verdict(licorne: Command, tmp_path: Path, text: str, status: int) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    assert licorne("config", "check", path).status == status
    assert licorne("config", "check", path, "--json").status == status


def test_a_fault_is_a_line_with_its_place(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(BAD)
    outcome = licorne("config", "check", path)
    lines = outcome.out.splitlines()
    assert any(line.startswith(f"{path}:6:") for line in lines)
    assert any(line.startswith(f"{path}:7:") for line in lines)
    report = json.loads(licorne("config", "check", path, "--json").out)
    assert {fault["line"] for fault in report["faults"]} >= {6, 7}
    assert len(lines) == len(report["faults"]) + len(report["warnings"])


def test_a_warning_refuses_nothing(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "partitions:\n  - name: default\n    placementrules:\n      - name: fixed\n        value: root.a\n"
        "        filter: {type: DENY, users: [u1]}\n    queues:\n      - name: root\n        submitacl: '*'\n"
        "        queues:\n          - name: a\n"
    )
    outcome = licorne("config", "check", path)
    assert outcome.status == 0
    assert "(warning)" in outcome.out


CONFIGMAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "yunikorn-configs"},
    "data": {"log.level": "info", "queues.yaml": GOOD},
}


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {
        **CONFIGMAP,
        "metadata": {"name": name},
        "data": {key.replace("_", "."): text for key, text in data.items()},
    }


def test_a_configmap_is_checked_by_what_it_holds(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "cm.yaml"
    path.write_text(json.dumps(CONFIGMAP))
    outcome = licorne("config", "check", path)
    assert outcome.status == 0
    assert outcome.err == f"{path}[queues.yaml]: valid\n"
    path.write_text(json.dumps({**CONFIGMAP, "data": {"queues.yaml": BAD}}))
    outcome = licorne("config", "check", path)
    assert outcome.status == 1
    assert outcome.out.startswith(f"{path}[queues.yaml]:6:")


def test_of_a_list_the_configs_replace_the_defaults_key_by_key(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    others = [configmap("kube-root-ca.crt", ca_crt="x"), {"kind": "Secret", "metadata": {"name": "yunikorn-configs"}}]
    for defaults, configs, status in (
        (configmap("yunikorn-defaults", queues_yaml=BAD), configmap("yunikorn-configs", queues_yaml=GOOD), 0),
        (configmap("yunikorn-defaults", queues_yaml=GOOD), configmap("yunikorn-configs", queues_yaml=BAD), 1),
        (configmap("yunikorn-defaults", queues_yaml=GOOD), configmap("yunikorn-configs", log_level="info"), 0),
    ):
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*others, configs, defaults]}))
        assert licorne("config", "check", path).status == status
        path.write_text("\n---\n".join(json.dumps(item) for item in [configs, *others, defaults]))
        assert licorne("config", "check", path).status == status
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": others}))
    outcome = licorne("config", "check", path)
    assert outcome.status == 1
    assert "there is no ConfigMap yunikorn-defaults or yunikorn-configs; there is: kube-root-ca.crt" in outcome.out


@pytest.mark.parametrize(
    ("key", "text", "warning"),
    [
        ("log.level", "info", ""),
        ("log.core.rest.level", "DEBUG", ""),
        ("service.placeholderImage", "", ""),
        ("licorne.scheduled-events", "true", ""),
        ("gpu.yaml", GOOD, ""),
        ("service.placeHolderImage", "x", "no such setting; did you mean service.placeholderImage? [setting-unknown]"),
        ("log.level", "loud", "it means the default, info [setting-value]"),
        ("reservation.delay", "soon", "'soon': must be a duration like 2s or 1m30s; it is refused [setting-value]"),
        ("service.schedulingInterval", "1", "must be a duration like 2s or 1m30s [setting-value]"),
        (
            "service.policyGroup",
            "gpu",
            "queues.yaml: is read only if service.policyGroup is queues; the key of the queue configuration is gpu.yaml",
        ),
    ],
)
def test_settings_beside_a_configuration_that_say_nothing_are_warned_of(
    licorne: Command, tmp_path: Path, key: str, text: str, warning: str
) -> None:
    path = tmp_path / "cm.yaml"
    path.write_text(json.dumps(configmap("yunikorn-configs") | {"data": {"queues.yaml": GOOD, key: text}}, indent=1))
    outcome = licorne("config", "check", path)
    assert (outcome.status, outcome.out.count("\n")) == (0, bool(warning))
    assert warning in outcome.out
    assert licorne("config", "check", "--strict", path).status == (6 if warning else 0)
    if warning and key != "service.policyGroup":
        assert outcome.out.startswith(f"{path}:9:1: {key}: ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: ConfigMap\ndata: {log.level: info}\n", "there is no queues.yaml, the key of the queue configuration"),
        ("kind: Deployment\nspec: {}\n", "'Deployment': give a ConfigMap, or a queue configuration"),
        ("kind: ConfigMap\ndata:\n  queues.yaml:\n    partitions: []\n", "queues.yaml: must be a text (write `|`"),
        ("kind: List\nitems: 3\n", "items must be a list of ConfigMaps"),
        ("service.policyGroup: gpu\nqueues.yaml: ''\n", ""),
    ],
)
def test_a_configmap_without_a_configuration_is_refused(
    licorne: Command, tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "cm.yaml"
    path.write_text(text)
    outcome = licorne("config", "check", path)
    assert outcome.status == (1 if complaint else 0)
    assert complaint in outcome.out
    outcome = licorne("place", "--config", path, "--user", "ada")
    assert outcome.status == 5
    assert (complaint or "there is no gpu.yaml") in outcome.err


def test_each_file_is_checked_and_the_gravest_status_counts(licorne: Command, tmp_path: Path) -> None:
    good, bad, none = tmp_path / "good.yaml", tmp_path / "bad.yml", tmp_path / "none.yaml"
    good.write_text(GOOD)
    bad.write_text(BAD)
    (tmp_path / "notes.txt").write_text("not YAML: [")
    outcome = licorne("config", "check", tmp_path)
    assert outcome.status == 1
    assert [line.split(": ")[0] for line in outcome.err.splitlines()] == [str(bad), str(good)]
    outcome = licorne("config", "check", none, bad, good)
    assert outcome.status == 4
    assert f"{none}: no such file" in outcome.err
    assert f"{good}: valid" in outcome.err
    (tmp_path / "empty").mkdir()
    outcome = licorne("config", "check", tmp_path / "empty")
    assert outcome.status == 4
    assert "no *.yaml in this folder" in outcome.err


def test_a_hyphen_is_standard_input(licorne: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, status in (
        (("config", "check", "-"), 1),
        (("place", "--config", "-", "--user", "ada"), 5),
        (("simulate", "examples/migration/small.jsonl", "--config", "-"), 5),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
        outcome = licorne(*arguments)
        assert outcome.status == status
        assert "<stdin>:6:" in outcome.out + outcome.err
    assert licorne("config", "check", "--strct").status == 2


def test_strict_lets_warnings_fail(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(GOOD + "        properties: {colour: red}\n")
    assert licorne("config", "check", path).status == 0
    outcome = licorne("config", "check", path, "--strict")
    assert outcome.status == 6
    assert "which --strict refuses" in outcome.err


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pods-wait"


def test_beside_a_cluster_more_is_warned_of(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        (EXAMPLE / "queues.yaml").read_text().replace("guaranteed: {vcore: 16}", "guaranteed: {vcore: 100}")
    )
    path.write_text(
        path.read_text().replace("max: {vcore: 24}", "max: {vcore: 200}").replace("vcore: 48", "vcore: 100")
    )
    alone = licorne("config", "check", "--strict", path)
    assert (alone.status, alone.out) == (0, "")
    outcome = licorne("config", "check", path, "--from", EXAMPLE / "dump.json", "--json")
    warnings = json.loads(outcome.out)["warnings"]
    assert {each["rule"] for each in warnings} == {"cluster-guarantees", "cluster-unbound"}
    assert licorne("config", "check", "--strict", path, "--from", EXAMPLE / "dump.json").status == 6


def test_a_cluster_that_cannot_be_read_is_said(licorne: Command, tmp_path: Path) -> None:
    outcome = licorne("config", "check", EXAMPLE / "queues.yaml", "--from", tmp_path / "nowhere.json")
    assert outcome.status == 4
    assert "nowhere.json: No such file or directory" in outcome.err


def test_a_workload_is_compared_with_too(licorne: Command, tmp_path: Path) -> None:
    workload = tmp_path / "w.jsonl"
    lines = [
        {"t": "meta", "name": "w", "version": 2},
        {"t": "node", "id": "n1", "res": {"vcore": 4000}},
        {"t": "app", "id": "a", "queue": "root.small", "user": "ann"},
        {"t": "ask", "key": "k", "app": "a", "res": {"vcore": 3000}},
        {"t": "app", "id": "b", "queue": "root.gone", "user": "ann"},
    ]
    workload.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = tmp_path / "queues.yaml"
    path.write_text(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
        "{name: small, resources: {max: {vcore: 2}}}, {name: big, resources: {guaranteed: {vcore: 8}}}]}]}]"
    )
    found = licorne("config", "check", path, "--from", workload).out
    assert "pod k" in found
    assert "root.gone" in found
    assert "cluster-guarantees" in found
