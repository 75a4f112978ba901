"""Turns YAML text into a tree of nodes with their lines and columns; nothing is interpreted yet.

libyaml turns the text into events, by way of PyYAML: the original's parser descends from it, so both accept the same
texts. The tree is built here, and not by PyYAML's composer, for four reasons: every scalar must keep its text (a
quantity `010` is not the number 8), an alias must stay visible (its expansion is counted), the depth must be bounded
without recursion, and only the first document counts, as in the original. Any error of the parser becomes a fault with
a line and a column, never a traceback.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

import yaml

from licorne.config.problems import Notes, Spot

MAX_BYTES: Final = 4 * 2**20
MAX_DEPTH: Final = 100

if not yaml.__with_libyaml__:
    raise ImportError("this PyYAML was made without libyaml, which licorne needs: install a wheel of PyYAML")

_LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
Kind = Literal["scalar", "mapping", "sequence", "alias"]
_STANDARD: Final = "tag:yaml.org,2002:"


class YamlNode:
    """A value of the document. `items` are a sequence's elements, or a mapping's keys and values in turn.

    `tag` is the explicit tag, `!!int` for `tag:yaml.org,2002:int`, empty if there is none; `plain` means a scalar
    without quotes and not in block style. An alias has the node that it stands for as `target`; if that node contains
    the alias, `target` is a weak reference, so that there are no reference cycles.
    """

    __slots__ = ("__weakref__", "column", "items", "kind", "line", "plain", "tag", "target", "text")

    def __init__(self, kind: Kind, tag: str, text: str, plain: bool, line: int, column: int) -> None:
        self.kind: Kind = kind
        self.tag = tag
        self.text = text
        self.plain = plain
        self.line = line
        self.column = column
        self.items: list[YamlNode] = []
        self.target: YamlNode | None = None

    def spot(self, path: str) -> Spot:
        """Return the node's place; `path` is the path by which the node was reached."""
        return Spot(self.line, self.column, path, self.text if self.kind != "alias" else f"*{self.text}")


def behind(node: YamlNode) -> YamlNode:
    """Return the node itself, or the node that it is an alias of."""
    return node if node.target is None else node.target


class _FaultError(Exception):
    """The error for a document that cannot be composed: the arguments of `Notes.fault`."""


def compose(text: str, notes: Notes, *, manifests: bool = False) -> YamlNode | None:
    """Return the root node of the first document; None if there is no document, or if a fault was noted.

    With `manifests`, several documents that begin with an object of Kubernetes are returned as one list of objects, as
    kubectl takes them. A syntax error is the only fault noted for its text, because nothing after it can be trusted.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        notes.fault("yaml-size", Spot(1, 1, ""), f"the configuration is larger than {MAX_BYTES} bytes")
        return None
    with _events(text, notes) as events:
        root = _document(events)
        if manifests and root is not None and "kind" in [key.text for key in root.items[::2]]:
            root = _as_list(root, events)
        if root is not None:
            _look_behind(events, notes)
        return root
    return None


def documents(text: str, notes: Notes) -> Iterator[YamlNode]:
    """Yield the root nodes of all documents of a text, which may be of any size; a fault is noted, and ends them."""
    with _events(text, notes) as events:
        yield from iter(lambda: _document(events), None)


@contextmanager
def _events(text: str, notes: Notes) -> Iterator[Iterator[Any]]:
    """Open the parser's events of a text for a `with` block; text that is no YAML, or too deep, is noted and ends the block."""
    text = text.removeprefix("\ufeff")
    events = yaml.parse(text, Loader=yaml.CLoader)
    try:
        yield events
    except _FaultError as error:
        notes.fault(*error.args)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        spot, reason = _syntax_error(error, text)
        notes.fault("yaml-syntax", spot, f"not YAML: {reason}")
    finally:
        events.close()


def _as_list(first: YamlNode, events: Iterator[Any]) -> YamlNode:
    """Return a list of Kubernetes of all documents, of which the first has been read; that one itself if it is the only one."""
    others = list(iter(lambda: _document(events), None))
    if not others:
        return first
    items = YamlNode("sequence", "", "", False, first.line, first.column)
    items.items = [first, *others]
    root = YamlNode("mapping", "", "", False, first.line, first.column)
    words = (YamlNode("scalar", "", word, True, first.line, first.column) for word in ("kind", "List", "items"))
    root.items = [*words, items]
    return root


def _document(events: Iterator[Any]) -> YamlNode | None:
    """Return the root node of the next document; None if there is none."""
    root: YamlNode | None = None
    anchors: dict[str, YamlNode] = {}
    stack: list[YamlNode] = []
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            node = _node("scalar", event, event.value, not event.style)
        elif isinstance(event, yaml.MappingStartEvent):
            node = _node("mapping", event, "", False)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = _node("sequence", event, "", False)
        elif isinstance(event, yaml.AliasEvent):
            node = _node("alias", event, event.anchor, False)
            node.target = anchors.get(node.text)
            if node.target is None:
                raise _FaultError("yaml-anchor", node.spot(""), f"no anchor '{node.text}' stands before this alias")
            if any(node.target is one for one in stack):
                node.target = weakref.proxy(node.target)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            stack.pop()
            continue
        elif isinstance(event, yaml.DocumentEndEvent):
            break
        elif isinstance(event, yaml.DocumentStartEvent) and event.version not in (None, (1, 1)):
            raise yaml.MarkedYAMLError(None, None, "found a version of YAML other than 1.1", event.start_mark)
        else:
            continue
        if stack:
            stack[-1].items.append(node)
        else:
            root = node
        if node.kind != "alias" and event.anchor is not None:
            anchors[event.anchor] = node  # before its content is read, because an anchor may contain itself
        if node.kind in ("mapping", "sequence"):
            stack.append(node)
            if len(stack) > MAX_DEPTH:
                raise _FaultError("yaml-depth", node.spot(""), f"nested deeper than {MAX_DEPTH} levels")
    return root


def _node(kind: Kind, event: Any, text: str, plain: bool) -> YamlNode:
    tag = getattr(event, "tag", None) or ""
    if tag.startswith(_STANDARD):
        tag = "!!" + tag[len(_STANDARD) :]
    mark = event.start_mark
    return YamlNode(kind, "" if tag == "!" else tag, text, plain, mark.line + 1, mark.column + 1)


def _look_behind(events: Iterator[Any], notes: Notes) -> None:
    """Warn of a second document. It is never read, so it cannot be at fault either."""
    try:
        event = next(events, None)
    except yaml.YAMLError:
        return
    if isinstance(event, yaml.DocumentStartEvent):
        spot = Spot(event.start_mark.line + 1, event.start_mark.column + 1, "")
        notes.warn("document-ignored", spot, "only the first document of a file counts; this one is ignored")


def _syntax_error(error: yaml.YAMLError | UnicodeEncodeError, text: str) -> tuple[Spot, str]:
    """Return the place of an error of the parser, and what is wrong there."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        return Spot(mark.line + 1, mark.column + 1, ""), "; ".join(filter(None, (error.context, error.problem)))
    # Half of a surrogate pair has no encoding; the place of any other character is given in bytes.
    is_half = isinstance(error, UnicodeEncodeError)
    before = text[: error.start] if is_half else text.encode()[: error.position].decode()  # type: ignore[union-attr]
    lines = _LINE_BREAK.split(before)
    return Spot(len(lines), len(lines[-1]) + 1, ""), f"the character U+{ord(text[len(before)]):04X} is not allowed"
