"""The queue configurations of a scenario: a file, or a part of the scenario's own text.

A configuration that stands in the scenario is checked by the reader of queue configurations, as a text of its own. So that its
faults have the line and column of the scenario's file, the text is cut out as it is written, and the places are moved back.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

import msgspec

from licorne._files import file_text
from licorne.config.nodes import YamlNode
from licorne.workload.scenarios.faults import DocumentError, Path
from licorne.workload.scenarios.reading import Problems

_HEADER: Final = (
    "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:\n"
)
_INDENT: Final = 10
"""The short form, a list of queues, is put below this."""


class Excerpt(NamedTuple):
    """The text of a queue configuration; its places are those of `file` when lines and columns are added.

    `exact`: they are; else a fault is at the beginning of the configuration as a whole.
    """

    text: str
    file: str
    lines: int = 0
    columns: int = 0
    exact: bool = True


class Excerpts:
    """Finds the texts of queue configurations; files are named from `folder`, that of the scenario."""

    def __init__(self, problems: Problems, text: str, folder: FilePath) -> None:
        self._problems = problems
        self._lines = text.splitlines()
        self._folder = folder

    def of(self, given: str | dict[str, Any] | list[dict[str, Any]], path: Path) -> Excerpt:
        """Return the text of a configuration: of a file, or of the scenario itself.

        Raises:
            DocumentError: the file cannot be read.
        """
        if isinstance(given, str):
            return self._file(given, path)
        node = self._problems.node(path)
        if node is None or not _is_block(node, self._lines):
            whole = given if isinstance(given, dict) else _below_root(given)
            return Excerpt(msgspec.json.encode(whole).decode() + "\n", self._problems.file, exact=False)
        block = self._block(node)
        if isinstance(given, dict):
            return Excerpt("\n".join(block) + "\n", self._problems.file, node.line - 1, node.column - 1)
        text = _HEADER + "".join(f"{' ' * _INDENT}{line}\n" if line else "\n" for line in block)
        return Excerpt(text, self._problems.file, node.line - 1 - _HEADER.count("\n"), node.column - 1 - _INDENT)

    def _file(self, name: str, path: Path) -> Excerpt:
        file = self._folder / name
        try:
            return Excerpt(file_text(file), str(file))
        except OSError as error:
            raise DocumentError(path, f"{file}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise DocumentError(path, f"{file}: not a text in UTF-8") from None

    def _block(self, node: YamlNode) -> list[str]:
        """Return the lines of a block from a node on, moved to the left: all that are indented as far as it."""
        indent, is_list = node.column - 1, node.kind == "sequence"
        block = [self._lines[node.line - 1][indent:]]
        for line in self._lines[node.line :]:
            said = line.lstrip()
            at = len(line) - len(said)
            if not said or said[0] == "#":
                block.append("" if at < indent else line[indent:])
            elif at < indent or (at == indent and is_list and said[0] != "-"):
                break
            else:
                block.append(line[indent:])
        return block


def _is_block(node: YamlNode, lines: list[str]) -> bool:
    """Whether a node is a mapping or list over lines, without braces, and without aliases of what stands elsewhere."""
    if node.kind not in ("mapping", "sequence") or lines[node.line - 1][node.column - 1] in "{[":
        return False
    return not _has_alias(node)


def _has_alias(node: YamlNode) -> bool:
    return node.kind == "alias" or any(map(_has_alias, node.items))


def _below_root(queues: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the configuration whose queues below root are these, in which everybody may submit."""
    return {
        "partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": queues}]}],
    }
