"""`licorne simulate`: runs a workload through the scheduler under a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
from cyclopts import Parameter, validators
from msgspec.structs import replace

from licorne._files import opened
from licorne._version import __version__
from licorne.cli.common import CommandError, UsageError, pairs, print_json
from licorne.cli.configurations import read_configuration
from licorne.cli.parameters import DURATION, Flag, MaxAsks, Pairs, RunNumber, Texts
from licorne.cli.progress import progress_bar
from licorne.cli.refusals import refusals
from licorne.cli.reports import check_report, write_reports
from licorne.cli.statuses import Status
from licorne.lab.report.collector import Collector
from licorne.sim.observer import Observer
from licorne.sim.pods import PodRecord
from licorne.sim.policies.loading import Loaded, load_policies
from licorne.sim.policies.watch import LIMIT_MAX_S, POLICY_TIMEOUT_S
from licorne.sim.report import Result
from licorne.sim.runner import simulate as simulated
from licorne.sim.series import Series, SeriesRow
from licorne.sim.swf_log import SwfOutcome, swf_file
from licorne.sim.verification import Run, first_difference, repeat
from licorne.state.recording import Bounds, Names, Recorder, RecordingError
from licorne.state.recording.folder import is_recording
from licorne.workload.lines import DevicePolicy, to_ns
from licorne.workload.reading import load_workload
from licorne.workload.row_files import RowFileError, check_row_file, row_file
from licorne.workload.traces.recorded import without_reloads
from licorne.workload.traces.swf import is_swf
from licorne.workload.workload import ASKS_MAX, OptionError, Workload, WorkloadError

INTERVAL_S = 60
EMPTY_POINTS_MAX = 1_000_000
"""Points of --series before anything arrives, at most; where there are more, times are dates rather than counted from 0."""
SECONDS_MAX = 9_000_000_000
SinceTime = Annotated[float, DURATION, Parameter(validator=validators.Number(gte=0, lte=SECONDS_MAX))]
PolicyTime = Annotated[float, DURATION, Parameter(validator=validators.Number(gt=0, lte=LIMIT_MAX_S))]
QUEUE_BYTES = 1 << 30
"""How much of a recording may wait to be written. A simulation decides faster than a cluster that lives in real time."""
CLOSING_S = 600.0


def simulate(
    source: Path,
    /,
    *,
    config: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    run: RunNumber = None,
    decisions: Path | None = None,
    pods: Path | None = None,
    series: Path | None = None,
    swf: Path | None = None,
    record: Path | None = None,
    anonymous: Flag = False,
    report: Path | None = None,
    every: Annotated[float | None, DURATION, Parameter(validator=validators.Number(gt=0, lte=SECONDS_MAX))] = None,
    since: SinceTime = 0,
    until: Annotated[float | None, DURATION, Parameter(validator=validators.Number(gt=0, lte=SECONDS_MAX))] = None,
    device_policy: DevicePolicy | None = None,
    policy: Texts = (),
    policy_timeout: PolicyTime = POLICY_TIMEOUT_S,
    setting: Pairs = (),
    grace: Annotated[float | None, DURATION, Parameter(validator=validators.Number(gte=0, lte=SECONDS_MAX))] = None,
    resubmit: bool | None = None,
    max_asks: MaxAsks = ASKS_MAX,
    verify: Flag = False,
    strict: Flag = False,
    json: Flag = False,
) -> int:
    """Run a workload through the scheduler under a virtual clock, and report what became of it.

    Parameters
    ----------
    source
        A workload in JSON lines (a name that ends in .gz: compressed; -: standard input), a scenario (.yaml), or the folder
        of a recording (--record of serve, kube or simulate). `licorne convert` makes a workload of other sources.
    config
        Queue configuration instead of the workload's own, or a ConfigMap that holds one; -: standard input.
    run
        Recording: number of the run, as `licorne replay --runs` lists them; without it, the last one.
    decisions
        Write a line for each allocation, ask<TAB>node, in the order of decision.
    pods
        Write a row for each pod: when it arrived, started and ended, where, and what became of it. The ending of the
        name is the form: .csv, .jsonl (JSON lines) or .parquet.
    series
        Write what queues and cluster use at equal intervals, in a form as for --pods.
    swf
        Write a log in the Standard Workload Format with a line for each application; the name ends in .swf or .swf.gz.
    record
        Record all inputs of the scheduler in this folder, for `licorne replay` and for `licorne why` at any moment (--at, in
        seconds of virtual time).
    anonymous
        With --record: digests in place of names of users and groups.
    report
        Write a report into this folder: a page with pictures and tables (report.html), the pictures as PNG, the figures as
        JSON, CSV and Parquet. Needs the extra `report`.
    every
        Virtual time between two points of --series, in seconds or like 5m; without it, 60.
    since
        Virtual time from which figures count, in seconds or like 24h: use over time, and times of the pods that arrive then.
    until
        Virtual time up to which they count; without it, to the end.
    device_policy
        Which device of a node a share is placed on, where the workload has devices: the one with the least left that
        suffices, the one with the most left, or the first that suffices; without it, what the workload says.
    policy
        A policy that decides in place of the scheduler: one of your own as FILE.py:Class or module:Class, or the name of an
        entry point of the group licorne.policies, of which licorne has fgd, bestfit, dotprod, gpu-packing, gpu-clustering and
        random; may be given several times. It runs with your rights: it is a program.
    policy_timeout
        Time after which a single call of a policy is ended, in seconds or like 1m30s; also loading its code and making its
        object.
    setting
        A setting of the scheduler, like reservation.delay=5s; may be given several times.
    grace
        Time until an evicted pod is gone, in seconds or like 1m30s, in place of what the workload says; where neither says it, 1.
    resubmit
        Create an evicted pod again, or with --no-resubmit do not, in place of what the workload says; where neither says it, it
        is created.
    max_asks
        A workload with more asks is refused; one that repeats counts as often as it does.
    verify
        Run everything twice, the second time in a process of its own, and say where the decisions differ first, if they do:
        those of a policy may.
    strict
        Leave with exit status 6 if an ask was never placed.
    json
        Print the result as a JSON object, with the version of licorne and the SHA-256 of the files that were read.
    """
    if until is not None and since >= until:
        raise UsageError(f"--since {since:g} is not before --until {until:g}")
    _check_files(pods, series, swf, report, every)
    loaded = _load_policies(policy, policy_timeout, record)
    settings = pairs("--setting", setting)
    text = None if config is None else read_configuration(config, simulated=True)[0].text
    workload = read_source(source, max_asks, run)
    workload = without_reloads(workload) if config is not None and is_recording(source) else workload
    _check_beginning(workload, every or INTERVAL_S, series)
    _adapt(workload, source, grace, resubmit, device_policy)
    own = [Collector()] if report is not None else []
    writing = _file_observers(workload, pods, series, swf, every or INTERVAL_S)
    with (
        _decision_files(decisions, verify=verify) as (first, second),
        refusals(),
        progress_bar("simulating") as progress,
        writing as observers,
        _recorder(record, anonymous=anonymous) as recorder,
    ):
        result = simulated(
            workload,
            config=text,
            settings=settings,
            observers=[*observers, *own],
            since_s=since,
            until_s=until,
            pods=False,
            decisions=first,
            input_log=recorder,
            policies=loaded,
            policy_timeout_s=policy_timeout,
            progress=progress,
        )
        result = _verified(result, Run(workload, text, settings, policy, policy_timeout), first, second)
    if report is not None:
        write_reports(report, [(result.workload, own[0], result)])
    _show(result, json, [path for path in (source, config) if path is not None])
    return Status.STRICT if strict and result.never_placed else Status.DONE


def _adapt(
    workload: Workload, path: Path, grace: float | None, resubmit: bool | None, device_policy: DevicePolicy | None
) -> None:
    """Give a workload what options say in place of what it says itself."""
    if grace is not None:
        workload.grace_s = grace
    if resubmit is not None:
        workload.resubmit = resubmit
    if device_policy is not None:
        if not workload.devices:
            raise UsageError(f"{path}: this workload has no devices, so --device-policy is not for it")
        workload.device_policy = device_policy


@contextmanager
def _decision_files(decisions: Path | None, *, verify: bool) -> Iterator[tuple[Path | None, Path | None]]:
    """Yield the files for the decision lines of the first run and of the second, None where there are none."""
    if not verify:
        yield decisions, None
        return
    with TemporaryDirectory(prefix="licorne-") as folder:
        yield decisions or Path(folder) / "first", Path(folder) / "second"


def _verified(result: Result, again: Run, first: Path | None, second: Path | None) -> Result:
    """Run once more if there is a second file, and note that the decisions were the same. Raises CommandError."""
    if first is None or second is None:
        return result
    if repeat(again, second) != result.digest:
        found = first_difference(first, second)
        if found is not None:
            one, other = (text.replace("\t", " on ") or "none" for text in (found.first, found.second))
            raise CommandError(
                f"two runs differ; first in decision {found.number}: {one}, and in the second run {other}"
            )
    return replace(
        result, notes=[*result.notes, "verified: a second run, in a process of its own, took the same decisions"]
    )


def _load_policies(names: Sequence[str], limit_s: float, record: Path | None) -> list[Loaded]:
    """Load all policies, before anything is read, each within the limit. Raises CommandError."""
    with refusals():
        loaded = load_policies(names, limit_s)
    if record is not None and loaded:
        raise UsageError(
            "--record is not for --policy: orders are no inputs of the scheduler, so they cannot be replayed"
        )
    return loaded


@contextmanager
def _recorder(folder: Path | None, *, anonymous: bool) -> Iterator[Recorder | None]:
    """Record into a folder; whatever was lost makes the command fail at the end of the `with` block."""
    if folder is None:
        if anonymous:
            raise UsageError("--anonymous is for a recording: give --record too")
        yield None
        return
    lost: list[str] = []
    try:
        recorder = Recorder(folder, Bounds(queue_bytes=QUEUE_BYTES), lost.append, Names() if anonymous else None)
    except RecordingError as error:
        raise CommandError(str(error), Status.FILE) from None
    try:
        yield recorder
    finally:
        recorder.close(timeout_s=CLOSING_S)
    if lost:
        raise CommandError(f"{folder}: the recording {lost[0]}", Status.FILE)


class _Pods(Observer):
    """Hands on the records of pods."""

    def __init__(self, write: Callable[[PodRecord], object]) -> None:
        self._write = write

    def on_pod(self, record: PodRecord) -> None:
        self._write(record)


def _check_files(
    pods: Path | None, series: Path | None, swf: Path | None, report: Path | None, every_s: float | None
) -> None:
    if report is not None:
        check_report(report)
    if every_s is not None and series is None:
        raise UsageError("--every is the interval of --series, which is not given")
    for path in (pods, series):
        if path is not None:
            try:
                check_row_file(path)
            except RowFileError as error:
                raise UsageError(str(error)) from None
    if swf is not None and not is_swf(swf):
        raise UsageError(f"{swf}: the name of a log ends in .swf or .swf.gz")
    if pods is not None and pods == series:
        raise UsageError(f"{pods}: --pods and --series need a file each")


def _check_beginning(workload: Workload, every_s: float, series: Path | None) -> None:
    first_s = workload.first_arrival_s
    if series is not None and first_s / every_s > EMPTY_POINTS_MAX:
        raise UsageError(
            f"--series has a point every {every_s:g} s from 0 on, and the first pod arrives at {first_s:.0f} s: "
            "times count from 0, so subtract the first one from all"
        )


@contextmanager
def _file_observers(
    workload: Workload, pods: Path | None, series: Path | None, swf: Path | None, every_s: float
) -> Iterator[list[Observer]]:
    """Yield the observers that write files, which are complete when the `with` block ends."""
    with ExitStack() as files:
        observers: list[Observer] = []
        if pods is not None:
            observers.append(_Pods(files.enter_context(row_file(pods, PodRecord)).write))
        if series is not None:
            observers.append(Series(to_ns(every_s), files.enter_context(row_file(series, SeriesRow)).write))
        if swf is not None:
            outcome = SwfOutcome(workload)
            files.enter_context(swf_file(swf, outcome))
            observers.append(outcome)
        yield observers


def read_source(path: Path, max_asks: int, run: int | None = None) -> Workload:
    """Read what is to be simulated, of a recording the run with this number or the last one. Raises CommandError."""
    try:
        with progress_bar("reading") as progress:
            return load_workload(path, run=run, asks_max=max_asks, progress=progress)
    except OptionError as error:
        raise UsageError(f"{path}: {error}") from None
    except WorkloadError as error:
        hint = (
            f"\n{path} may be a state dump, which is one moment and no workload: ask with licorne why --from {path}; of what "
            f"kubectl prints licorne convert {path} -o {path.name.partition('.')[0]}.jsonl makes a workload"
        )
        raise CommandError(f"{error}{hint if path.name.endswith(('.json', '.json.gz')) else ''}") from None
    except FileNotFoundError:
        said = "no such file; give a workload (JSON lines), a scenario (.yaml) or the folder of a recording"
        raise CommandError(f"{path}: {said}; licorne convert makes a workload of anything else", Status.FILE) from None


def _sha256(path: Path) -> str:
    with opened(path) as stream:
        return file_digest(stream, "sha256").hexdigest()


def _show(result: Result, json: bool, inputs: Sequence[Path]) -> None:
    if json:
        digests = {str(path): _sha256(path) for path in inputs if path.is_file()}
        print_json({"licorne": __version__, "inputs": digests, **msgspec.to_builtins(result)})
        return
    from licorne.cli.tables import show  # noqa: PLC0415  # a program that reads JSON need not wait for tables

    show(result)
