"""The values that YAML texts are read as, and the texts that are refused: as strict as the original's parser.

Source: docs/spec/config.md, sections 1 and 13.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from licorne.config import ConfigError, as_data, check, load
from licorne.config.manifest import manifests
from licorne.config.nodes import MAX_BYTES, MAX_DEPTH
from licorne.config.reader import MAX_VALUES


def queue(fields: str) -> str:
    return f"partitions: [{{queues: [{{name: root, queues: [{{name: q, {fields}}}]}}]}}]"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("1.9", 1),
        ("1e2", 100),
        ("0x10", 16),
        ("010", 8),
        ("0o17", 15),
        ("0b11", 3),
        ("08", 8),
        ("1_000", 1000),
        ("+5", 5),
        ("-0", 0),
        ("-0.5", 0),
        ("~", 0),
        ("", 0),
        ('!!int "7"', 7),
        ("!!float 7", 7),
        ("18446744073709551615", 2**63 - 1),
        ("-1.5", 2**63 - 1),
    ],
)
def test_unsigned_numbers(text: str, number: int) -> None:
    configuration = load(queue(f"maxapplications: {text}"))
    assert configuration.partitions[0].root.children[0].max_applications == number


@pytest.mark.parametrize(
    "text", ["-1", "'5'", "five", "1e400", "_1", "0o8", ".nan", ".inf", "1:30", "2001-01-01", "true"]
)
def test_no_unsigned_numbers(text: str) -> None:
    assert [fault.rule for fault in check(queue(f"maxapplications: {text}")).faults] == ["yaml-type"]


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "yes", "Yes", "y", "Y", "on", "ON", "'yes'", '!!bool "true"'])
def test_truth(text: str) -> None:
    assert load(queue(f"parent: {text}")).partitions[0].root.children[0].parent


@pytest.mark.parametrize("text", ["false", "no", "n", "off", "Off", "'no'", "~"])
def test_falsehood(text: str) -> None:
    assert not load(queue(f"parent: {text}")).partitions[0].root.children[0].parent


@pytest.mark.parametrize("text", ["'true'", "1", "0", "yEs", "maybe", "!!bool yes", "!!str true"])
def test_no_truth_values(text: str) -> None:
    assert [fault.rule for fault in check(queue(f"parent: {text}")).faults] == ["yaml-type"]


@pytest.mark.parametrize(
    ("text", "weight"), [("1_0", 10), ("0x1", 1), ("010", 8), (".5", 0.5), ("1e-1", 0.1), ("2", 2)]
)
def test_weights(text: str, weight: float) -> None:
    configuration = load(f"partitions: [{{queues: [], nodesortpolicy: {{resourceweights: {{a: {text}}}}}}}]")
    assert configuration.partitions[0].node_sort.weights == {"a": weight}


def test_a_quoted_weight_is_none() -> None:
    report = check("partitions: [{queues: [], nodesortpolicy: {resourceweights: {a: '1'}}}]")
    assert [fault.rule for fault in report.faults] == ["yaml-type"]


def test_texts_are_taken_as_they_are_spelled() -> None:
    text = queue("properties: {a: 010, b: true, c: 1.50, d: , e: 2001-01-01, 5: x, true: y, ~: z, f: !!binary eA==}")
    properties = load(text).partitions[0].root.children[0].properties
    assert properties == {
        "a": "010", "b": "true", "c": "1.50", "d": "", "e": "2001-01-01", "5": "x", "true": "y", "f": "x",
    }  # fmt: skip


def test_merge_keys() -> None:
    text = """\
partitions:
  - queues:
      - &first {name: a, maxapplications: 1, properties: &p {x: "1", y: "2"}}
      - {<<: *first, name: b, properties: {<<: *p, y: "3"}}
      - {<<: [*first, {maxapplications: 9, submitacl: u}], name: c}
