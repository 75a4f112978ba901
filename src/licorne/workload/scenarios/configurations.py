"""The queue configurations of a scenario: files, or parts of the scenario itself, whose faults have the places of its own text."""

from __future__ import annotations

from itertools import chain
from pathlib import Path as FilePath
from typing import Any

import msgspec

from licorne._files import file_text
from licorne.config import Configuration, as_data, examine
from licorne.config.manifest import queue_source
from licorne.config.nodes import YamlNode
from licorne.config.problems import ConfigError
from licorne.workload.yaml_files.faults import DocumentError, Path, Problem, spoken
from licorne.workload.yaml_files.reading import Problems


def read_configuration(
    given: str | dict[str, Any] | list[dict[str, Any]], path: Path, problems: Problems, folder: FilePath
) -> tuple[str, Configuration | None]:
    """Return the text of a configuration and what it means; "" and None if it is faulty, which is noted.

    Raises:
        DocumentError: the file cannot be read.
    """
    node = None if isinstance(given, str) else problems.node(path)
    if node is not None and isinstance(given, list):
        node = _tree(_below_root(node), node)
    try:
        if isinstance(given, str):
            label, text = queue_source(_text(folder / given, path), str(folder / given))
        else:
            label, text = problems.file, _dumped(given if isinstance(given, dict) else _below_root(given))
        report, configuration = examine(text, file=label, simulated=True, root=node)
        faults = report.faults
    except ConfigError as error:
        configuration, faults = None, error.problems
    for fault in faults:
        place = fault.place or fault.path
        if node is not None or isinstance(given, str):
            problem = Problem(fault.file, fault.line, fault.column, place or spoken(path), fault.message)
            problems.within(path, problem)
        else:
            problems.note(path, f"{place}: {fault.message}")
    if configuration is None:
        return "", None
    return text if node is None else _dumped(as_data("", root=node)), configuration


def _dumped(data: dict[str, Any]) -> str:
    return msgspec.yaml.encode(data).decode()


def _text(file: FilePath, path: Path) -> str:
    try:
        return file_text(file)
    except OSError as error:
        raise DocumentError(path, f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DocumentError(path, f"{file}: not a text in UTF-8") from None


def _below_root(queues: object) -> dict[str, Any]:
    """Return the configuration whose queues below root are these, in which everybody may submit."""
    return {
        "partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": queues}]}],
    }


def _tree(data: YamlNode | str | dict[str, Any] | list[Any], at: YamlNode) -> YamlNode:
    """Return plain objects as a node at the place of another one; what is a node among them stays."""
    if isinstance(data, YamlNode):
        return data
    if isinstance(data, str):
        return YamlNode("scalar", "", data, False, at.line, at.column)
    made = YamlNode("mapping" if isinstance(data, dict) else "sequence", "", "", False, at.line, at.column)
    parts = chain.from_iterable(data.items()) if isinstance(data, dict) else data
    made.items = [_tree(part, at) for part in parts]
    return made
