"""Counts how large the repository is: `python tools/figures.py [FOLDER]`, where FOLDER is another checkout to compare with.

Code lines are those that hold more than blanks, comments and docstrings. An import between packages is a pair of packages of
`src/licorne`, the one of which imports from the other. Commands and options are those of docs/reference/commands.md.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Return the number of lines of a module without blanks, comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def imported(text: str) -> Iterator[str]:
    """Yield the packages of licorne from which a module imports."""
    for node in ast.walk(ast.parse(text)):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".")[1] for name in names if name.startswith("licorne."))


def figures(root: Path) -> dict[str, int | str]:
    """Return the figures of a checkout, by what they count."""
    source = root / "src" / "licorne"
    found: dict[str, int | str] = {}
    for folder in ("src", "tests", "bench", "tools"):
        texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / folder).rglob("*.py"))}
        found[f"{folder}: files"] = len(texts)
        found[f"{folder}: lines"] = sum(len(text.splitlines()) for text in texts.values())
        found[f"{folder}: code lines"] = sum(map(code_lines, texts.values()))
        if folder == "src":
            size, longest = max((len(text.splitlines()), path) for path, text in texts.items())
            packages = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
            pairs = {
                (path.relative_to(source).parts[0], other)
                for path, text in texts.items()
                for other in imported(text)
                if path.parent != source
            }
            found["src: longest file"] = f"{size} {longest.relative_to(source)}"
            found["packages"] = len(packages)
            found["imports between packages"] = sum(a != b and {a, b} <= packages for a, b in pairs)
    commands = (root / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    sections = re.split(r"^## licorne ", commands, flags=re.MULTILINE)[1:]
    found["commands"] = len(sections)
    found["options"] = sum(
        len(set(re.findall(r"(?<![\w-])--[a-z][\w-]*", section)) - {"--help"}) for section in sections
    )
    return found


def main() -> None:
    """Print the figures of this checkout, and beside them those of another one."""
    columns = [figures(Path(folder).resolve()) for folder in sys.argv[1:]] + [figures(ROOT)]
    for name in columns[-1]:
        print(f"{name:28}", *(f"{column[name]!s:>28}" for column in columns))


if __name__ == "__main__":
    main()
