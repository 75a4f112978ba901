# ruff: noqa: T201  # a command prints
"""`python -m bench`: measures cases, shows the figures and keeps them in `bench/results/`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from cyclopts import App, Parameter, validators

from bench import answers
from bench.cases import CASES, GROUPS, PEER_DEFAULT, Case, chosen
from bench.checkpoint import measure_checkpoint
from bench.codec import measure_codec
from bench.instructions import instructions
from bench.kube.clients import measure_clients
from bench.kube.plane import PROGRAMS
from bench.kube.report import KubeReport, new_kube_report, show_kube
from bench.kube.run import measure_kube
from bench.moment import measure_moments
from bench.page import measure_pages
from bench.past import measure_past
from bench.peer import build, measure_pairs, version
from bench.questions import count_questions
from bench.report import show
from bench.results import FOLDER, CaseResult, Pair, Report, new_report, store
from bench.run import BenchError, measure_case
from bench.service.cases import SERVICE_CASES
from bench.service.report import ServiceReport, new_service_report, show_service
from bench.service.run import measure as measure_service
from bench.soak.kinds import KINDS
from bench.soak.report import show_soaked
from bench.soak.run import Soaked
from bench.soak.run import soak as measure_soak
from bench.soak.world import World
from bench.sweep import SweepReport, measure_nodes, measure_sweep
from bench.turns import (
    SLOWER,
    WIDTH,
    Interval,
    Turn,
    TurnsReport,
    compare,
    name_and_figure,
    new_turns_report,
    service_cases,
    state_of,
)
from bench.turnsreport import show_turns
from bench.walks import walks
from bench.workloads import make
from bench.workloads.generate import Options
from licorne.cli.common import UsageError, print_json
from licorne.cli.progress import progress_bar
from licorne.cli.statuses import Status
from licorne.config.model import NodePolicy
from licorne.workload.workload import OptionError, write_workload

Flag = Annotated[bool, Parameter(negative="")]
R = TypeVar("R", Report, ServiceReport, TurnsReport, KubeReport)
Number = Annotated[int, Parameter(validator=validators.Number(gte=1))]
app = App(name="python -m bench", help="Measure licorne, alone or beside yunikorn-core.", version_flags=[])


@app.command(name="list")
def list_cases() -> int:
    """List the cases and the groups of cases."""
    for case in CASES.values():
        print(
            f"{case.name:32} {case.workload} {' '.join(f'{target.figure}={target.value:g}' for target in case.targets)}"
        )
    print(f"groups: {', '.join(GROUPS)}")
    print(
        "other measurements: answers, checkpoint, clients, codec, instructions, kube, moment, page, peer, questions, service, soak, sweep, turns, walks (each has --help)"
    )
    return 0


@app.command(name="generate")
def generate_workload(
    case: str,
    out: Path,
    /,
    *,
    shape: Literal["app", "same", "unique"] = "app",
    appsort: Literal["fifo", "fair"] = "fifo",
    nodesort: NodePolicy = "fair",
    order: Literal["rr", "app"] = "rr",
    seed: int = 1,
    demand: float | None = None,
) -> int:
    """Write the workload of a case, which `licorne simulate` runs: a to x, churn, constraints, tree, gangs, preempt, week.

    Parameters
    ----------
    shape
        app: one size of pods for each application; same: one for all; unique: each pod its own.
    appsort
        How queues sort their applications.
    nodesort
        How the partition sorts its nodes.
    order
        rr: asks of all applications in turn; app: application after application.
    demand
        What the asks want together, as a multiple of what the cluster has (1.5: a third has to wait).
    """
    options = Options(shape=shape, appsort=appsort, nodesort=nodesort, order=order, seed=seed, demand=demand)
    try:
        workload = make(case, options)
    except OptionError as error:
        raise UsageError(str(error)) from None
    with out.open("wb") as stream:
        write_workload(workload, stream)
    say(f"{out}: {workload.name}")
    return 0


@app.command(name="checkpoint")
def measure_checkpoints(*, nodes: Number = 5_000, pods: Number = 150_000) -> int:
    """Measure checkpoints: size, time to take and to restore one, and to ask about a moment of a recording. Prints JSON.

    Parameters
    ----------
    nodes
        How many nodes the cluster has.
    pods
        How many pods come, and run if there is room.
    """
    print_json(measure_checkpoint(nodes, pods))
    return 0


@app.command(name="sweep")
def measure_sweeps(*, points: Number = 1_000, simulated: Number = 40, long: Number = 8, long_s: Number = 10) -> int:
    """Measure what a point of a sweep costs beside its simulation, by processes and, with the extra `ray`, by Ray. Prints JSON.

    With `ray` also how many times as fast a second node makes a sweep, whose ratio is the last figure.

    Parameters
    ----------
    points
        How many points do nothing.
    simulated
        How many points are simulated.
    long
        How many long points run on one Ray node with one processor, and then on two.
    long_s
        How many seconds a long point takes at least.
    """
    print_json(SweepReport(measure_sweep(points, simulated), measure_nodes(long, long_s)))
    return 0


@app.command(name="moment")
def measure_moment(
    *, load: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 1.0, json: Flag = False
) -> int:
    """Measure how long it takes to ask about a moment of a recorded week of 1,000 nodes and a million pods; some minutes.

    Parameters
    ----------
    load
        The factor of all arrivals: 0.01 is a trial.
    json
        Print the result as JSON.
    """
    found = measure_moments(load, say)
    if json:
        print_json(found)
    else:
        for name, value in msgspec.structs.asdict(found).items():
            print(f"{name.replace('_', ' '):20} {value:,}")
    return 0


@app.command(name="page")
def measure_page(
    *,
    nodes: Number = 5_000,
    running: Number = 50_000,
    waiting: Number = 50_000,
    queues: Number = 2_000,
    viewers: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    past: Flag = False,
    json: Flag = False,
) -> int:
    """Measure the page of a large cluster: how long each view takes when nobody has looked before, and how many bytes it sends.

    Parameters
    ----------
    nodes
        How many nodes the cluster has.
    running
        How many pods run.
    waiting
        How many pods wait.
    queues
        How many queues there are, each with a guarantee.
    viewers
        Measure instead what so many viewers take of the thread that decides.
    past
        Measure instead how long the page of a moment takes, of a recorded week of 5,000 nodes and 50,000 pods at a time.
    json
        Print the result as JSON.
    """
    if past or viewers:
        from bench.viewers import measure_viewers  # noqa: PLC0415  it needs a package of those who develop

        print_json(measure_past(say=say) if past else measure_viewers(viewers, (nodes, running, waiting, queues), say))
        return 0
    found = measure_pages(nodes, running, waiting, queues, say)
    if json:
        print_json(found)
    else:
        for each in found:
            print(
                f"{each.view:24} {each.first_s * 1000:6.0f} ms ({each.wall_s * 1000:.0f} by the clock), again {each.again_s * 1000:6.0f} ms; "
                f"{each.bytes / 1000:4.0f} kB, of which browsers keep {each.kept_bytes / 1000:.0f}"
            )
    return 0


@app.command(name="walks")
def count_files(*, json: Flag = False, names: Flag = False) -> int:
    """Count the files whose functions run for an ask, a GET of the queues, a reload, a pod and a preemption, as plain Python.

    Behind them, how often a file is called that was left before.

    Parameters
    ----------
    json
        Print the result, with the names of the files, as JSON.
    names
        Print the names of the files too.
    """
    found = walks()
    if json:
        print_json(found)
        return 0
    for walk in found:
        print(f"{len(walk.files):4} {walk.returns:5}  {walk.what}")
        if names:
            print("".join(f"      {name}\n" for name in walk.files), end="")
    return 0


@app.command(name="instructions")
def count_instructions(*, json: Flag = False) -> int:
    """Count the instructions that an ask and its decision take, with valgrind; this takes some minutes.

    Parameters
    ----------
    json
        Print the counts as JSON.
    """
    counts = []
    for count in instructions():
        say(f"{count.boundary}: submit {count.submit:,}, decide {count.decide:,}, both {count.submit + count.decide:,}")
        counts.append(count)
    if json:
        print_json(counts)
    return 0


@app.command
def run(
    *names: str,
    repeat: Number = 3,
    interpreted: Flag = False,
    no_memory: Flag = False,
    out: Path = FOLDER / "latest.json",
    json: Flag = False,
) -> int:
    """Measure licorne alone.

    Parameters
    ----------
    names
        Cases and groups (see `list`); if none are given, the group quick: all but x, the variants, and most of those with bytes.
    repeat
        Runs of each case, of which the median counts.
    interpreted
        Run the core as plain Python, although it may be compiled.
    no_memory
        Leave out the measuring of memory, which takes a run more.
    out
        Where the result is kept, as JSON.
    json
        Print the result as JSON in place of tables.
    """
    cases = cases_of(names, ("quick",))

    def measure(case: Case) -> CaseResult:
        return measure_case(case, repeat=repeat, interpreted=interpreted, memory=not no_memory)

    return perform(cases, measure, new_report(), out, json=json)


@app.command
def peer(
    *names: str,
    pairs: Number = 3,
    cap: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 60,
    driver: Path | None = None,
    out: Path = FOLDER / "peer.json",
    json: Flag = False,
) -> int:
    """Measure licorne and yunikorn-core in turn, on the same workload files. Needs Go.

    Parameters
    ----------
    names
        Cases and groups; if none are given: b c d binpacking full e2 e3.
    pairs
        Runs of each program for each case.
    cap
        Stop a run of the peer after so many seconds; its time then is a lower bound.
    driver
        The driver of the peer, if it is built already.
    out
        Where the result is kept, as JSON.
    json
        Print the result as JSON in place of tables.
    """
    cases = cases_of(names, PEER_DEFAULT)
    program = driver.resolve() if driver is not None else build()
    report = new_report(version())

    def told(pair: Pair) -> None:
        say(f"  {pair.licorne.seconds:.2f} s, {pair.peer.seconds:.2f} s: ratio {pair.ratio}")

    def measure(case: Case) -> CaseResult:
        return measure_pairs(case, program, pairs=pairs, cap_s=cap, told=told)

    return perform(cases, measure, report, out, json=json)


@app.command
def turns(
    old: str,
    new: str,
    /,
    *names: str,
    least: Annotated[int, Parameter(validator=validators.Number(gte=2))] = 10,
    most: Annotated[int, Parameter(validator=validators.Number(gte=2))] = 40,
    repeat: Number = 3,
    bound: Annotated[float, Parameter(validator=validators.Number(gt=0, lte=1))] = SLOWER,
    out: Path = FOLDER / "turns.json",
    json: Flag = False,
) -> int:
    """Compare two commits by runs in turn, and tell which cases have become slower.

    Each case ends with the ratio of the medians, new through old, and its 95 % interval. Exit status: 0; 1 if a case is
    slower or could not be measured.

    Parameters
    ----------
    old
        A commit, by any name that git knows, or the folder of a checkout that is compiled (`.` for this one).
    new
        Likewise, what is compared with it.
    names
        Cases and groups, and of the service: service, service-grpc, service-client, service-rest, service-rest-changing.
        If none are given, the group quick.
    least
        Turns of each case, at least; a turn is one process of each commit.
    most
        Turns of each case, at most: more than the least are made while the interval is not narrower than 0.04.
    repeat
        Runs in a process, of which the median counts; rounds of service-grpc and service-client.
    bound
        A case is slower if its whole interval lies below this.
    out
        Where the result is kept, as JSON.
    json
        Print the result as JSON in place of a table.
    """
    served = service_cases(names)
    others = tuple(name for name in names if not service_cases([name]))
    cases = [*(cases_of(others, ("quick",)) if others or not served else ()), *served]
    first, second = state_of(old, say), state_of(new, say)
    report = new_turns_report(first, second)

    def told(made: Sequence[Turn], found: Interval) -> None:
        progress(f"  {len(made)} of {most if found.width >= WIDTH else max(least, len(made))} turns: {spoken(found)}")

    for number, case in enumerate(cases, 1):
        name, _ = name_and_figure(case)
        say(f"{name} ({number} of {len(cases)}) ...")
        try:
            compared = compare(first, second, case, least=least, most=max(least, most), repeat=repeat, told=told)
            report.cases.append(compared)
            progress("")
            say(f"  {spoken(compared.interval)}, {len(compared.turns)} turns")
        except BenchError as error:
            report.failures.append(f"{name} failed: {error}")
            say(report.failures[-1])
        store(report, out)
    status = finish(report, out, lambda made: show_turns(made, bound), json=json)
    return 1 if report.slower(bound) else status


def spoken(found: Interval) -> str:
    """Return a ratio with its interval as text, like `1.012 (0.998 to 1.020)`."""
    return f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"


def progress(text: str) -> None:
    """Show progress on a terminal, in a line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


