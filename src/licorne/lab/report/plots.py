"""The pictures of a report: what each shows of one or several simulations. Each simulation has a panel of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from licorne.lab.report.drawing import LINES, Canvas
from licorne.lab.report.figures import CURVE, Figures, QueueOverTime, Spread, Values, most_pods
from licorne.lab.report.tables import mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS_S = ((86_400 * 3, 86_400, "days"), (3 * 3_600, 3_600, "hours"), (180, 60, "minutes"), (0, 1, "seconds"))
TICKS_S = (
    (0, "0"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (21_600, "6 h"), (86_400, "1 d"), (604_800, "7 d"), (6_048_000, "70 d"),
)  # fmt: skip
QUEUES_DRAWN = 6
"""Most queues of one picture; the tables have the others."""
GANTT_QUEUES = 24
_NAN = float("nan")


def title(axes: Axes, figures: Figures, runs: Sequence[Figures], text: str = "") -> None:
    """Say over a panel what it shows: which simulation, if there are several."""
    parts = [figures.label] if len(runs) > 1 else []
    parts += [text] if text else []
    if parts:
        axes.set_title(": ".join(parts), loc="left")


def time_axis(axes: Axes, figures: Figures) -> Callable[[float], float]:
    """Name the axis of time; return what turns seconds into its unit."""
    span_s = figures.bins * figures.bin_s
    unit_s, name = next((unit, name) for least, unit, name in UNITS_S if span_s >= least)
    since = f" since {figures.start_s:,.0f} s" if figures.start_s else ""
    axes.set_xlabel(f"virtual time{since} [{name}]")
    axes.set_xlim(0, span_s / unit_s)
    return lambda at_s: (at_s - figures.start_s) / unit_s


def _panels(
    canvas: Canvas, runs: Sequence[Figures], *, columns: int = 2, sharex: bool = False, sharey: bool = False
) -> Iterator[tuple[Axes, Figures]]:
    """Yield the axes of a panel for each simulation, with its title, and the figures to draw there."""
    panels = canvas.panels(len(runs), columns=columns, sharex=sharex, sharey=sharey)
    for axes, figures in zip(panels, runs, strict=True):
        title(axes, figures, runs)
        yield axes, figures


def middles(axes: Axes, figures: Figures) -> list[float]:
    """Name the axis of time, and return the middle of each bin there."""
    scale = time_axis(axes, figures)
    return [scale(at_s) for at_s in figures.times_s]


def _numbers(values: Values, factor: float = 1.0) -> list[float]:
    return [_NAN if value is None else value * factor for value in values]


def _ratio(part: Values, whole: Values) -> list[float]:
    return [100 * a / b if a is not None and b else _NAN for a, b in zip(part, whole, strict=True)]


def utilisation(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw the used share of each resource over time."""
    for axes, figures in _panels(canvas, runs, sharey=True):
        at = middles(axes, figures)
        for row in figures.cluster[:LINES]:
            axes.plot(at, _ratio(row.used, row.capacity), **canvas.line(row.resource))
        axes.set_ylabel("used [% of capacity]")
        axes.set_ylim(0, 105)
    canvas.legend()


