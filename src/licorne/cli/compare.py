"""`licorne compare`: what another queue configuration would have made of a workload or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from licorne.cli.common import UsageError, pairs, print_json
from licorne.cli.configurations import read_configuration
from licorne.cli.parameters import Flag, MaxAsks, Output, Pairs, RunNumber
from licorne.cli.progress import progress_bar
from licorne.cli.refusals import refusals
from licorne.cli.reports import check_report, write_reports
from licorne.cli.simulate import read_source
from licorne.cli.statuses import Status
from licorne.lab.report.collector import Collector
from licorne.sim.comparison import compare as compared
from licorne.sim.observer import Observer
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.state.recording.folder import is_recording
from licorne.workload.traces.recorded import without_reloads
from licorne.workload.workload import ASKS_MAX, Workload

OWN = Path("own")
"""In place of a file: the configuration of the workload or recording itself."""


def compare(
    old: Path,
    new: Path,
    source: Path,
    /,
    *,
    run: RunNumber = None,
    setting: Pairs = (),
    max_asks: MaxAsks = ASKS_MAX,
    output: Output = None,
    json: Flag = False,
) -> int:
    """Run a workload under two queue configurations, and say who waits longer, is evicted, is refused or is never placed.

    Parameters
    ----------
    old
        Queue configuration (queues.yaml, or a ConfigMap); own: that of the workload or recording, as it was in force.
    new
        The configuration that is compared with it, likewise.
    source
        A workload, a scenario or the folder of a recording, as for `licorne simulate`.
    run
        Recording: number of the run, as `licorne replay --runs` lists them; without it, the last one.
    setting
        A setting of the scheduler in both runs, like reservation.delay=5s; may be given several times.
    max_asks
        A workload with more asks is refused; one that repeats counts as often as it does.
    output
        Write a report of both into this folder, side by side, as `licorne simulate --report` does of one.
    json
        Print the comparison as a JSON object.
    """
    if old == new == OWN:
        raise UsageError("own and own are the same configuration: name a file for at least one of the two")
    if output is not None:
        check_report(output)
    settings = pairs("--setting", setting)
    texts = [None if path == OWN else read_configuration(path, simulated=True)[0].text for path in (old, new)]
    workload = read_source(source, max_asks, run)
    elsewhere = without_reloads(workload) if is_recording(source) else workload
    collectors = [Collector(), Collector()] if output is not None else []
    results = [
        _run(label, workload if text is None else elsewhere, text, settings, collectors[index : index + 1])
        for index, (label, text) in enumerate(zip(("old", "new"), texts, strict=True))
    ]
    if output is not None:
        labels = [f"old ({old.name})", f"new ({new.name})"]
        write_reports(output, list(zip(labels, collectors, results, strict=True)))
    answer = compared(*results)
    if json:
        print_json(answer)
    else:
        from licorne.cli.compare_text import show  # noqa: PLC0415  # a program that reads JSON need not wait for tables

        show(answer, str(old), str(new))
    return Status.DONE


def _run(
    label: str, workload: Workload, text: str | None, settings: dict[str, str], observers: Sequence[Observer]
) -> Result:
    with refusals(), progress_bar(f"simulating, {label}") as progress:
        return simulate(workload, config=text, settings=settings, observers=observers, pods=False, progress=progress)