"""
    a, b, c = load(text).partitions[0].root.children
    assert (a.max_applications, b.max_applications, c.max_applications) == (1, 1, 1)
    assert b.properties == {"x": "1", "y": "3"}
    assert c.submit_acl == "u"


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ("maxapplications: 010", {"maxapplications": 8}),
        ("maxapplications: 1_000", {"maxapplications": 1000}),
        ("maxapplications: 1.9", {"maxapplications": 1}),
        ("maxapplications: ~", {"maxapplications": 0}),
        ("parent: 'yes'", {"parent": True}),
        ("parent: No", {"parent": False}),
        ("resources: {max: {memory: 010, vcore: '1'}}", {"resources": {"max": {"memory": "010", "vcore": "1"}}}),
        ("limits: ~, submitacl: 010", {"limits": None, "submitacl": "010"}),
        (
            "limits: [&l {users: [n, yes, ~], maxapplications: 2}, ~, {<<: *l, limit: x, users: [ann]}]",
            {
                "limits": [
                    {"users": ["n", "yes"], "maxapplications": 2},
                    {"limit": "x", "users": ["ann"], "maxapplications": 2},
                ]
            },
        ),
        (
            "properties: {a: 010, b: 1_000, c: yes, d: 'yes', e: 1.9, f: .inf, g: null, h: ~, i: 2026-11-03, j: 12:30:45}",
            {
                "properties": {
                    "a": "010", "b": "1_000", "c": "yes", "d": "yes", "e": "1.9", "f": ".inf", "g": "", "h": "",
                    "i": "2026-11-03", "j": "12:30:45",
                }
            },
        ),
        (
            "properties: {a: 'null', '<<': x, 010: x, true: x, b: !!binary eA==, c: 1e3, d: \"\\U0001F389\\x7f\"}",
            {
                "properties": {
                    "a": "null", "<<": "x", "010": "x", "true": "x", "b": "x", "c": "1e3", "d": "\U0001f389\x7f"
                }
            },
        ),
    ],
)  # fmt: skip
def test_data_has_the_types_that_keys_require_and_means_the_same(fields: str, data: dict[str, Any]) -> None:
    text = queue(fields)
    found = as_data(text)
    assert found["partitions"][0]["queues"][0]["queues"] == [{"name": "q", **data}]
    assert load(msgspec.yaml.encode(found).decode()).partitions == load(text).partitions


def test_weights_and_rules_as_data() -> None:
    text = (
        "partitions: [{queues: [], nodesortpolicy: {resourceweights: {a: 1_0, b: .5, c: ~, d: 1e+20}}, placementrules: "
        "[&r {name: tag, value: x, create: y}, {name: fixed, value: root.a, parent: *r}], preemption: {enabled: ~}}]"
    )
    (partition,) = as_data(text)["partitions"]
    assert partition["nodesortpolicy"] == {"resourceweights": {"a": 10, "b": 0.5, "c": 0, "d": 1e20}}
    assert partition["placementrules"][1]["parent"] == {"name": "tag", "value": "x", "create": True}
    assert load(msgspec.yaml.encode(as_data(text)).decode()).partitions == load(text).partitions


@pytest.mark.parametrize("text", ["", "# nothing", "~"])
def test_no_document_is_no_data(text: str) -> None:
    assert as_data(text) == {}


@pytest.mark.parametrize(
    ("text", "rule", "line", "column"),
    [
        ("a: b: c", "yaml-syntax", 1, 5),
        ("partitions:\n\t- name: x", "yaml-syntax", 2, 1),
        ("partitions: [\n", "yaml-syntax", 2, 1),
        ("partitions: 'x", "yaml-syntax", 1, 15),
        ("a\x00b", "yaml-syntax", 1, 2),
        ("x: 1\nname: \x07", "yaml-syntax", 2, 7),
        ("x: '\ud800'", "yaml-syntax", 1, 5),
        ('x: "\\ud800"', "yaml-syntax", 1, 7),
        ('x: "\\U00110000"', "yaml-syntax", 1, 7),
        ("%YAML 1.2\n---\nx: 1", "yaml-syntax", 1, 1),
        ("%FOO\n---\nx: 1", "yaml-syntax", 1, 5),
        ("partitions: *x", "yaml-anchor", 1, 13),
        ("partitions: [{queues: [&x {name: a, queues: [*x]}]}]", "yaml-anchor", 1, 46),
        ("partitions: []\npartitions: []", "yaml-key-duplicate", 2, 1),
        ("partitions: [{<<: 5, queues: []}]", "yaml-merge", 1, 19),
        ("partitions: [{queues: [], Queues: []}]", "yaml-key-unknown", 1, 27),
        ("- a", "yaml-type", 1, 1),
        ("text", "yaml-type", 1, 1),
        ("partitions: 5", "yaml-type", 1, 13),
        ("checksum: !!int x", "yaml-type", 1, 11),
    ],
)
def test_places_of_faults(text: str, rule: str, line: int, column: int) -> None:
    fault = check(text).faults[0]
    assert (fault.rule, fault.line, fault.column) == (rule, line, column)


def test_tabs_are_blanks_where_no_indentation_can_be_meant() -> None:
    assert load("partitions:\n  - name:\tx\t# one\n    queues:\t[]\n").partitions[0].name == "x"


def test_texts_that_the_original_refuses() -> None:
    assert load('partitions: [{name: "a\\/b", queues: []}]').partitions[0].name == "a/b"
    assert load(queue("resources: {max: {v?core: 1}}")).partitions[0].root.children[0].max


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: 2026-11-03T10:00:00Z\nb: 2026-11-03\nc: 12:30:45", {"a": "2026-11-03T10:00:00Z", "b": "2026-11-03", "c": "12:30:45"}),
        ("[010, '010', !!str 010, 1.5, true, 'true', yes, ~, !!binary eA==]", [8, "010", "010", 1.5, True, "true", "yes", None, "x"]),
        ("{a: &a {x: 1, y: [2]}, b: {<<: *a, x: 3}, 5: *a}", {"a": {"x": 1, "y": [2]}, "b": {"x": 3, "y": [2]}, "5": {"x": 1, "y": [2]}}),
    ],
)  # fmt: skip
def test_manifests_are_data_as_json_has_it(text: str, data: object) -> None:
    assert list(manifests(f"--- # nothing\n---\n{text}\n---\nlast", "f.yaml")) == [data, "last"]


@pytest.mark.nightly
def test_manifests_may_be_long() -> None:
    (found,) = manifests("[" + "x, " * (MAX_BYTES // 3) + "x]", "f.yaml")
    assert len(found) > MAX_VALUES


def test_nesting_is_bounded() -> None:
    assert check("[" * 500 + "]" * 500).faults[0].rule == "yaml-depth"
    assert check("[" * 5000).faults[0].rule == "yaml-syntax"  # libyaml looks ahead, and has a bound of its own
    assert check("a:\n" + "\n".join(" " * n + "- " for n in range(MAX_DEPTH + 10))).faults[0].rule == "yaml-depth"
    deep = "{name: q}"
    for _ in range(40):
        deep = f"{{name: q, queues: [{deep}]}}"
    assert check(f"partitions: [{{queues: [{deep}]}}]").faults == ()


def test_nesting_by_aliases_is_bounded() -> None:
    chain = "      - &a0 {name: a0}\n"
    chain += "".join(f"      - &a{n} {{name: a{n}, queues: [*a{n - 1}]}}\n" for n in range(1, MAX_DEPTH + 1))
    assert check(f"partitions:\n  - queues:\n{chain}").faults[0].rule == "yaml-depth"


def test_aliases_are_bounded() -> None:
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a, a]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 12)]
    bomb = "partitions:\n  - queues:\n      - &q0 {name: q}\n"
    for n in range(1, 12):
        bomb += f"      - &q{n} {{name: q{n}, queues: [{', '.join([f'*q{n - 1}'] * 9)}]}}\n"
    report = check(bomb)
    assert report.faults[-1].rule in ("yaml-size", "yaml-aliases")
    with pytest.raises(ConfigError, match="yaml-aliases"):
        as_data(bomb)
    assert "yaml-key-unknown" in {fault.rule for fault in check("\n".join(lines)).faults}


def test_size_is_bounded() -> None:
    fault = check("#" * (MAX_BYTES + 1)).faults[0]
    assert (fault.rule, fault.line, fault.column) == ("yaml-size", 1, 1)
    assert check("é" * (MAX_BYTES // 2 + 1)).faults[0].rule == "yaml-size"


def test_a_second_document_is_ignored_with_a_warning() -> None:
    report = check("partitions: [{queues: []}]\n---\nnonsense: [\n")
    assert report.faults == ()
    assert [(warning.rule, warning.line) for warning in report.warnings] == [("document-ignored", 2)]