@app.command
def service(
    *names: str,
    scale: Annotated[float, Parameter(validator=validators.Number(gt=0, lte=1))] = 1,
    out: Path = FOLDER / "service.json",
    json: Flag = False,
) -> int:
    """Measure the service: `licorne serve` and its clients, in processes of their own on loopback.

    Parameters
    ----------
    names
        grpc, client, managers, dump, rest, rest-changing, memory, record, follow; if none are given, all of them.
    scale
        Sizes as a share of the full ones, to try the command out; targets are judged at 1 only.
    out
        Where the result is kept, as JSON.
    json
        Print the result as JSON in place of tables.
    """
    unknown = [name for name in names if name not in SERVICE_CASES]
    if unknown:
        raise UsageError(f"{unknown[0]}: no such measurement; there are {', '.join(SERVICE_CASES)}")
    report = new_service_report(scale)
    for case in SERVICE_CASES.values():
        if not names or case.name in names:
            try:
                report.results.append(measure_service(case.scaled(scale), say))
            except (BenchError, OSError) as error:
                report.failures.append(f"{case.name} failed: {error}")
                say(report.failures[-1])
            store(report, out)
    return finish(report, out, show_service, json=json)


@app.command
def questions(*, json: Flag = False) -> int:
    """Count, with valgrind, the instructions that a question by REST takes of the thread that decides.

    Parameters
    ----------
    json
        Print the result as JSON.
    """
    found = count_questions(say)
    if json:
        print_json(found)
    else:
        print(
            f"instructions of the thread that decides: {found.decision:,} a decision, {found.question:,} a question; "
            f"one question a second, for {found.pods_per_s:,} decisions: {found.percent:g} % more"
        )
    return 0


