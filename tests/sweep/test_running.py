"""Sweeps run by processes: the same table as one after the other, and they go on after whatever interrupted them."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from common.plain_python import printed_by
from common.waiting import wait_for
from licorne.lab.sweep import Outcome, Point, Sweep, run_point, run_sweep
from licorne.lab.sweep.engines import Processes
from licorne.lab.sweep.running import jobs_of
from licorne.lab.sweep.table import rows, write_table
from licorne.sim.policies import PolicyError
from report.workloads import QUEUES, small
from rings import first_in_gate
from sweep import faults, laws, runs

LOADS = (0.5, 1.0, 2.0)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    (tmp_path / "other.yaml").write_text(QUEUES.replace("vcore: 4", "vcore: 3"))
    return path


def points(workload: Path, loads: Sequence[float] = LOADS) -> list[Point]:
    configurations = ("own", str(workload.with_name("other.yaml")))
    return Sweep(workloads=(str(workload),), configurations=configurations, loads=loads).points()


def _appending(told: list[tuple[int, int]]) -> Callable[[int, int], None]:
    return lambda done, total: told.append((done, total))


def table(folder: Path, found: Sequence[Point], outcomes: Sequence[Outcome]) -> bytes:
    (path,) = write_table(folder, rows(found, outcomes), parquet=False)
    return path.read_bytes()


def test_by_processes_and_one_after_the_other_the_table_is_the_same(workload: Path, tmp_path: Path) -> None:
    found = points(workload)
    tables = []
    for processes in (1, 3):
        folder = tmp_path / str(processes)
        told: list[tuple[int, int]] = []
        outcomes = run_sweep(jobs_of(found, folder), engine=Processes(processes), progress=_appending(told))
        assert told == [(number, 6) for number in range(7)]
        assert not any(outcome.error for outcome in outcomes)
        tables.append(table(folder, found, outcomes))
    assert tables[0] == tables[1]
    assert len(set(tables[0].splitlines())) == 7


@pytest.mark.gate
def test_the_laws_of_sweeps_hold(tmp_path: Path) -> None:
    laws.check(tmp_path, faults.simulated)


@pytest.mark.parametrize("fault", first_in_gate(faults.FAULTS))
def test_a_planted_fault_is_caught(fault: str) -> None:
    assert printed_by("sweep.faults", fault).startswith(f"{fault}: caught after ")


def test_a_point_is_a_plain_call(workload: Path) -> None:
    """What an engine for many machines needs: the function and its values can be sent, and give the same there."""
    point = points(workload)[3]
    call: Callable[[Point], Outcome] = pickle.loads(pickle.dumps(run_point))  # noqa: S301  # what was just made
    outcome = call(pickle.loads(pickle.dumps(point)))  # noqa: S301
    assert pickle.loads(pickle.dumps(outcome)) == outcome == run_point(point)  # noqa: S301
    assert outcome.asks == 8


def test_a_higher_load_is_earlier_arrivals(workload: Path) -> None:
    """At half the load a comes at 80 s and waits 20 s, at double at 20 s and waits 80 s; b waits for nothing."""
    waits = [run_point(Point(workload=str(workload), load=load)).wait_mean_s for load in (0.5, 1, 2)]
    assert waits == [pytest.approx(3 * wait / 7, abs=1e-6) for wait in (20, 60, 80)]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_there_is_not_run_again(workload: Path, tmp_path: Path, processes: int) -> None:
    found = points(workload)
    jobs = jobs_of(found, tmp_path / "out")

    def calls() -> int:
        return len(list(tmp_path.glob("called-*")))

    first = run_sweep(jobs, engine=Processes(processes), run=runs.noted)
    assert calls() == 6
    jobs[2].path.unlink()
    jobs[4].path.write_text("cut o")
    assert run_sweep(jobs, engine=Processes(processes), run=runs.noted) == first
    assert calls() == 8
    more = jobs_of(points(workload, (*LOADS, 3.0)), tmp_path / "out")
    run_sweep(more, engine=Processes(processes), run=runs.noted)
    assert calls() == 10


def test_points_that_fail_are_recorded_and_the_others_go_on(workload: Path, tmp_path: Path) -> None:
    found = points(workload, (1.0, 2.0, 3.0, 4.0))
    jobs = jobs_of(found, tmp_path / "out")
    outcomes = run_sweep(jobs, engine=Processes(2), run=runs.fragile)
    assert [outcome.error for outcome in outcomes[:4]] == [
        "",
        "RuntimeError: a fault of the simulator",
        "its process was ended by SIGKILL; was there too little memory?",
        "its process ended with status 7",
    ]
    assert run_sweep(jobs, engine=Processes(2)) == outcomes
    again = run_sweep(jobs, engine=Processes(2), again=True)
    assert not any(outcome.error for outcome in again)
    assert again[0] == outcomes[0]


def test_a_point_that_cannot_be_simulated_says_why(workload: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"t":"meta","version":2}\n{"t":"nod"}\n')
    for point, text in (
        (Point(workload=str(wrong)), "wrong.jsonl:"),
        (Point(workload=str(tmp_path / "no.jsonl")), "No such file"),
        (Point(workload=str(workload), seed=1), "seed"),
        (Point(workload=str(workload), device_policy="first"), "no devices"),
        (Point(workload=str(workload), settings={"reservation.delay": "soon"}), "reservation.delay"),
        (Point(workload=str(workload), max_asks=2), "asks"),
    ):
        outcome = run_point(point)
        assert text in outcome.error
        assert outcome.asks is None


def test_seeds_and_loads_of_a_scenario(tmp_path: Path) -> None:
    scenario = str(ROOT / "examples/scenarios/pool-leaves.yaml")
    found = Sweep(workloads=(scenario,), loads=(0.1, 0.2), seeds=(1, 2)).points()
    outcomes = run_sweep(jobs_of(found, tmp_path), engine=Processes(2))
    assert not any(outcome.error for outcome in outcomes)
    assert len({outcome.decisions for outcome in outcomes}) == 4
    asks = [outcome.asks or 0 for outcome in outcomes]
    assert asks[2] > asks[0]


def test_a_policy_of_ones_own_decides(workload: Path, tmp_path: Path) -> None:
    """With the nodes in the other order the decisions are others; a policy that cannot be loaded fails its points."""
    policy = tmp_path / "mine.py"
    policy.write_text(
        "from licorne import Policy\n\n\nclass Last(Policy):\n"
        "    def node_key(self, pod, node):\n        return 1 if node.id == 'n0' else 0\n"
    )
    names = ("own", f"{policy}:Last", f"{policy}:Missing")
    found = Sweep(workloads=(str(workload),), policies=names).points()
    own, last, missing = run_sweep(jobs_of(found, tmp_path / "out"), engine=Processes(2))
    assert own.error == last.error == ""
    assert own.decisions != last.decisions
    assert "Missing" in missing.error
    digests = [row.policy_digest for row in rows(found, [own, last, missing])]
    assert digests == [None, hashlib.sha256(policy.read_bytes()).hexdigest(), None]


SLOW = """
import time
from licorne import Policy