def devices(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw how many devices are completely and partly used, and untouched, over time."""
    for axes, figures in _panels(canvas, runs, sharey=True):
        at = middles(axes, figures)
        layers = [_summed(getattr(each, name) for each in figures.devices) for name in ("full", "partly", "untouched")]
        names = ("completely used", "partly used", "untouched")
        colours = (*canvas.theme.series[:2], canvas.theme.grid)
        axes.stackplot(at, *layers, labels=names, colors=colours, linewidth=0)
        axes.set_ylabel("devices")
    canvas.legend()


def _summed(columns: Iterable[Values]) -> list[float]:
    rows = list(columns)
    held: list[float] = []
    for values in zip(*rows, strict=True):
        if all(value is None for value in values):
            held.append(held[-1] if held else 0.0)  # a bin in which devices were not looked at
        else:
            held.append(sum(value or 0 for value in values))
    return held


def pending(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw how many asks wait, in the scheduler and before it."""
    for axes, figures in _panels(canvas, runs, sharey=True):
        at = middles(axes, figures)
        axes.plot(at, _numbers(figures.pending_asks), **canvas.line("wait in the scheduler"))
        if any(any(each.held_asks) for each in runs):
            axes.plot(at, _numbers(figures.held_asks), **canvas.line("held back by a gang or an order"))
        axes.set_ylabel("pending asks")
        axes.set_ylim(bottom=0)
    canvas.legend(2)


def spreads(canvas: Canvas, runs: Sequence[Figures], what: str, label: str, by: str = "by_queue") -> None:
    """Draw which share of the pods of each queue or user has at most which time or slowdown."""
    rows = [most_pods(getattr(figures, by), QUEUES_DRAWN) for figures in runs]
    most = max((getattr(row, what).most for each in rows for row in each), default=0.0)
    for axes, figures, found in zip(canvas.panels(len(runs), sharey=True, sharex=True), runs, rows, strict=True):
        for row in found:
            spread: Spread = getattr(row, what)
            if spread.number:
                axes.plot(spread.curve, CURVE, **canvas.line(row.name or "(none)"))
        if what == "slowdown":
            _ratios(axes, most)
        else:
            _durations(axes, most)
        axes.set_xlabel(label)
        axes.set_ylabel("pods [%]")
        axes.set_ylim(0, 102)
        title(axes, figures, runs)
    canvas.legend()


def _durations(axes: Axes, most_s: float) -> None:
    """Give an axis of times in seconds: linear up to a minute, and logarithmic from there."""
    axes.set_xscale("symlog", linthresh=60)
    axes.set_xlim(-2, max(most_s, 60) * 1.1)  # below 0, so that pods without a time are not hidden by the axis
    ticks = [(at_s, name) for at_s, name in TICKS_S if at_s <= max(most_s, 60) * 1.1]
    axes.set_xticks([at_s for at_s, _ in ticks], [name for _, name in ticks])
    axes.minorticks_off()


def _ratios(axes: Axes, most: float) -> None:
    """Give an axis of ratios from 1 on, logarithmic."""
    axes.set_xscale("log")
    axes.set_xlim(0.95, max(most, 2) * 1.1)
    ticks = [digit * 10**power for power in range(9) for digit in (1, 2, 5) if digit * 10**power <= max(most, 2) * 1.1]
    if len(ticks) > 8:
        ticks = [tick for tick in ticks if str(tick).startswith("1")]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()


def _leaf_shares(figures: Figures) -> Iterator[tuple[float, QueueOverTime]]:
    """Yield the mean share of the cluster that each leaf queue uses of each resource, with its use over time."""
    whole = {row.resource: mean(row.capacity) for row in figures.cluster}
    for row in figures.queues:
        if row.leaf and (capacity := whole.get(row.resource)):
            yield (mean(row.used) or 0.0) / capacity, row


def drawn_queues(runs: Sequence[Figures]) -> list[tuple[str, str]]:
    """Return the leaf queues that use the largest shares of the cluster, each with the resource of which it does."""
    best: dict[str, tuple[float, str]] = {}
    for figures in runs:
        for share, row in _leaf_shares(figures):
            if share > best.get(row.queue, (0.0, ""))[0]:
                best[row.queue] = share, row.resource
    largest = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    return [(queue, resource) for queue, (_, resource) in largest[:QUEUES_DRAWN]]


def queue_rows(runs: Sequence[Figures]) -> list[tuple[Figures, QueueOverTime]]:
    """Return what is drawn of queues, those of one queue beside each other."""
    found: list[tuple[Figures, QueueOverTime]] = []
    for chosen in drawn_queues(runs):
        for figures in runs:
            found += ((figures, row) for row in figures.queues if (row.queue, row.resource) == chosen)
    return found


def unit(resource: str, most: float) -> tuple[float, str]:
    """Return by what amounts of a resource are divided on an axis, and the unit's name."""
    if resource == "vcore":
        return 1000, "cores"
    if resource == "memory":
        return (1 << 40, "TiB") if most >= 1 << 42 else (1 << 30, "GiB")
    return 1, resource


def queues(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw what queues use and want over time, with their guarantee and max."""
    rows = queue_rows(runs)
    tops: dict[str, float] = {}
    for _, row in rows:
        wanted = (*_sums(row.used, row.pending), *row.guaranteed)
        tops[row.queue] = max(tops.get(row.queue, 0.0), *(value or 0 for value in wanted))
    for axes, (figures, row) in zip(canvas.panels(len(rows)), rows, strict=True):
        at = middles(axes, figures)
        factor, name = unit(row.resource, tops[row.queue])
        used = _numbers(row.used, 1 / factor)
        axes.fill_between(at, used, color=canvas.colour("used"), alpha=0.35, linewidth=0)
        axes.plot(at, used, **canvas.line("used"))
        axes.plot(at, _numbers(_sums(row.used, row.pending), 1 / factor), **canvas.line("used and pending"))
        for values, what in ((row.guaranteed, "guaranteed"), (row.max, "max")):
            if any(value is not None for value in values):
                axes.plot(at, _numbers(values, 1 / factor), **canvas.line(what))
        axes.set_ylim(0, max(tops[row.queue] / factor * 1.05, 1e-9))
        axes.set_ylabel(name)
        title(axes, figures, runs, row.queue)
    canvas.legend()


def _sums(some: Values, others: Values) -> Values:
    return [None if a is None or b is None else a + b for a, b in zip(some, others, strict=True)]


def evenness(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw Jain's index over time."""
    for axes, figures in _panels(canvas, runs, sharey=True):
        axes.plot(middles(axes, figures), _numbers(figures.evenness), **canvas.line("index"))
        axes.set_ylabel("Jain's index")
        axes.set_ylim(0, 1.05)


def shortfalls(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw how far below its guarantee each queue was on average while it had demand."""
    for axes, figures in _panels(canvas, runs, sharex=True):
        rows = sorted(figures.shortfalls, key=lambda row: -row.mean / max(row.guaranteed, 1))[: 2 * QUEUES_DRAWN]
        names = [f"{row.queue.removeprefix('root.')}, {short(row.resource)}" for row in rows]
        _bars(axes, names, [100 * row.mean / max(row.guaranteed, 1) for row in rows], canvas.theme.series[0])
        axes.set_xlabel("missing while there was demand\n[% of the guarantee]")


def _bars(axes: Axes, names: Sequence[str], lengths: Sequence[float], colour: str) -> None:
    """Draw bars below each other, the first one at the top."""
    axes.barh(range(len(names)), lengths, color=colour)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def short(resource: str) -> str:
    """Return the name of a resource without its domain."""
    return resource.rpartition("/")[2]


def nodes(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw how many nodes are used how much over time."""
    palette = mpl.colormaps["cividis"]
    colours = [canvas.theme.grid, *(mpl.colors.to_hex(palette(index / 9)) for index in range(10))]
    for axes, figures in _panels(canvas, runs, sharey=True):
        at = middles(axes, figures)
        layers = [_summed([values]) for values in figures.nodes.classes]
        pairs = ["unused", *(f"to {10 * index} %" for index in range(1, 11))]
        axes.stackplot(at, *layers, labels=pairs, colors=colours, linewidth=0)
        axes.set_ylabel("nodes")
    canvas.legend(6)


def fragmentation(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw how much of the devices is fragmented over time."""
    for axes, figures in _panels(canvas, runs, sharey=True):
        at = middles(axes, figures)
        found = figures.fragmentation
        if found is not None:
            for values, name in ((found.of_idle, "of what is idle"), (found.of_capacity, "of all devices")):
                known = [(x, 100 * value) for x, value in zip(at, values, strict=True) if value is not None]
                axes.plot([x for x, _ in known], [y for _, y in known], **canvas.line(name))
        axes.set_ylabel("fragmented [%]")
        axes.set_ylim(0, 105)
    canvas.legend()


def evictions(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw the work that was lost to evictions, by the queues that lost it and those that got the room."""
    for axes, figures in _panels(canvas, runs, sharex=True):
        rows = sorted(figures.result["evictions"], key=lambda row: -row["lost_pod_s"])[: 2 * QUEUES_DRAWN]
        names = [f"{_tail(row['queue'])} → {_tail(row['wanted_by'])}" for row in rows]
        _bars(axes, names, [row["lost_pod_s"] / 3_600 for row in rows], canvas.theme.series[1])
        axes.set_xlabel("lost work [pods × hours]")


def _tail(path: str) -> str:
    return path.removeprefix("root.") or "(none)"


def gantt(canvas: Canvas, runs: Sequence[Figures]) -> None:
    """Draw the runs of pods on nodes, or where there are too many how much each queue uses over time."""
    for axes, figures in _panels(canvas, runs, columns=1):
        if figures.bars:
            _runs(canvas, axes, figures)
        else:
            _heat(axes, figures)
        axes.grid(visible=False)
    canvas.legend()


def _runs(canvas: Canvas, axes: Axes, figures: Figures) -> None:
    names = sorted({bar.node for bar in figures.bars})
    paths = sorted({bar.queue for bar in figures.bars})
    scale = time_axis(axes, figures)
    lanes: dict[str, list[float]] = {name: [] for name in names}
    placed: list[tuple[Any, int]] = []
    for bar in figures.bars:
        ends = lanes[bar.node]
        lane = next((index for index, end_s in enumerate(ends) if end_s <= bar.start_s), len(ends))
        if lane == len(ends):
            ends.append(bar.end_s)
        ends[lane] = bar.end_s
        placed.append((bar, lane))
    rows = {name: index for index, name in enumerate(names)}
    for path in paths:
        bars = [(bar, lane) for bar, lane in placed if bar.queue == path]
        height = [0.9 / len(lanes[bar.node]) for bar, _ in bars]
        bottoms = [rows[bar.node] - 0.45 + lane * each for (bar, lane), each in zip(bars, height, strict=True)]
        left = [scale(bar.start_s) for bar, _ in bars]
        width = [scale(bar.end_s) - scale(bar.start_s) for bar, _ in bars]
        axes.barh(bottoms, width, height, left, align="edge", color=canvas.colour(path), label=path, linewidth=0)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()


def _heat(axes: Axes, figures: Figures) -> None:
    """Draw a row for each leaf queue, the darker the more it uses of the most that it ever used."""
    best: dict[str, tuple[float, QueueOverTime]] = {}
    for share, row in _leaf_shares(figures):
        if share > 0 and (row.queue not in best or share > best[row.queue][0]):
            best[row.queue] = share, row
    largest = sorted(best.values(), key=lambda pair: -pair[0])[:GANTT_QUEUES]
    rows = sorted((row for _, row in largest), key=lambda row: row.queue)
    at = middles(axes, figures)
    if not rows or len(at) < 2:
        return
    step = at[1] - at[0]
    palette = mpl.colormaps["cividis"]
    for index, row in enumerate(rows):
        most = max((value for value in row.used if value is not None), default=0.0) or 1.0
        levels = [None if not value else min(7, int(8 * value / most)) for value in row.used]
        for level in range(8):
            spans = [(x - step / 2, step) for x, found in zip(at, levels, strict=True) if found == level]
            axes.broken_barh(
                _merged(spans), (index - 0.4, 0.8), facecolors=mpl.colors.to_hex(palette(level / 7)), linewidth=0
            )
    axes.set_yticks(range(len(rows)), [_tail(row.queue) for row in rows])
    axes.invert_yaxis()


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join spans that touch."""
    found: list[tuple[float, float]] = []
    for left, width in spans:
        if found and abs(found[-1][0] + found[-1][1] - left) < width * 1e-6:
            found[-1] = found[-1][0], found[-1][1] + width
        else:
            found.append((left, width))
    return found


def gantt_height(runs: Sequence[Figures]) -> float:
    """Return the height of a Gantt picture, in inches."""
    rows = 0
    for figures in runs:
        names = {bar.node for bar in figures.bars} or {row.queue for row in figures.queues if row.leaf}
        rows += min(len(names), GANTT_QUEUES if not figures.bars else 60)
    return 1.1 * len(runs) + max(0.17 * rows, 1.2)
