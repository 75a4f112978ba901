"""The page of a sweep: each figure by setting, with confidence intervals over the seeds.

A setting is all that a sweep varies except the seed: workload, configuration, load, policy, choice of device. Settings are
compared with the first one of the same workload and load by the differences of points with the same seed, which vary less than
the points do, because both have the same arrivals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from licorne._extras import require
from licorne.lab.report.figures import Figures
from licorne.lab.report.sections import Plot, Section
from licorne.lab.report.tables import Table
from licorne.lab.sweep.intervals import Interval, interval
from licorne.lab.sweep.table import Row
from licorne.workload.finished import finished_file
from licorne.workload.quantities import duration

if TYPE_CHECKING:
    from licorne.lab.report.drawing import Canvas

PAGE = "sweep.html"
SETTINGS_DRAWN = 40
"""Most settings of a picture; the table has all."""
ERRORS_MAX = 100


class Metric(NamedTuple):
    """A figure: its name in rows, its title with unit, what it says, and how a value is written."""

    name: str
    title: str
    text: str
    shown: Callable[[float], str]
    factor: float = 1.0


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _number(value: float) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


METRICS = (
    Metric("wait_mean_s", "mean waiting time [min]", "How long pods waited until they were placed.", duration, 1 / 60),
    Metric(
        "wait_p95_s",
        "95th percentile of the waiting time [min]",
        "All but 5 % of the pods waited less.",
        duration,
        1 / 60,
    ),
    Metric("slowdown_mean", "mean bounded slowdown", "How many times longer pods took than their run.", _number),
    Metric(
        "use", "use of the scarcest resource [%]", "Mean over time, of the resource that is used most.", _percent, 100
    ),
    Metric("never_placed", "asks never placed", "Asks without a place to the end.", _number),
    Metric("preempted", "pods preempted", "Pods that were evicted for others.", _number),
    Metric(
        "lost_pod_h", "work lost to evictions [pods × h]", "Pods times the time that they had run in vain.", _number
    ),
    Metric("evenness", "mean of Jain's index", "How evenly queues have what they can claim; 1: all the same.", _number),
    Metric(
        "guarantee_missing",
        "missing part of guarantees [%]",
        "What queues lacked of their guarantees on average while they had demand.",
        _percent,
        100,
    ),
    Metric(
        "fragmented", "fragmented devices [%]", "Devices that are idle and of no use for the usual pods.", _percent, 100
    ),
)


class Setting(NamedTuple):
    """What points of a sweep have in common that differ in their seed alone."""

    workload: str
    configuration: str
    load: float | None
    policy: str
    device_policy: str

    def words(self, varied: Sequence[str]) -> str:
        """Name what distinguishes this setting from the others."""
        found = [_word(name, getattr(self, name)) for name in varied]
        return ", ".join(found) or Path(self.workload).name


def _word(name: str, value: object) -> str:
    if name in ("workload", "configuration"):
        return Path(str(value)).name
    if name == "load":
        return f"load {value:g}" if isinstance(value, float) else "load as it is"
    return str(value) or "as the workload says"


def settings(rows: Sequence[Row]) -> dict[Setting, list[Row]]:
    """Group rows by setting, in order."""
    found: defaultdict[Setting, list[Row]] = defaultdict(list)
    for row in rows:
        found[Setting(row.workload, row.configuration, row.load, row.policy, row.device_policy)].append(row)
    return dict(found)


def values(rows: Sequence[Row], metric: Metric) -> list[float]:
    """Return the values of a figure, of the points that have one."""
    return [float(value) for row in rows if (value := getattr(row, metric.name)) is not None]


def differences(rows: Sequence[Row], base: Sequence[Row], metric: Metric) -> list[float]:
    """Return by how much a figure exceeds that of another setting, for each seed that both have."""
    by_seed = {row.seed: getattr(row, metric.name) for row in base}
    pairs = ((getattr(row, metric.name), by_seed.get(row.seed)) for row in rows)
    return [float(some) - float(other) for some, other in pairs if some is not None and other is not None]


def write_sweep_page(folder: Path, name: str, rows: Sequence[Row], *, made: str = "") -> Path:
    """Write the page of a sweep and its pictures into a folder; return the path of the page.

    Raises:
        MissingExtraError: the packages of the extra `report` are not installed.
        OSError: a file cannot be written.
    """
    require("report")
    from licorne.lab.report.page import page, write_pictures  # noqa: PLC0415  # matplotlib is loaded only where it is wanted

    parts = [_summary(rows), *(_section(rows, metric) for metric in METRICS if any(values(rows, metric)))]
    write_pictures(folder, parts, [])
    failed = sum(bool(row.error) for row in rows)
    lead = (
        f"{len(rows):,} simulations, of {len(settings(rows)):,} settings. Bars and ± are 95 % confidence intervals of the mean over "
        "the seeds, by Student's t; differences are those of points with the same seed. table.csv has every point."
    )
    notes = [f"{failed:,} points failed, and count for nothing here"] if failed else []
    text = page(f"Sweep: {name}", lead, notes, parts, [], made=made)
    with finished_file(folder / PAGE) as file:
        file.write_bytes(text.encode())
    return folder / PAGE


def _varied(found: Sequence[Setting]) -> list[str]:
    return [name for name in Setting._fields if len({getattr(each, name) for each in found}) > 1]


def _summary(rows: Sequence[Row]) -> Section:
    groups = settings(rows)
    varied = _varied(list(groups))
    cells = [
        [
            setting.words(varied),
            f"{len(found):,}",
            f"{sum(bool(row.error) for row in found):,}",
            *(_shown(interval(values(found, metric)), metric) for metric in METRICS[:4]),
        ]
        for setting, found in groups.items()
    ]
    columns = ("<setting", "points", "failed", *(metric.title.partition(" [")[0] for metric in METRICS[:4]))
    tables = [Table("All settings", columns, cells)]
    errors = [
        [setting.words(varied), "–" if row.seed is None else str(row.seed), row.error]
        for setting, found in groups.items()
        for row in found
        if row.error
    ]
    if errors:
        tables.append(Table("Points that failed", ("<setting", "<seed", "<error"), errors[:ERRORS_MAX]))
    return Section("summary", "Summary", "Means over the seeds, with their confidence intervals.", (), tables)


def _shown(found: Interval | None, metric: Metric) -> str:
    if found is None:
        return "–"
    if found.half is None:
        return metric.shown(found.mean)
    return f"{metric.shown(found.mean)} ± {metric.shown(found.half)}"


def _section(rows: Sequence[Row], metric: Metric) -> Section:
    groups = settings(rows)
    varied = _varied(list(groups))
    bases: dict[tuple[str, float | None], Setting] = {}
    cells: list[list[str]] = []
    for setting, found in groups.items():
        base = bases.setdefault((setting.workload, setting.load), setting)
        change = interval(differences(found, groups[base], metric)) if base != setting else None
        mean = interval(values(found, metric))
        number = mean.number if mean is not None else 0
        cells.append(
            [setting.words(varied), f"{number:,}", _shown(mean, metric), _shown(change, metric), base.words(varied)]
        )
    columns = ("<setting", "points", "mean", "difference", "<from")
    title = metric.title.partition(" [")[0]
    title = title[0].upper() + title[1:]  # names within it keep their letters
    if len({setting.load for setting in groups}) > 1:
        panels = len({setting.workload for setting in groups})
        heights = (3.4 * -(-panels // 2), 3.4 * panels + 0.6)
        draw: Callable[[Canvas, Sequence[Figures]], None] = partial(_by_load, rows=rows, metric=metric)
    else:
        lines = min(len(groups), SETTINGS_DRAWN)
        heights = (1.0 + 0.3 * lines, 1.0 + 0.3 * lines)
        draw = partial(_dots, rows=rows, metric=metric)
    plot = Plot(metric.name.replace("_", "-"), f"{title} by setting", draw, *heights)
    return Section(plot.name, title, metric.text, (plot,), (Table(f"{title} by setting", columns, cells),))


def _dots(canvas: Canvas, _: Sequence[Figures], rows: Sequence[Row], metric: Metric) -> None:
    """Draw a point with its interval for each setting."""
    groups = dict(list(settings(rows).items())[:SETTINGS_DRAWN])
    varied = _varied(list(groups))
    (axes,) = canvas.panels(1)
    for index, (_setting, found) in enumerate(groups.items()):
        mean = interval(values(found, metric))
        if mean is not None:
            reach = None if mean.half is None else mean.half * metric.factor
            middle, colour = mean.mean * metric.factor, canvas.theme.series[0]
            axes.errorbar(middle, index, xerr=reach, fmt="o", capsize=3, color=colour, markersize=4)
    axes.set_yticks(range(len(groups)), [setting.words(varied) for setting in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel(metric.title)


def _by_load(canvas: Canvas, _: Sequence[Figures], rows: Sequence[Row], metric: Metric) -> None:
    """Draw a line over the loads for each setting, and a panel for each workload."""
    groups = settings(rows)
    varied = [name for name in _varied(list(groups)) if name not in ("load", "workload")]
    workloads = list(dict.fromkeys(setting.workload for setting in groups))
    for axes, workload in zip(canvas.panels(len(workloads), sharey=True), workloads, strict=True):
        lines: defaultdict[str, list[tuple[float, Interval]]] = defaultdict(list)
        for setting, found in groups.items():
            mean = interval(values(found, metric))
            if setting.workload == workload and setting.load is not None and mean is not None:
                lines[setting.words(varied) if varied else "all"].append((setting.load, mean))
        for name, points in list(lines.items())[:SETTINGS_DRAWN]:
            points.sort(key=lambda point: point[0])
            means = [mean.mean * metric.factor for _, mean in points]
            reach = [(mean.half or 0.0) * metric.factor for _, mean in points]
            loads = [load for load, _ in points]
            axes.errorbar(loads, means, yerr=reach, capsize=3, marker="o", markersize=3, **canvas.line(name))
        axes.set_xlabel("load")
        axes.set_ylabel(metric.title)
        if len(workloads) > 1:
            axes.set_title(Path(workload).name, loc="left")
    if varied:
        canvas.legend()
