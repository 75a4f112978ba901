"""The checker finds references that lead nowhere, and only those: each of its rules on a repository of six files."""

from __future__ import annotations

import pytest

from references.check import Checker, sections, slug
from references.texts import Passage, passages

SPEC = """# The order

## 1. Resources
1. They are added.
2. They are compared.

### 1.1 Shares

## 7. Nodes

## Rules that hold
3. Nothing is lost.
"""
MODULE = '''"""Things in a row (docs/spec/order.md, section 7)."""

KEPT_MOST = 8


class Base:
    def __init__(self) -> None:
        self.size = 0


class Thing(Base):
    kind: str

    def settle(self) -> None: ...


def arrange(thing: Thing) -> str:
    return "thing.setting.key"
'''
REPOSITORY = {
    "README.md": "# Read",
    "docs/spec/order.md": SPEC,
    "docs/spec/other.md": "# Other\n\n## 1. One",
    "docs/page.md": "# Page\n\n## A heading, with `marks`\n\nSee [order](spec/order.md).",
    "docs/reference/differences.md": "| 1 | sorted | kept |",
    "docs/understand/invariants.md": "| 2 | Sums are right |",
    "src/pack/thing.py": MODULE,
    "tests/test_thing.py": "def test_order() -> None: ...",
}
INTRO = "Things in a row (docs/spec/order.md, section 7)."

FOUND = [
    "docs/spec/order.md",
    "docs/spec/order.md, section 1.1",
    "docs/spec/order.md, sections 1 (sums), 1.1 and 7",
    "docs/spec/order.md, sections 1 to 7; docs/spec/other.md, section 1",
    "docs/spec/order.md, section 1.2: the second point",
    'docs/spec/order.md, "Resources" and "Rules that hold"',
    "docs/spec/order.md, rule 3",
    "as section 1.1 says",
    "difference 1 and invariants 2",
    "src/pack/thing.py, `pack/thing.py`, `thing.py`, src/pack/*.so, tests/test_thing.py::test_order",
    "README.md and docs/page.md",
    "`Thing`, `Thing.settle`, `Thing.kind`, `Thing.size`, `pack.thing`, `pack.thing.Thing.size`, `thing.arrange`",
    "`arrange()`, `Thing.settle()`, `KEPT_MOST`, `thing.setting.key`, `thing.setting`, `sorted()`",
    "`other.thing`, `--option`, `a b`, `0.5`",
    "a seed of random numbers, the specification",
]
MISSED = [
    ("docs/spec/none.md", "no file docs/spec/none.md"),
    ("docs/spec/order.md, section 2", "no section 2 in docs/spec/order.md"),
    ("docs/spec/order.md, sections 1, 1.1 and 8", "no section 8 in docs/spec/order.md"),
    ("docs/spec/order.md, sections 1 to 9", "no section 9 in docs/spec/order.md"),
    ("docs/spec/order.md, section 1.3: no such point", "no section 1.3 in docs/spec/order.md"),
    ('docs/spec/order.md, "Nodes" and "Nothing"', "no heading 'Nothing' in docs/spec/order.md"),
    ("docs/spec/order.md, rule 4", "no rule 4 in docs/spec/order.md"),
    ("as section 9.1 says", "no section 9.1 in docs/spec/order.md"),
    ("docs/spec/order.md and docs/spec/other.md; section 1", "section 1: of which file?"),
    ("difference 2", "no difference 2 in docs/reference/differences.md"),
    ("invariants 2 and 3", "no invariant 3 in docs/understand/invariants.md"),
    ("src/pack/none.py", "no file src/pack/none.py"),
    ("tests/test_thing.py::test_none", "no test tests/test_thing.py::test_none"),
    ("src/none/*.so", "no file src/none/*.so"),
    ("see order.md", "no file order.md"),
    ("`none.py`", "no such file: none.py"),
    ("`Thing.none`", "no such name: Thing.none"),
    ("`thing.none`", "no such name: thing.none"),
    ("`pack.none`", "no such name: pack.none"),
    ("`pack.thing.Thing.none`", "no such name: pack.thing.Thing.none"),
    ("`none()`", "no such function: none()"),
    ("`Thing.none()`", "no such name: Thing.none()"),
    ("`Absent`", "no such name: Absent"),
    ("`no_thing`", "no such name: no_thing"),
    ("`KEPT_LEAST`", "no such name: KEPT_LEAST"),
    ("seed 002", "a document by its number: 'seed 002'"),
    ("document 000", "a document by its number: 'document 000'"),
    ("the seed's dialect", 'a word for the first interface that only insiders know: "the seed\'s"'),
    ("spec order.md", "the specification without its file: 'spec order.md'"),
    ("Spec section 7", "the specification without its file: 'Spec section 7'"),
    ("design, rule 4", "the design without its file: 'design, rule'"),
    ("DESIGN.md", "the design without its file: 'DESIGN'"),
    ("issue 5", "an issue or a task: 'issue 5'"),
    ("../shared/data", "a folder beside the repository: '../shared'"),
]
PAGES = [
    ("[order](spec/order.md), section 1.1", []),
    ("[order](spec/order.md), section 9", ["no section 9 in docs/spec/order.md"]),
    ("[order](spec/order.md) 1.1, 9", ["no section 9 in docs/spec/order.md"]),
    ("[here](#a-heading-with-marks), [there](../README.md#read), [out](https://example.org/x)", []),
    ("[here](#another)", ["no heading for #another"]),
    ("[there](../README.md#written)", ["no heading for ../README.md#written"]),
    ("[nowhere](none.md)", ["no file none.md"]),
    ("`old_name` is now `arrange`", []),
    ("`old_name` was `arrange`", ["no such name: old_name"]),
]


