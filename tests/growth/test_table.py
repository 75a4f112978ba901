"""docs/reference/limits.md lists every table of the core, with the code that shrinks it: a new table gets a line there, or is short-lived."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "src" / "licorne" / "core"
HEADING = "## What grows, and who shrinks it\n"
TABLES = {"deque", "dict", "list", "set", "Minima", "Order", "PriorityBag"}
SHORT_LIVED = {
    "Columns": "of a fixed size, as is `Grid`",
    "Filling": "one look for work that may run in front of a gang",
    "Grid": "eight levels of two types",
    "VictimGroup": "the choice in one leaf (`leaf_victims`)",
    "SettingTable": "the settings that there are",
    "ScorePolicy": "the weights of a configuration",
    "LeafVictimSearch": "one search for victims in a leaf",
    "VictimSearch": "one search for victims",
    "Verdicts": "one search for victims",
    "StaticTree": "one check of a configuration",
    "DeviceRoom": "one search for victims",
    "Trial": "one trial of a gang",
    "GangPacking": "one search in a trial of a gang",
    "_Objects": "the contract of checkpoints",
    "_Found": "one checkpoint that is taken",
    "_Members": "one checkpoint that is taken",
    "_Source": "one checkpoint that is restored",
}
"""Classes whose objects live for one call, or do not grow, and why."""
FIXED = {"PartitionEvents._readers", "SchedulerAPI.settings", "Types.met", "Types.met_at"}
"""These are made once, and do not grow."""


def holds_a_table(value: ast.expr | None) -> bool:
    if isinstance(value, ast.BinOp):  # [None] * 8
        value = value.left
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in TABLES
    return isinstance(value, ast.Dict | ast.DictComp | ast.List | ast.ListComp | ast.Set)


def tables() -> Iterator[str]:
    """The name of class and attribute, with a dot between them, for each attribute that is a table from the start."""
    for path in sorted(CORE.rglob("*.py")):
        for cls in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(cls, ast.ClassDef) or cls.name in SHORT_LIVED:
                continue
            for node in ast.walk(cls):
                targets = node.targets if isinstance(node, ast.Assign) else []
                targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
                if isinstance(node, ast.Assign | ast.AnnAssign) and holds_a_table(node.value):
                    for target in targets:
                        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                            yield f"{cls.name}.{target.attr}"


def test_every_table_has_an_owner_that_shrinks_it() -> None:
    text = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    listed = {name for row in rows for name in re.findall(r"`(\w+\.\w+)`", row)}
    found = set(tables()) - FIXED
    assert found - listed == set(), "tables that are not in docs/reference/limits.md"
    attributes = {name.partition(".")[2] for name in listed}
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(CORE.rglob("*.py")))
    assert {name for name in attributes if not re.search(rf"\b{name}\b", code)} == set(), (
        "tables that are not in the code"
    )
