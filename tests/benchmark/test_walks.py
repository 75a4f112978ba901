"""`python -m bench walks` counts the files whose functions run during one operation."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request
from bench.kube.played import Played, application
from bench.walks import preemption_walk, walks

import licorne
from licorne.kube.api import Kind, kinds

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


def test_the_played_api_server_has_each_kind_that_licorne_reads() -> None:
    """A kind that it does not have is waited for, and nothing is scheduled."""
    played = Played(1, 0, 0)
    app = application(played)
    read = [each for value in vars(kinds).values() for each in (value if isinstance(value, tuple) else (value,))]
    paths = [each.path() for each in read if isinstance(each, Kind) and each is not kinds.LEASES]
    assert len(paths) > 10

    async def run() -> None:
        for path in paths:
            found = await app.router.resolve(make_mocked_request("GET", path))
            assert found.handler == played.collection, path

    asyncio.run(run())
