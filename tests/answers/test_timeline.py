"""The timeline of a recording: what was decided, and how queues fared against their guarantees; and its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.bench import config
from licorne.answers import timeline
from licorne.answers.timeline import Share, Timeline, recorded_timeline
from licorne.si.messages import NewAllocation, Released, Termination
from licorne.state.recording import Recorder, choose_run
from rest.world import SECOND_NS, START_NS, World

CONFIG = config("a resources: {guaranteed: {vcore: 2}}", "b")
KEY = "default", "root.a", "vcore"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """b takes the node; after a minute a wants its guarantee, and after another one b ends."""
    world = World()
    world.api.input_log = recorder = Recorder(tmp_path / "night")
    world.register(text=CONFIG).node("n1", vcore=3_000)
    world.application("of-b", "root.b", "bob").application("of-a", "root.a", "ann")
    world.ask("b1", "of-b", vcore=3_000).schedule(1.0)
    world.ask("a1", "of-a", vcore=2_000).schedule(60.0)
    world.release("b1", "of-b")
    world.schedule(60.0)
    world.schedule(60.0)
    assert recorder.close()
    return tmp_path / "night"


def test_of_a_recording(recording: Path) -> None:
    found = recorded_timeline(choose_run(recording), START_NS, START_NS + 180 * SECOND_NS, samples=6)
    assert [(at - START_NS) // SECOND_NS for at, _ in found.decisions] == [1, 121]
    assert [said.key for _, said in found.decisions] == ["b1", "a1"]
    assert [((sample.time_ns - START_NS) // SECOND_NS, dict(sample.shares())[KEY]) for sample in found.samples] == [
        (0, Share(0, 2_000, 0)),
        (30, Share(0, 2_000, 2_000)),
        (60, Share(0, 2_000, 2_000)),
        (90, Share(0, 2_000, 2_000)),
        (120, Share(0, 2_000, 2_000)),
        (150, Share(2_000, 2_000, 0)),
        (180, Share(2_000, 2_000, 0)),
    ]
    assert not found.cut


def test_what_takes_too_long_is_cut(recording: Path) -> None:
    found = recorded_timeline(choose_run(recording), START_NS, START_NS + 180 * SECOND_NS, lambda: False, samples=6)
    assert len(found.samples) == 1
    assert "is missing" in found.cut


def test_evictions_are_decisions_and_ends_are_not() -> None:
    found = Timeline()
    ended = [Released("k", "app", termination) for termination in Termination]
    found.decided(1, [*ended, NewAllocation("k", "app", "n1", {}), Released("k", "app", Termination.TIMEOUT, ask=True)])
    made = [said.termination if isinstance(said, Released) else "allocated" for _, said in found.decisions]
    assert made == [Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, "allocated"]


def test_all_is_bounded() -> None:
    found = Timeline()
    for time_ns in range(timeline.SAMPLES + 5):
        found.sample(time_ns, [(("p", f"root.q{at}", "vcore"), Share(0, at, 0)) for at in range(timeline.SHARES + 5)])
    assert len(found.samples) == timeline.SAMPLES
    assert {len(sample.keys) for sample in found.samples} == {timeline.SHARES}
    assert len({id(sample.keys) for sample in found.samples}) == 1
    assert ("p", "root.q4", "vcore") not in found.samples[0].keys
    found.decided(0, [NewAllocation(str(at), "app", "n1", {}) for at in range(timeline.DECISIONS + 5)])
    assert len(found.decisions) == timeline.DECISIONS