@pytest.fixture(scope="module")
def checker() -> Checker:
    return Checker(list(REPOSITORY), REPOSITORY)


def faults(checker: Checker, path: str, text: str, intro: str) -> list[str]:
    return [fault.partition(": ")[2] for fault in checker.faults(Passage(path, 1, text, "prose", intro))]


@pytest.mark.parametrize("text", FOUND)
def test_existing_names_resolve(checker: Checker, text: str) -> None:
    assert faults(checker, "src/pack/thing.py", text, INTRO) == []


@pytest.mark.parametrize(("text", "fault"), MISSED)
def test_missing_names_are_reported(checker: Checker, text: str, fault: str) -> None:
    assert fault in faults(checker, "src/pack/thing.py", text, INTRO)


@pytest.mark.parametrize(("text", "expected"), PAGES)
def test_pages_refer_by_links(checker: Checker, text: str, expected: list[str]) -> None:
    assert faults(checker, "docs/page.md", text, text) == expected


def test_a_bare_section_needs_a_file_that_is_named() -> None:
    checker = Checker(list(REPOSITORY), REPOSITORY)
    assert faults(checker, "src/pack/thing.py", "section 1.1", "Things.") == ["section 1.1: of which file?"]
    assert faults(checker, "docs/spec/order.md", "section 1.1", "") == []


def test_tests_may_refer_to_files_outside_the_repository(checker: Checker) -> None:
    assert faults(checker, "tests/test_thing.py", "../shared/data", "") == []


def test_passages_of_a_program() -> None:
    text = '"""Head\n\nand more."""\nx = "a string"  # a comment\n# that\n# goes on\ny = 1\n"""About y."""\n'
    found = {(one.kind, one.line, one.text) for one in passages("a.py", text)}
    assert found == {
        ("prose", 1, "Head and more."),
        ("prose", 8, "About y."),
        ("string", 4, "a string"),
        ("prose", 4, "a comment"),
        ("prose", 5, "that goes on"),
    }
    assert {one.intro for one in passages("a.py", text)} == {"Head and more."}


def test_passages_of_a_page() -> None:
    text = "# Title\nOne\nparagraph.\n\n| a | b |\n| c | d |\n* item\n  of a list\n```\nraw text\n```\nlast\n"
    found = [(one.kind, one.line, one.text) for one in passages("a.md", text)]
    assert found == [
        ("prose", 1, "# Title"),
        ("prose", 2, "One paragraph."),
        ("prose", 5, "| a | b |"),
        ("prose", 6, "| c | d |"),
        ("prose", 7, "* item of a list"),
        ("raw", 10, "raw text"),
        ("prose", 12, "last"),
    ]


def test_sections_and_anchors() -> None:
    assert [(one.number, one.title, sorted(one.points)) for one in sections(SPEC)] == [
        ("", "The order", []),
        ("1", "Resources", [1, 2]),
        ("1.1", "Shares", []),
        ("7", "Nodes", []),
        ("", "Rules that hold", [3]),
    ]
    assert slug("A heading, with `marks` & [link](x.md)") == "a-heading-with-marks--link"
