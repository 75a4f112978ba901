"""Records a scheduler while a test uses it, and holds the repetition of the recording against it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from determinism.history import History
from licorne import SchedulerAPI
from licorne.core.input_log import InputLog
from licorne.state.recording import Bounds, Names, Recorder, Replay, list_runs
from licorne.state.recording.noting import Both


@contextmanager
def recorded(api: SchedulerAPI) -> Iterator[None]:
    """Record everything within; at its end each run must replay with its digests, the last one to the same state."""
    with tempfile.TemporaryDirectory() as folder:
        troubles: list[str] = []
        recorder = Recorder(Path(folder), trouble=troubles.append)
        api.input_log = recorder
        yield
        api.input_log = None
        assert recorder.close()
        assert troubles == []
        assert_replays(Path(folder), api)


def assert_replays(folder: Path, api: SchedulerAPI) -> None:
    """Check that all that was recorded is decided again, and that the last run ends in the state of a scheduler."""
    last = None
    for run in list_runs(folder):
        last = Replay(run)
        outcome = last.run()
        assert (outcome.checked, outcome.remark) == (outcome.messages, "")
        last.api.validate()
    if last is not None:
        api.validate()  # as for the other: it asks for the size of root, which else is counted anew when it is needed
        assert state_of(last.api) == state_of(api)


def state_of(api: SchedulerAPI) -> dict[str, Any]:
    """Return the state dump of a scheduler, without what its resource managers add to it."""
    state = api.state_dump()
    for manager in state["resourceManagers"]:
        manager.pop("rmDiagnostics", None)
    return state


def record_history(
    folder: Path,
    steps: int,
    *,
    first_interface: bool = False,
    bounds: Bounds | None = None,
    beside: InputLog | None = None,
    names: Names | None = None,
) -> History:
    """Record a made-up history into a folder, and return it. `beside` is told the same inputs."""
    with Recorder(folder, bounds, names=names) as recorder:
        history = History(first_interface, Both.of(recorder, beside))
        for _ in range(steps):
            history.step()
    assert recorder.lost == 0
    return history
