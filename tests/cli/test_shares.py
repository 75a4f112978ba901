"""`licorne shares`: text, JSON and exit statuses. The sums are tested in `tests/answers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]
DUMP = str(Path(__file__).resolve().parents[2] / "examples" / "pods-wait" / "dump.json")


def test_the_same_as_text_and_as_json(licorne: Command) -> None:
    said = licorne("shares", "--from", DUMP)
    assert said.status == 0
    [part] = json.loads(licorne("shares", "--from", DUMP, "--json").out)["partitions"]
    assert {row["queue"] for row in part["queues"]} == {"root", "root.ads", "root.research", "root.search"}
    for words in ("who uses whose guarantee", "root.search", "user sue", "(unguaranteed)"):
        assert words in said.out


def test_an_unknown_partition_is_named(licorne: Command) -> None:
    done = licorne("shares", "--from", DUMP, "--partition", "gpu")
    assert (done.status, done.out) == (1, "")
    assert "there is no partition 'gpu'; there are: default" in done.err


def test_what_was_used_over_a_time_of_a_recording(licorne: Command, tmp_path: Path) -> None:
    holiday = Path(DUMP).parents[1] / "gpu-holiday" / "workload.jsonl"
    assert licorne("simulate", holiday, "--record", tmp_path / "rec").status == 0
    said = licorne("shares", "--from", tmp_path / "rec", "--since", "0", "--at", "7200").out
    assert "used in 2 h" in said
    assert "nvidia.com/gpu hours" in said
    hours = json.loads(licorne("shares", "--from", tmp_path / "rec", "--since", "3600", "--at", "7200", "--json").out)[
        "hours"
    ]
    assert (hours["since_s"], hours["until_s"]) == (3600, 7200)
    refused = licorne("shares", "--from", DUMP, "--since", "0")
    assert "only a recording knows the time before" in refused.err
    assert "is not before --at 5" in licorne("shares", "--from", tmp_path / "rec", "--since", "9", "--at", "5").err