class Slow(Policy):
    def node_key(self, pod, node):
        time.sleep(0.3)
        return node.id
"""


@pytest.fixture
def slow(workload: Path) -> Point:
    """A point whose policy takes 0.3 s for each call."""
    policy = workload.with_name("slow.py")
    policy.write_text(SLOW)
    return Point(workload=str(workload), policy=f"{policy}:Slow")


@pytest.mark.gate
def test_the_time_of_a_call_of_a_policy_is_limited(slow: Point, tmp_path: Path) -> None:
    """The limit alone makes no other point: with a higher one, what failed is run again if that is wanted."""
    hasty = msgspec.structs.replace(slow, policy_timeout_s=0.1)
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        (ended,) = run_sweep(jobs_of([hasty], folder), engine=Processes(processes))
        assert "took longer than 0.1 s, which is the limit (--policy-timeout)" in ended.error
        assert run_sweep(jobs_of([slow], folder), engine=Processes(processes)) == [ended]
    (done,) = run_sweep(jobs_of([slow], folder), again=True)
    assert done.error == ""
    assert run_sweep(jobs_of([hasty], folder)) == [done]


def test_a_policy_that_is_never_loaded_fails_its_points_alone(workload: Path, tmp_path: Path) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text("while True:\n    pass\n")
    sweep = Sweep(workloads=(str(workload),), policies=("own", f"{endless}:Own"), policy_timeout_s=0.2)
    own, ended = run_sweep(jobs_of(sweep.points(), tmp_path / "out"))
    assert own.error == ""
    assert "endless.py:Own: loading its code took longer than 0.2 s" in ended.error


@pytest.mark.gate
def test_a_point_with_a_policy_runs_in_another_thread_only_without_a_limit(slow: Point) -> None:
    found: list[object] = []

    def run(point: Point) -> None:
        try:
            found.append(run_point(point))
        except PolicyError as error:
            found.append(str(error))

    points = [slow, msgspec.structs.replace(slow, policy_timeout_s=None), msgspec.structs.replace(slow, policy="own")]
    for point in points:
        thread = threading.Thread(target=run, args=(point,))
        thread.start()
        thread.join()
    assert "in the main thread only" in str(found[0])
    assert "policy_timeout_s=None" in str(found[0])
    assert found[1:] == [run_point(point) for point in points[1:]]
    assert not any(each.error for each in found[1:] if isinstance(each, Outcome))


PROGRAM = """
import sys
from pathlib import Path
from licorne.lab.sweep import Point, run_sweep
from licorne.lab.sweep.engines import Processes
from licorne.lab.sweep.running import jobs_of
from sweep import runs
if __name__ == "__main__":
    points = [Point(workload=sys.argv[1], load=float(load)) for load in (1, 2, 3)]
    run_sweep(jobs_of(points, Path(sys.argv[2])), engine=Processes(2), run=runs.endless)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc").is_dir() else True
    except (ProcessLookupError, FileNotFoundError):  # the second: it ended between the two looks
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind(workload: Path, tmp_path: Path, how: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "tests"), str(ROOT / "src")))}
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, str(program), str(workload), str(out)], env=environment, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: len(list(tmp_path.glob("pid-*"))) == 2)
        pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        assert all(map(alive, pids))
        process.send_signal(how)
        process.wait()
    wait_for(lambda: not any(map(alive, pids)))
    assert list(out.rglob("*.part")) == []
    done = run_sweep(jobs_of([Point(workload=str(workload), load=float(load)) for load in (1, 2, 3)], out))
    assert not any(outcome.error for outcome in done)
