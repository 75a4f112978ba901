"""Reading small YAML files, with errors that name file, line and column."""

from __future__ import annotations

from licorne.config.nodes import YamlNode, behind, compose
from licorne.config.problems import Notes
from licorne.workload.workload import WorkloadError


def composed(text: str, name: str) -> YamlNode | None:
    """Return the content of a YAML file, None if it is empty; `name` is that of the file in messages.

    Raises:
        WorkloadError: it is not YAML.
    """
    notes = Notes(name)
    root = compose(text, notes)
    for problem in notes.report().faults:
        raise WorkloadError(f"{name}:{problem.line}:{problem.column}: {problem.message}")
    return root


def place(name: str, node: YamlNode) -> str:
    """Return where something stands, as `FILE:LINE:COLUMN`."""
    return f"{name}:{node.line}:{node.column}"


def entries(given: YamlNode, name: str, what: str, known: tuple[str, ...]) -> dict[str, YamlNode]:
    """Return the values of a YAML mapping by their keys, each of which is known and stands once. Raises WorkloadError."""
    node = behind(given)
    if node.kind != "mapping":
        raise WorkloadError(f"{place(name, given)}: {what}: must be keys with values; known are {', '.join(known)}")
    found: dict[str, YamlNode] = {}
    for key, value in zip(node.items[::2], node.items[1::2], strict=True):
        if key.text not in known:
            raise WorkloadError(
                f"{place(name, key)}: {what}: `{key.text[:40]}` is not known; known are {', '.join(known)}"
            )
        if key.text in found:
            raise WorkloadError(f"{place(name, key)}: {what}: `{key.text}` stands twice")
        found[key.text] = value
    return found


def text_of(given: YamlNode, name: str, what: str) -> str:
    """Return a text that is not empty, without blanks around it. Raises WorkloadError."""
    node = behind(given)
    if node.kind != "scalar" or not node.text.strip():
        raise WorkloadError(f"{place(name, given)}: {what}: must be a text")
    return node.text.strip()


def whole_of(given: YamlNode, name: str, what: str, most: int, *, least: int = 0) -> int:
    """Return a whole number within bounds. Raises WorkloadError."""
    node = behind(given)
    digits = node.text.replace("_", "") if node.kind == "scalar" else ""
    if not digits.isdecimal() or len(digits) > 19 or not least <= int(digits) <= most:
        raise WorkloadError(f"{place(name, given)}: {what}: must be a whole number from {least} to {most:,}")
    return int(digits)
