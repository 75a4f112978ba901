"""`licorne place`: the queue, or the reason for none, and the answer of each rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
CONFIG = """
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
        parent: {name: user, create: true}
      - name: provided
      - name: fixed
        value: last
        filter: {type: allow, groups: [dev]}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: batch
            queues:
              - name: night
          - name: last
  - name: gpu
    queues:
      - name: root
        queues:
          - name: default
            submitacl: ada
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize(
    ("arguments", "queue"),
    [
        (("--user", "ada", "--tag", "namespace=blue"), "root.ada.blue"),
        (("--user", "ada", "--queue", "root.batch.night"), "root.batch.night"),
        (("--user", "ada", "--group", "ops", "--group", "dev"), "root.last"),
        (("--user", "ada"), None),
        (("--user", "ada", "--force"), "root.@recovery@"),
        (("--user", ""), None),
        (("--user", "", "--force"), "root.@recovery@"),
        (("--user", "ada", "--partition", "gpu", "--queue", "root.default"), "root.default"),
        (("--user", "bob", "--partition", "gpu", "--queue", "root.default"), None),
    ],
)
def test_the_chosen_queue_or_none_is_shown(
    licorne: Command, config: Path, arguments: tuple[str, ...], queue: str | None
) -> None:
    outcome = licorne("place", "--config", config, *arguments)
    assert outcome.status == (0 if queue is not None else 1)
    first = outcome.out.splitlines()[0]
    assert first.startswith(queue if queue is not None else "none: ")
    answer = json.loads(licorne("place", "--config", config, *arguments, "--json").out)
    assert answer["queue"] == queue
    assert (answer["reason"] == "") == (queue is not None)


def test_each_rule_shows_its_answer(licorne: Command, config: Path) -> None:
    outcome = licorne("place", "--config", config, "--user", "ada", "--queue", "root.batch")
    rules = [line.split(":")[0].strip() for line in outcome.out.splitlines()[1:]]
    assert rules == ["1. tag", "2. provided", "3. fixed", "4. recovery"]
    assert "the application has no tag 'namespace'" in outcome.out
    assert "queue root.batch is not a leaf" in outcome.out
    assert "its filter keeps out user 'ada'" in outcome.out


@pytest.mark.parametrize(
    ("root", "child", "admitted"),
    [
        ("submitacl: '*'", "submitacl: ann", "ann may submit there: submitacl of root.a"),
        ("submitacl: '*'", "submitacl: ben", "ann may submit there: submitacl of root"),
        ("adminacl: ' dev'", "submitacl: ben", "ann may submit there: adminacl of root"),
        ("submitacl: ben", "submitacl: ben", ""),
    ],
)
def test_the_list_that_lets_the_user_in_is_named(
    licorne: Command, tmp_path: Path, root: str, child: str, admitted: str
) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(f"partitions: [{{queues: [{{name: root, {root}, queues: [{{name: a, {child}}}]}}]}}]")
    arguments = ("place", "--config", path, "--user", "ann", "--group", "dev", "--queue", "root.a")
    last = licorne(*arguments).out.splitlines()[-1]
    assert (last.strip() == admitted) if admitted else ("may submit" not in last)
    key = json.loads(licorne(*arguments, "--json").out)["admitted_by"]
    assert key == (
        ": ".join(reversed(admitted.removeprefix("ann may submit there: ").split(" of "))) if admitted else ""
    )


def test_the_recovery_queue_asks_for_no_permission(licorne: Command, config: Path) -> None:
    outcome = licorne("place", "--config", config, "--user", "ann", "--force")
    assert outcome.out.startswith("root.@recovery@")
    assert "may submit" not in outcome.out


def test_an_unknown_partition_is_an_error(licorne: Command, config: Path) -> None:
    outcome = licorne("place", "--config", config, "--user", "ada", "--partition", "tpu")
    assert outcome.status == 5
    assert "there is no partition 'tpu'; there is: default, gpu" in outcome.err


def test_a_tag_is_key_and_value(licorne: Command, config: Path) -> None:
    assert "--tag 'x': is written KEY=VALUE" in licorne("place", "--config", config, "--user", "a", "--tag", "x").err


def test_a_refused_configuration_is_explained(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text("partitions:\n  - name: default\n    quues: []\n")
    outcome = licorne("place", "--config", path, "--user", "ada")
    assert outcome.status == 5
    assert f"{path}:3:" in outcome.err


def test_strict_refuses_a_configuration_with_warnings(licorne: Command, config: Path) -> None:
    arguments = ("place", "--config", config, "--user", "ada", "--queue", "root.batch.night")
    assert licorne(*arguments, "--strict").status == 0
    config.write_text(CONFIG.replace("- name: night", "- {name: night, properties: {colour: red}}"))
    assert licorne(*arguments).status == 0
    outcome = licorne(*arguments, "--strict")
    assert outcome.status == 6
    assert "[property-unknown]" in outcome.err
