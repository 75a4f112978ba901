"""The measurement of checkpoints measures what it states."""

from __future__ import annotations

from bench.checkpoint import measure_checkpoint


def test_a_small_cluster() -> None:
    figures = measure_checkpoint(20, 300)
    assert (figures.nodes, figures.allocations) == (20, 300)
    assert 0 < figures.compressed_bytes < figures.bytes
    assert figures.recording_bytes_per_decision > 0
    assert min(figures.take_s, figures.restore_s, figures.checked_restore_s, figures.at_s, figures.whole_s) >= 0
