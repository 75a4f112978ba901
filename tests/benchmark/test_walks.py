"""`python -m bench walks` counts the files whose functions run during one operation."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.walks import preemption_walk, walks

import licorne

ROOT = Path(str(licorne.__file__)).parent


@pytest.mark.gate
def test_the_files_of_a_preemption() -> None:
    walk = preemption_walk()
    assert all((ROOT / name).is_file() for name in walk.files)
    assert {"core/partition.py", "core/api.py"} & set(walk.files) == {"core/partition.py"}  # registered before


@pytest.mark.nightly
def test_the_files_of_all() -> None:
    for walk in walks():
        assert 10 < len(walk.files) < 120, walk
        assert all((ROOT / name).is_file() for name in walk.files)
