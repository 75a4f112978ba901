"""Every reference in docstrings, comments and pages leads to something that the repository has."""

from __future__ import annotations

import pytest

from references.check import Checker
from references.texts import passages, repository_files, texts

pytestmark = pytest.mark.gate


def test_all_references_resolve() -> None:
    files = repository_files()
    found = texts(files)
    checker = Checker(files, found)
    faults = [
        fault for path, text in found.items() for passage in passages(path, text) for fault in checker.faults(passage)
    ]
    assert faults == []