@app.command
def kube(
    *,
    turns: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 5,
    nodes: Number = 1000,
    pods: Number = 3000,
    large: tuple[int, int] = (5000, 150_000),
    programs: Path = PROGRAMS,
    out: Path = FOLDER / "kube.json",
    json: Flag = False,
) -> int:
    """Measure `licorne kube` in turn with kube-scheduler and a bare client, on a control plane of this machine.

    Parameters
    ----------
    turns
        Turns with kwok, and as many without; 0: none.
    nodes
        Nodes of the control plane.
    pods
        Pods of each measurement.
    large
        Nodes and running pods of the large cluster, whose API server is played; 0 0: none.
    programs
        Folder of the control plane's programs, as `make controlplane` builds them.
    out
        Where the result is kept, as JSON.
    json
        Print the result as JSON in place of tables.
    """
    report = new_kube_report(nodes, pods)
    try:
        measure_kube(report.figures, programs.resolve(), turns, large, say)
    except (BenchError, OSError) as error:
        report.failures.append(str(error))
        say(report.failures[-1])
    store(report, out)
    return finish(report, out, show_kube, json=json)


@app.command(name="clients")
def http_clients(*, count: Number = 20_000, in_flight: Number = 32, turns: Number = 5, json: Flag = False) -> int:
    """Measure HTTP clients with many bindings in flight, on asyncio's loop and on uvloop: why `licorne kube` uses aiohttp.

    Parameters
    ----------
    count
        Requests of each client in each turn.
    in_flight
        Requests at a time, each on a connection of its own.
    turns
        Turns, of which the median counts.
    json
        Print the result as JSON in place of a table.
    """
    found = measure_clients(count, in_flight, turns, say)
    if json:
        print_json(found)
        return 0
    for one in found:
        print(
            f"{one.client:8} {one.loop:8} {one.cpu_ms_a_request:7.3f} ms a request  {one.requests_per_s:8,.0f} requests/s"
        )
    return 0


