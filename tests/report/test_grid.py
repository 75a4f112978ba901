"""Bins of virtual time: a sample in each, joined when there are too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from licorne.lab.report.grid import FINE_MAX, SHOWN_MAX, Binned, Grid

SECOND_NS = 10**9


def filled(grid: Grid, end_ns: int, step_ns: int) -> Binned:
    """Sample a value that is always 7, told in steps of time."""
    series = grid.new()
    for until_ns in range(grid.start_ns + step_ns, end_ns + step_ns, step_ns):
        for at in grid.take(min(until_ns, end_ns)):
            series.add(at, 7)
    return series


@given(
    start_s=st.integers(0, 10**6),
    horizon_s=st.integers(1, 10**7),
    over=st.floats(0.001, 50),
    steps=st.integers(1, 300),
)
def test_bins_cover_the_time_and_have_the_mean_however_long_it_takes(
    start_s: int, horizon_s: int, over: float, steps: int
) -> None:
    start_ns = start_s * SECOND_NS
    grid = Grid(start_ns, None, start_ns + horizon_s * SECOND_NS)
    end_ns = start_ns + max(steps, int(horizon_s * SECOND_NS * over))
    series = filled(grid, end_ns, -(-(end_ns - start_ns) // steps))
    bins = grid.finish(end_ns)
    assert 1 <= bins <= SHOWN_MAX
    assert start_ns + (bins - 1) * grid.width_ns < end_ns <= start_ns + bins * grid.width_ns
    assert {value for value in series.means(bins) if value is not None} <= {7}
    assert sum(series.counts.tolist()) == grid.samples
    whole = (end_ns - start_ns) // grid.width_ns  # the last bin may end before its sample
    assert None not in series.means(whole)
    assert grid.samples <= 2 * FINE_MAX * (1 + max(0, int(over).bit_length()))


def test_samples_do_not_follow_what_repeats() -> None:
    """A value that is 1 in the first tenth of each bin is 1 in about a tenth of the samples."""
    grid = Grid(0, None, 1000 * 1024)
    series = grid.new()
    for number in range(1024):
        for value, until_ns in ((1, number * grid.width_ns + grid.width_ns // 10), (0, (number + 1) * grid.width_ns)):
            for at in grid.take(until_ns):
                series.add(at, value)
    assert 0.09 < sum(series.sums) / 1024 < 0.11


def test_no_sample_is_taken_after_the_end_of_the_window() -> None:
    grid = Grid(0, 100 * SECOND_NS, 10**6 * SECOND_NS)
    series = filled(grid, 10**4 * SECOND_NS, 10 * SECOND_NS)
    bins = grid.finish(10**4 * SECOND_NS)
    assert bins * grid.width_ns >= 100 * SECOND_NS > (bins - 1) * grid.width_ns
    assert len([value for value in series.means(bins) if value is not None]) == bins
