"""docs/reference/kubernetes.md names every label, annotation, event and setting, of the code and of the specification."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from licorne.core.base.setting_table import OWN
from licorne.host.setting_table import SETTINGS as SERVE
from licorne.kube import binder, configmaps
from licorne.kube.manager.lifecycle import ASK_AGAIN_BACKOFF
from licorne.kube.pods import keys
from licorne.kube.settings import SETTINGS
from licorne.si.constants import DOMAIN_YUNIKORN

ROOT = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs/reference/kubernetes.md").read_text(encoding="utf-8")
SPEC: Final = (ROOT / "docs/spec/k8shim.md").read_text(encoding="utf-8")
NAMED: Final = {text.replace("Y/", DOMAIN_YUNIKORN) for text in re.findall(r"`([^`]+)`", PAGE)}


def section(number: int) -> str:
    """Return a section of the specification."""
    found = re.search(rf"^## {number}\. .*?(?=^## )", SPEC, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def test_every_key_of_pods_and_namespaces_is_on_the_page() -> None:
    values = {name: value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
    on_objects = {value for name, value in values.items() if not name.startswith(("TAG_", "DOMAIN_"))}
    assert keys.APP_ID in on_objects
    assert on_objects - NAMED == set()


def test_every_key_of_the_specification_is_on_the_page() -> None:
    known = {key.replace("Y/", DOMAIN_YUNIKORN) for key in re.findall(r"`(Y/[\w.-]+)`", section(1) + section(3))}
    tags = {
        DOMAIN_YUNIKORN + name for name in ("creationTime", "requiredNode")
    }  # written by YuniKorn for its core alone
    assert len(known) > 15
    assert known - tags - NAMED == set()


def events_of_the_code() -> set[tuple[str, str]]:
    """Return reason and action of all events that are posted, where both are written out."""
    found = set()
    for path in (ROOT / "src/licorne/kube").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            first = {"Note": 0, "PostEvent": 4}.get(node.func.id)
            words = [] if first is None else node.args[first : first + 2]
            if len(words) == 2 and all(isinstance(word, ast.Constant) for word in words):
                reason, action = (word.value for word in words if isinstance(word, ast.Constant))
                found.add((str(reason), str(action)))
    return found


def test_every_event_of_the_code_has_a_row() -> None:
    rows = {tuple(re.findall(r"`([^`]+)`", line))[:2] for line in PAGE.splitlines() if line.startswith("| `")}
    posted = events_of_the_code()
    assert ("PodBindFailure", "PodBindFailure") in posted
    assert posted - rows == set()


@pytest.mark.parametrize("column", [1, 2])
def test_reasons_and_actions_of_the_specification_are_on_the_page(column: int) -> None:
    lines = [line.split("|") for line in section(6).splitlines() if re.match(r"\| [NW]", line)]
    words = {word.strip() for line in lines for word in re.split(r"[,/]", line[column + 1])} - {"same"}
    assert len(words) > 10
    assert words - NAMED == set()


def test_every_setting_is_on_the_page() -> None:
    of_the_code = {
        value for value in vars(configmaps).values() if isinstance(value, str) and value.startswith("service.")
    }
    rows = [line.split("|")[1].partition("(docs")[0] for line in section(11).splitlines() if line.startswith("| ")]
    of_the_spec = {key for row in rows for key in re.findall(r"\w+\.[\w.<>*]+", row)}
    assert len(of_the_spec) > 12
    assert (of_the_code | of_the_spec) - NAMED == set()


def test_every_setting_of_licorne_alone_is_on_the_page() -> None:
    own = {setting.key for setting in (*SETTINGS, *SERVE) if setting.key.startswith(OWN)}
    assert len(own) > 25
    assert own - NAMED == set()


@pytest.mark.parametrize("page", ["docs/reference/kubernetes.md", "docs/use/kubernetes.md"])
def test_both_waits_of_a_pod_that_cannot_be_bound_are_as_in_the_code(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    waits = re.findall(r"again,? after ([\d.]+) s at first, later after ([\d.]+) s at most", text)
    backoffs = (binder.BACKOFF, ASK_AGAIN_BACKOFF)
    assert waits == [(f"{each.first_s:g}", f"{each.longest_s:g}") for each in backoffs]
    assert re.findall(r"refused (?:the binding: )?(\d+) times", text) == [str(binder.ATTEMPTS)]
