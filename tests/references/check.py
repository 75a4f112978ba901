"""Checks that references lead somewhere: sections of the specification, files, names of the code, links; and banned texts.

A reference to the specification names its file and the place in it:

    docs/spec/scheduling.md, section 7.1        also `sections 2, 4 and 8`, `sections 5 to 7`
    docs/spec/design.md, rule 4                 a point of the list of rules there
    docs/spec/rest-api.md, "Health"             a heading without a number
    [scheduling](spec/scheduling.md), section 7.1   the same in a page

A number that is no heading is a point of the numbered list under the heading before it: 16.6 is point 6 of section 16.
A bare "section 7.1" means the one file of the specification that the same passage, or else the head of its file, names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from references.names import Names
from references.texts import Passage

SPEC = "docs/spec/"
NUMBER = r"(?:[A-C]\.)?\d+(?:\.\d+)*"
LIST = rf"{NUMBER}(?: \([^)]*\))?(?:(?:, and|,| and| or| to)? {NUMBER}(?: \([^)]*\))?)*"
NAMED = re.compile(r"docs/spec/[\w-]+\.md|\[[^\]]*\]\((?:\.\./)*(?:docs/)?(?:spec/)?[\w-]+\.md(?:#[\w-]*)?\)")
AFTER_NAMED = re.compile(
    rf"(?P<file>{NAMED.pattern})(?:,? (?:(?P<kind>sections?|rules?|points?) )?(?P<list>{LIST})"
    r'|,? (?P<headings>"[^"]+"(?: and "[^"]+")*(?:, point \d+)?))?'
)
BARE = re.compile(rf"\b[Ss]ections? (?P<list>{LIST})")
PATH = re.compile(r"(?<![\w/.-])(?:docs|src|tests|bench|tools|examples|deploy|typings)/[\w.*/-]*\w(?:::\w+)?")
NUMBERED = re.compile(rf"\b(?P<what>[Dd]ifferences?|[Ii]nvariants?) (?P<list>{LIST})")
TABLES = {"difference": "docs/reference/differences.md", "invariant": "docs/understand/invariants.md"}
PAGE = re.compile(r"(?<![\w/.*-])[\w-]+\.md\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`(?! is now)")  # what a changelog says of a name that has gone

FORBIDDEN = {
    "a document by its number": re.compile(r"\b(?:[Ss]eeds?|[Dd]ocument) 00\d"),
    "a word for the first interface that only insiders know": re.compile(
        r"\b[Ss]eed'?s('s)? (?:dialect|rule|text)|\b[Tt]he seed's"
    ),
    "the specification without its file": re.compile(r"(?<!/)\b[Ss]pec(?:ification)?,? (?:[\w-]+\.md|sections? \d|\d)"),
    "the design without its file": re.compile(r"\bdesign, (?:rule|\")|\bDESIGN\b"),
    "an issue or a task": re.compile(r"\b[Ii]ssues? #?\d|\b[Tt]asks? #\d"),
    "a folder beside the repository": re.compile(r"\.\./shared"),
}
"""What no text may hold, by what is wrong with it. Tests may read what is others' from a folder beside the repository."""


class Section(NamedTuple):
    """A heading of a file of the specification, and the numbers of the list items under it."""

    number: str
    title: str
    points: frozenset[int]


def sections(text: str) -> list[Section]:
    """The sections of a page, each with the numbers of the points that are listed in it."""
    found: list[tuple[str, str, set[int]]] = []
    for line in text.splitlines():
        if match := re.match(rf"#+ (?:({NUMBER}|[A-C])\.? )?(.*)", line):
            found.append((match[1] or "", match[2], set()))
        elif found and (match := re.match(r" *(\d+)\. |\| *(\d+) *\|", line)):
            found[-1][2].add(int(match[1] or match[2]))
    return [Section(number, title, frozenset(points)) for number, title, points in found]


