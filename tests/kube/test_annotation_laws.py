"""What users write on pods and namespaces, and what means nothing or is no JSON, is told: for drawn keys, items, texts and quotas.

Each example is made from what would be right, so the test knows what is wrong, and where.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from common.planting import LOOKED_AT, Counted, a_law_breaks
from licorne.core.gangs import task_groups
from licorne.kube.objects import Namespace, Pod
from licorne.kube.pods import misspelled, namespaces, work

Y = "yunikorn.apache.org/"
GROUPS = '[{"name":"g","minMember":2,"minResource":{"cpu":"500m","memory":1073741824}}]'
PARAMETERS = {"gangSchedulingStyle": ("Hard", "Soft"), "placeholderTimeoutInSeconds": ("30", "0", "900")}
KEYS = {
    **dict.fromkeys(("app-id", "queue"), ("a", "label annotation")),
    **dict.fromkeys(("username",), ("ann", "label")),
    **dict.fromkeys(("task-group-name", "allow-preemption"), ("true", "annotation")),
    "user.info": ('{"user":"ann"}', "annotation"),
    "task-groups": (GROUPS, "annotation"),
    **dict.fromkeys(PARAMETERS, ("", "")),
}
"""Names after the domain with a value, and as what they count; the parameters only as items of an annotation."""


def slips(name: str) -> st.SearchStrategy[str]:
    """Draw a name as somebody writes it who errs: in capitals, with other punctuation, or with a letter less, more or wrong."""
    whole = (name.upper(), re.sub("[-.]", "", name), re.sub("[-.]", "_", name))
    letters = [at for at, character in enumerate(name) if character.isalpha()]
    changed = [name[:at] + new + name[at + 1 :] for at in letters for new in ("", 2 * name[at], "z")]
    return st.sampled_from([slip for slip in (*whole, *changed) if slip not in KEYS])


def named(known: Any, value: Any) -> st.SearchStrategy[tuple[str, str, Any]]:
    """Draw a name that is meant, or none, what is written, and a value."""
    right = st.sampled_from(sorted(known)).flatmap(lambda name: st.tuples(st.just(name), st.just(name) | slips(name)))
    return st.tuples(right | st.tuples(st.just(""), st.text("xw07", min_size=1, max_size=20)), value).map(
        lambda drawn: (*drawn[0], drawn[1])
    )


def told(**given: dict[str, str]) -> list[str]:
    """Return what is told of a pod with these keys of the domain, by kind."""
    own = {f"{kind}s": {Y + key: value for key, value in keys.items()} for kind, keys in given.items()}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "n", "uid": "u", **own}}, Pod)
    return [note.text for note in work.read_pod(pod, work.PodContext()).notes]


def check_keys(written: list[tuple[str, str, str]]) -> None:
    """Check that each key which was surely meant and means nothing is told once, with what is right, and no other key."""
    given: dict[str, dict[str, str]] = {"annotation": {}, "label": {}}
    for meant, key, kind in written:
        given[kind][key] = KEYS[meant][0] if meant else "1"
    notes = told(**given)
    for meant, key, kind in written:
        found = [text for text in notes if text.startswith(f"{kind} {Y}{key}: ")]
        counts = KEYS[meant][1] if meant else kind
        wrong = bool(meant) and (key != meant or kind not in counts)
        assert len(found) == wrong, f"{kind} {key}, meant {meant!r}, is told {found}"
        right = f"did you mean {Y}{meant}?" if key != meant else f" {counts} only"
        assert not wrong or (right if counts else f"{meant} is an item of") in found[0], found


def check_items(items: list[tuple[str, str, str]]) -> None:
    """Check that each item of the parameters of a gang that does not count as it stands is told, and no other item."""
    text = " ".join(f"{name}={value}" for _, name, value in items)
    notes = told(annotation={"task-groups": GROUPS, "schedulingPolicyParameters": text})
    for _, name, value in items:
        found = [note for note in notes if f": {name}: {value!r}: must be" in note or f"{name!r} is not known" in note]
        assert len(found) == (value not in PARAMETERS.get(name, ())), f"{name}={value} of {text!r} is told {found}"


DOCUMENTS = {
    "task-groups": GROUPS,
    "user.info": '{"user":"ann","groups":["dev","ops"]}',
    "namespace.quota": '{"cpu":"64","memory":1000}',
    "namespace.guaranteed": '{"cpu":2}',
}


@st.composite
def faulty(draw: st.DrawFn) -> tuple[str, str, int]:
    """Draw an annotation, a text that stops being JSON, and where: it ends too early, or has a # between two tokens."""
    key = draw(st.sampled_from(sorted(DOCUMENTS)))
    tokens = re.findall(r'"[^"]*"|[\[\]{}:,]|\d+', DOCUMENTS[key])
    cut = draw(st.integers(1, len(tokens) - 1))
    begin = "".join(draw(st.sampled_from(("", " ", "\n", " \n  "))) + token for token in (*tokens[:cut], ""))
    return key, begin + draw(st.sampled_from(("", "#" + "".join(tokens[cut:])))), len(begin)