@app.command(name="codec")
def measure_reading(*, count: Number = 1_000, turns: Number = 15, json: Flag = False) -> int:
    """Measure how long licorne and the package protobuf take to read asks and nodes: why the codec is written by hand.

    Parameters
    ----------
    count
        Asks, and nodes, of a request: at most 1,000.
    turns
        Turns, of which the median counts.
    json
        Print the result as JSON.
    """
    try:
        found = measure_codec(count, turns, progress)
        progress("")
    except BenchError as error:
        raise UsageError(str(error)) from error
    if json:
        print_json(found)
        return 0
    for one in found.asks:
        print(
            f"an ask of {one.bytes:g} bytes, {one.tags} tags: protobuf {one.protobuf_us:g} µs, {one.parsed_us:g} of them its parser; "
            f"licorne {one.licorne_us:g} µs"
        )
    print(f"a node: protobuf {found.node_protobuf_us:g} µs; licorne {found.node_licorne_us:g} µs")
    print(f"an object checked: a node {found.node_checked_us:g} µs; an application {found.application_checked_us:g} µs")
    return 0


@app.command(name="answers")
def measure_answers(
    *,
    shape: Literal["app", "same", "unique"] = "app",
    scale: Annotated[float, Parameter(validator=validators.Number(gt=0, lte=1))] = 1,
    json: Flag = False,
) -> int:
    """Measure answers to "why" about 5,000 nodes with 50,000 asks running and 50,000 pending. Exit status: 0; 1 if a goal is missed.

    Parameters
    ----------
    shape
        app: the pods of an application are alike; same: all are; unique: all differ.
    scale
        Nodes and asks as a share of these.
    json
        Print the result as JSON.
    """
    found = answers.measure(scale, shape, say)
    if json:
        print_json(found)
    else:
        print("\n".join(answers.lines(found)))
    return 0 if found.holds else 1


