"""The part of Go's text/template that the templates of scheduler_perf use.

`render` knows `{{.Name}}`, `{{$name := ...}}`, `{{if}} {{else}} {{end}}`, `{{range}}` over a number (also `{{range $n := ...}}`),
pipes, parentheses, and the functions of FUNCTIONS. Anything else is a `ValueError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

TOKEN = re.compile(r'\s*("[^"]*"|[()|]|[.$]?\w+|[.$])')
ASSIGNMENT = re.compile(r"(\$\w+)\s*:=\s*(.*)$", re.DOTALL)

Value = object
Names = dict[str, Value]


def _number(value: Value) -> float:
    return float(str(value))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "AddInt": lambda *values: int(sum(map(_number, values))),
    "DivideInt": lambda a, b: int(_number(a) / _number(b)),
    "Mod": lambda a, b: int(_number(a)) % int(_number(b)),
    "Int": lambda a: int(_number(a)),
    "JSON": lambda a: json.dumps(a, separators=(",", ":")),
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "eq": lambda a, b: a == b,
    "ge": lambda a, b: a >= b,
}


class Block(NamedTuple):
    """An action with what it encloses: `kind` is if, range or, with nothing enclosed, print."""

    kind: str
    text: str
    body: list[Node]
    other: list[Node]


Node = str | Block


class _Pipeline:
    """One pipeline, computed while it is read."""

    def __init__(self, text: str, dot: Value, names: Names) -> None:
        self.tokens = TOKEN.findall(text)
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            raise ValueError(f"cannot read {text!r}")
        self.dot, self.names = dot, names

    def value(self) -> Value:
        value = self.command([])
        while self.tokens[:1] == ["|"]:
            del self.tokens[0]
            value = self.command([value])
        return value

    def command(self, piped: list[Value]) -> Value:
        function = FUNCTIONS.get(self.tokens[0])
        if function is None:
            return self.operand()
        del self.tokens[0]
        values = []
        while self.tokens and self.tokens[0] not in ("|", ")"):
            values.append(self.operand())
        return function(*values, *piped)

    def operand(self) -> Value:
        word = self.tokens.pop(0)
        if word == "(":
            value = self.value()
            if self.tokens.pop(0) != ")":
                raise ValueError("a parenthesis is not closed")
            return value
        if word[0] == ".":
            return self.dot if word == "." else self.dot.get(word[1:]) if isinstance(self.dot, dict) else None
        if word[0] == "$":
            return self.names[word]
        return None if word == "nil" else json.loads(word)


def _parse(parts: list[str], nodes: list[Node]) -> str:
    """Move nodes from the front of `parts`, which are text and action in turn, up to the `else` or `end` returned."""
    while parts:
        nodes.append(parts.pop(0))
        if not parts:
            break
        action = parts.pop(0).strip()
        kind, _, text = action.partition(" ")
        if action in ("end", "else"):
            return action
        if kind in ("if", "range"):
            block = Block(kind, text, [], [])
            if _parse(parts, block.body) == "else":
                _parse(parts, block.other)
            nodes.append(block)
        else:
            nodes.append(Block("print", action, [], []))
    return ""


def _write(nodes: list[Node], dot: Value, names: Names, out: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            out.append(node)
            continue
        assigned = ASSIGNMENT.match(node.text)
        value = _Pipeline(assigned[2] if assigned else node.text, dot, names).value()
        if node.kind == "range":
            for number in range(int(_number(value))):
                _write(node.body, number, {**names, **({assigned[1]: number} if assigned else {})}, out)
        elif node.kind == "if":
            _write(node.body if value else node.other, dot, dict(names), out)
        elif assigned:
            names[assigned[1]] = value
        else:
            out.append("<no value>" if value is None else str(value).lower() if isinstance(value, bool) else str(value))


def render(text: str, values: dict[str, Value]) -> str:
    """Return the text that a template makes of these values."""
    nodes: list[Node] = []
    _parse(re.split(r"\{\{(.*?)\}\}", text, flags=re.DOTALL), nodes)
    out: list[str] = []
    _write(nodes, values, {}, out)
    return "".join(out)