def check_place(document: tuple[str, str, int]) -> None:
    """Check that line and column are told at which a text stops being JSON."""
    key, text, at = document
    namespace = msgspec.convert({"metadata": {"name": "n", "annotations": {Y + key: text}}}, Namespace)
    [found] = namespaces.unread_annotations(namespace) or told(annotation={key: text})
    lines = text[:at].split("\n")
    assert f"line {len(lines)}, column {len(lines[-1]) + 1}: " in found, found


RIGHT, MISNAMED = ("cpu", "memory", "pods", "nvidia.com/gpu"), ("vcore", "vcores", "CPU", "mem", "Memory", "gpu")


def check_names(quota: dict[str, int]) -> None:
    """Check that each resource of a quota is told which no pod asks for by that name, and no other."""
    meta = {"name": "n", "annotations": {Y + "namespace.quota": json.dumps(quota)}}
    notes = namespaces.misnamed_resources(msgspec.convert({"metadata": meta}, Namespace))
    for name in quota:
        found = [text for text in notes if f": {name} counts" in text or f"asks for {name!r};" in text]
        assert len(found) == (name in MISNAMED), f"{name} is told {notes}"


VALUES = st.sampled_from((*sum(PARAMETERS.values(), ()), "hard", "", "30s", "-1", "Hard,x=1"))
LAWS: dict[str, tuple[Callable[[Any], None], st.SearchStrategy[Any]]] = {
    "keys": (
        check_keys,
        st.lists(named(KEYS, st.sampled_from(("annotation", "label"))), max_size=8, unique_by=lambda one: one[1:]),
    ),
    "items": (check_items, st.lists(named(PARAMETERS, VALUES), max_size=5, unique_by=lambda one: one[1])),
    "places": (check_place, faulty()),
    "names": (check_names, st.dictionaries(st.sampled_from(RIGHT + MISNAMED), st.integers(1, 9), max_size=4)),
}


@pytest.mark.parametrize("law", LAWS)
@examples(200)
@given(st.data())
def test_what_a_user_got_wrong_is_told(law: str, data: st.DataObject) -> None:
    check, drawn = LAWS[law]
    check(data.draw(drawn))


FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "keys that mean nothing are passed over": (work, "misspelled", lambda _: [], "keys"),
    "what is written is compared as it stands": (misspelled, "_plain", str, "keys"),
    "items that mean nothing are passed over": (work, "misspelled", lambda _: [], "items"),
    "task groups tell no place": (task_groups, "json_fault", lambda _: "", "places"),
    "the user's annotation tells no place": (work, "json_fault", lambda _: "", "places"),
    "quotas tell no place": (namespaces, "json_fault", lambda _: "", "places"),
    "vcore in a quota is passed over": (namespaces, "VCORE", "", "names"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    where, function, broken, law = FAULTS[name]
    check, drawn = LAWS[law]
    counted = Counted(check)
    monkeypatch.setattr(where, function, broken)
    with a_law_breaks(sys.modules[__name__]):
        counted.search(drawn, 200)
    record_property(LOOKED_AT, counted.looked_at)