def slug(heading: str) -> str:
    """The anchor that a heading of a page has."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


class Checker:
    """Finds the references of passages that lead nowhere."""

    def __init__(self, files: list[str], texts: dict[str, str]) -> None:
        self.files = files
        self.folders = {str(parent) for one in files for parent in PurePosixPath(one).parents}
        self.names = Names(files, texts)
        pages = {path: text for path, text in texts.items() if path.endswith(".md")}
        self.spec = {path: sections(text) for path, text in pages.items() if path.startswith(SPEC)}
        self.anchors = {path: _anchors(text) for path, text in pages.items()}
        self.rows = {
            what: set(re.findall(r"^\| (\d+) \|", pages.get(path, ""), re.MULTILINE)) for what, path in TABLES.items()
        }

    def faults(self, passage: Passage) -> list[str]:
        """The faults of the references of a passage, as `path:line: what`."""
        found = [*self._forbidden(passage), *self._paths(passage)]
        if passage.kind != "raw":
            found += [*self._sections(passage), *self._rows(passage)]
        if passage.kind == "prose":
            found += [*self._names(passage), *self._links(passage)]
        return [f"{passage.path}:{passage.line}: {one}" for one in dict.fromkeys(found)]

    def _forbidden(self, passage: Passage) -> Iterator[str]:
        for what, pattern in FORBIDDEN.items():
            if "shared" in pattern.pattern and not passage.path.startswith(("src/", "docs/")):
                continue
            for match in pattern.finditer(passage.text):
                yield f"{what}: {match[0]!r}"

    def _sections(self, passage: Passage) -> Iterator[str]:
        text = passage.text
        for match in AFTER_NAMED.finditer(text):
            path = self._named(passage, match["file"])
            if path in self.spec:
                yield from self._in_spec(path, match)
            elif match["file"].startswith(SPEC):
                yield f"no file {path}"
        rest = AFTER_NAMED.sub("", text)
        bare = [match["list"] for match in BARE.finditer(rest)]
        if bare and passage.kind == "prose":
            path = self._meant(passage)
            for numbers in bare:
                if not path:
                    yield f"section {numbers}: of which file?"
                else:
                    yield from self._numbers(path, numbers)

    def _named(self, passage: Passage, file: str) -> str:
        """The path of a file that is named as such or by a link."""
        if file.startswith("["):
            target = file[file.index("](") + 2 : -1].split("#", maxsplit=1)[0]
            return _joined(passage.path, target)
        return file

    def _meant(self, passage: Passage) -> str:
        """The file of the specification that a bare section means: the only one that is named nearby."""
        if passage.path in self.spec:
            return passage.path
        for text in (passage.text, passage.intro):
            named = {self._named(passage, match[0]) for match in NAMED.finditer(text)} & set(self.spec)
            if named:
                return named.pop() if len(named) == 1 else ""
        return ""

    def _in_spec(self, path: str, match: re.Match[str]) -> Iterator[str]:
        if match["headings"]:
            titles = {section.title for section in self.spec[path]}
            for title in re.findall(r'"([^"]+)"', match["headings"]):
                if title not in titles:
                    yield f"no heading {title!r} in {path}"
        elif match["kind"] and match["kind"].startswith("rule"):
            points = {point for section in self.spec[path] if "ules" in section.title for point in section.points}
            for number in re.findall(r"\d+", match["list"]):
                if int(number) not in points:
                    yield f"no rule {number} in {path}"
        elif match["list"]:
            yield from self._numbers(path, match["list"])

    def _numbers(self, path: str, numbers: str) -> Iterator[str]:
        known = {section.number: section for section in self.spec[path]}
        for number in re.findall(NUMBER, re.sub(r"\([^)]*\)", "", numbers)):
            head, _, point = number.rpartition(".")
            listed = head in known and point.isdigit() and int(point) in known[head].points
            if number not in known and not listed:
                yield f"no section {number} in {path}"

    def _rows(self, passage: Passage) -> Iterator[str]:
        for match in NUMBERED.finditer(passage.text):
            what = match["what"].lower().removesuffix("s")
            for number in re.findall(r"\d+", re.sub(r"\([^)]*\)", "", match["list"])):
                if number not in self.rows[what]:
                    yield f"no {what} {number} in {TABLES[what]}"

    def _paths(self, passage: Passage) -> Iterator[str]:
        for match in PATH.finditer(passage.text):
            path, _, test = match[0].partition("::")
            if passage.path.startswith(SPEC) and path.startswith("docs/") and not path.startswith(SPEC):
                continue  # the original's pages
            if test and self.names.fault(match[0]):
                yield f"no test {match[0]}"
            elif not self._there(path):
                yield f"no file {path}"
        if passage.kind == "prose" and not passage.path.endswith(".md"):
            for match in PAGE.finditer(PATH.sub("", passage.text)):
                if match[0] not in self.files:
                    yield f"no file {match[0]}"

    def _there(self, path: str) -> bool:
        if "*" in path:  # what it stands for may be made at a build: the folder must be there
            path = path[: path.index("*")].rpartition("/")[0]
        return path in self.folders or path in self.names.files or any(one.startswith(path + ".") for one in self.files)

    def _names(self, passage: Passage) -> Iterator[str]:
        if passage.path.startswith(SPEC):
            return  # it names the original's
        for match in CODE.finditer(passage.text):
            fault = self.names.fault(match[1])
            if fault:
                yield f"{fault}: {match[1]}"

    def _links(self, passage: Passage) -> Iterator[str]:
        if not passage.path.endswith(".md"):
            return
        for match in LINK.finditer(CODE.sub("", passage.text)):
            target, _, anchor = match[1].partition("#")
            if target.startswith(("http:", "https:", "mailto:")):
                continue
            path = _joined(passage.path, target) if target else passage.path
            if not self._there(path):
                yield f"no file {match[1]}"
            elif anchor and path.endswith(".md") and anchor not in self.anchors.get(path, ()):
                yield f"no heading for {match[1]}"


def _joined(page: str, target: str) -> str:
    """The path that a relative link of a page leads to."""
    parts: list[str] = [*PurePosixPath(page).parent.parts]
    for part in PurePosixPath(target).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _anchors(text: str) -> set[str]:
    found: set[str] = set()
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        if line.startswith("#"):
            one = anchor = slug(line.lstrip("#").strip())
            count = 0
            while anchor in found:
                count += 1
                anchor = f"{one}-{count}"
            found.add(anchor)
    return found