@app.command
def soak(*names: str, count: Number = 1_000_000, json: Flag = False) -> int:
    """Let things come and go, one kind after the other, and see whether time or memory grow with what is gone.

    Parameters
    ----------
    names
        Kinds of things, such as asks, users or nodes; if none are given, all of them.
    count
        So many of each kind, at most 1,000 alive; of what is slow to come, fewer.
    json
        Print the result as JSON in place of a table.
    """
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise UsageError(f"{unknown[0]}: no such kind; there are {', '.join(KINDS)}")
    world = World()
    results: list[Soaked] = []
    for kind in KINDS.values():
        if not names or kind.name in names:
            with progress_bar(kind.what) as progress:
                results.append(measure_soak(world, kind, count, progress))
            say(f"{kind.name}: {results[-1].last_us:.1f} µs, {results[-1].slower:.3f}, {results[-1].larger:.3f}")
    if json:
        print_json(results)
    else:
        show_soaked(results)
    return 0 if all(result.holds for result in results) else 1


def cases_of(names: tuple[str, ...], default: tuple[str, ...]) -> list[Case]:
    """Return the chosen cases. Raises UsageError for an unknown name."""
    try:
        return chosen(names, default)
    except KeyError as error:
        raise UsageError(f"{error.args[0]}: neither a case nor a group; `python -m bench list` lists them") from None


def say(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def perform(cases: list[Case], measure: Callable[[Case], CaseResult], report: Report, out: Path, *, json: bool) -> int:
    """Measure the cases, store and show the results; return the exit status. A failed case does not stop the others."""
    for case in cases:
        say(f"{case.name} ...")
        try:
            report.add(measure(case))
        except BenchError as error:
            report.failures.append(f"{case.name} failed: {error}")
            say(report.failures[-1])
        store(report, out)
    return finish(report, out, show, json=json)


def finish(report: R, out: Path, show_it: Callable[[R], None], *, json: bool) -> int:
    """Show a report that is stored already; return the exit status."""
    if json:
        print_json(report)
    else:
        show_it(report)
    say(f"kept in {out}")
    return 1 if report.failures else 0


def main() -> int:
    """Run the command line."""
    try:
        return int(app(result_action="return_value") or 0)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return Status.NO
    except UsageError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("bench: interrupted; what was measured is kept", file=sys.stderr)
        return Status.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
