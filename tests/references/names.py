"""The names of the code: modules, classes and their members, functions; and every word and string of the programs.

Taken from the syntax trees, without importing anything. A name that several classes or modules share has the members of
all of them: a reference does not say which one it means.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from pathlib import PurePosixPath

DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
CAPITAL = re.compile(r"[A-Z][a-z]\w*")
SNAKE = re.compile(r"_?[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
CONSTANT = re.compile(r"_?(?!LICORNE_)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
CALL = re.compile(r"([\w.]+)\(\)")
FILE = re.compile(r"[\w./-]+\.(?:py|md|proto|pxd|go)")
TEST = re.compile(r"([\w./-]+\.py)::(\w+)")


class Names:
    """Everything that a reference in backticks can name.

    `files` are all paths of the repository. `texts` are its text files by path; programs and proto files give names, and
    `words`, the identifiers and strings in which any other name may be found; so do the words of the specification,
    `originals`, since pages also name what is YuniKorn's.
    """

    def __init__(self, files: list[str], texts: dict[str, str]) -> None:
        self.files = set(files)
        self.members: dict[str, set[str]] = defaultdict(set)
        self.bases: dict[str, set[str]] = defaultdict(set)
        self.modules: dict[str, set[str]] = defaultdict(set)
        self.packages: dict[str, set[str]] = defaultdict(set)
        self.functions: dict[str, set[str]] = {}
        self.words: set[str] = set()
        self.callables = set(dir(builtins))
        self.originals: set[str] = set()
        self.chains: set[str] = set()
        for path, text in texts.items():
            if path.endswith(".py"):
                self._read(path, text)
            elif path.startswith("docs/spec/"):
                self.originals.update(re.findall(r"\w+", text))
            elif not path.endswith(".md") and "/" in path:
                self._write(text)

    def _read(self, path: str, text: str) -> None:
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        prose = {
            id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        top = {name for node in tree.body for name in _bound(node)}
        self._enter_module(path, top)
        self.functions[path] = set()
        for node in nodes:
            match node:
                case ast.ClassDef():
                    self._read_class(node)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.functions[path].add(node.name)
                    self.callables.add(node.name)
                    self.words.add(node.name)
                case ast.Constant(value=str(value)) if id(node) not in prose:
                    self._write(value)
                case ast.Attribute():
                    self.words.add(node.attr)
                    self._enter_chain(_chain(node))
                case ast.Name():
                    self.words.add(node.id)
                case ast.arg() | ast.keyword():
                    self.words.add(node.arg or "")
                case _:
                    pass

    def _write(self, text: str) -> None:
        """Note the words and dotted names of a text that a program holds."""
        self.words.update(re.findall(r"\w+", text))
        for match in DOTTED.finditer(text):
            parts = match[0].split(".")
            for length in range(2, len(parts) + 1):
                self._enter_chain(parts[:length])

    def _enter_chain(self, parts: list[str]) -> None:
        """Note a dotted name, and what is left of it without its first parts."""
        self.chains.update(".".join(parts[start:]) for start in range(len(parts) - 1))

    def _enter_module(self, path: str, top: set[str]) -> None:
        parts = PurePosixPath(path).with_suffix("").parts
        parts = parts[1:] if parts[0] in ("src", "tests") else parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        self.words.update(parts)
        if not parts:
            return
        self.modules[parts[-1]] |= top
        self.modules[".".join(parts)] |= top
        for length in range(1, len(parts)):
            self.packages[".".join(parts[:length])].add(parts[length])
            self.packages[parts[length - 1]].add(parts[length])

    def _read_class(self, node: ast.ClassDef) -> None:
        self.words.add(node.name)
        self.callables.add(node.name)
        self.bases[node.name] |= {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
        members = self.members[node.name]
        for part in ast.walk(node):
            members |= _bound(part)
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
                members.add(part.attr)

    def has(self, name: str, member: str) -> bool:
        """Has a class of this name, or one that it is derived from, such a member?"""
        seen: set[str] = set()
        open_names = [name]
        while open_names:
            one = open_names.pop()
            if one not in seen and one in self.members:
                seen.add(one)
                open_names.extend(self.bases[one])
        return any(member in self.members[one] for one in seen)

    def fault(self, text: str) -> str:
        """The fault of a name that stands in backticks; empty if it is found, or does not look like a name of this project."""
        if match := TEST.fullmatch(text):
            path = self._file(match[1])
            return "" if path and match[2] in self.functions.get(path, ()) else "no such test"
        if FILE.fullmatch(text):
            return "" if self._file(text) else "no such file"
        if match := CALL.fullmatch(text):
            return self.fault(match[1]) if "." in match[1] else "" if match[1] in self.callables else "no such function"
        if DOTTED.fullmatch(text):
            return "" if self._resolves(text) else "no such name"
        if CAPITAL.fullmatch(text) or SNAKE.fullmatch(text) or CONSTANT.fullmatch(text):
            return "" if text in self.words or text in self.originals else "no such name"
        return ""

    def _file(self, path: str) -> str:
        """The one file that a path, or the end of one, may name; any of them if there are several."""
        found = [one for one in self.files if one == path or one.endswith("/" + path)]
        return min(found, default="")

    def _resolves(self, text: str) -> bool:
        parts = text.split(".")
        if text in self.chains:
            return True
        for length in range(len(parts), 0, -1):
            head, rest = ".".join(parts[:length]), parts[length:]
            if head in self.modules or head in self.packages:
                inside = self.modules.get(head, set()) | self.packages.get(head, set())
                if not rest or (rest[0] in inside and (len(rest) == 1 or self._member(rest[0], rest[1]))):
                    return True
                break
        name = parts[0] if parts[0] in self.members else parts[0].capitalize()  # `ask.node`: of class Ask
        if name not in self.members:
            return parts[0] not in self.modules and parts[0] not in self.packages
        return self.has(name, parts[1]) and all(part in self.words for part in parts[2:])

    def _member(self, name: str, member: str) -> bool:
        return self.has(name, member) if name in self.members else member in self.modules.get(name, ())


def _chain(node: ast.Attribute) -> list[str]:
    """The names of `a.b.c`; a part that is no name, as in `f().b`, is left out."""
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.insert(0, inner.attr)
        inner = inner.value
    return [inner.id, *parts] if isinstance(inner, ast.Name) else parts


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds, in a module or a class."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign():
            return {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        case ast.If() | ast.Try():
            return {name for part in ast.iter_child_nodes(node) for name in _bound(part)}
        case _:
            return set()
