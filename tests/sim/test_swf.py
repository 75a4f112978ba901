"""Logs in the Standard Workload Format: what is read, what is left out and counted, what is refused; and as workloads."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.sim.runner import simulate
from licorne.workload.lines import App, Ask, Node
from licorne.workload.traces.batch import JobsAs, batch_workload
from licorne.workload.traces.swf import SwfJob, SwfLog, is_swf, parse_swf, read_swf, write_jobs
from licorne.workload.workload import WorkloadError

HEAD = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 8 (of 10)\n;\n; free text\n"
FIRST = "1 0 5 100 4 -1 -1 8 120 -1 1 3 7 -1 -1 -1 -1 -1\n"
SECOND = "2 10.5 -1 50 1 -1 -1 -1 -1 -1 1 4 -1 -1 2 -1 -1 -1\n"

times = st.integers(-1, 10**6) | st.integers(0, 4 * 10**6).map(lambda quarters: quarters / 4)
whole = st.integers(-1, 10**6)


@st.composite
def swf_jobs(draw: st.DrawFn) -> SwfJob:
    values: dict[str, Any] = {
        name: draw(whole if name in WHOLE else times)
        for name in SwfJob.__struct_fields__
        if name not in ("number", "status")
    }
    return SwfJob(number=draw(st.integers(0, 10**6)), status=draw(st.sampled_from((-1, 0, 1, 5))), **values)


WHOLE = ("allocated", "requested", "user", "group", "executable", "queue", "partition", "preceding")


def log_of(text: str) -> SwfLog:
    return parse_swf(io.BytesIO(text.encode()), file="a.swf")


def test_a_log_is_read_with_its_header() -> None:
    log = log_of(HEAD + FIRST + "\n" + SECOND)
    assert log.labels == [("Version", "2.2"), ("MaxNodes", "4"), ("MaxProcs", "8 (of 10)")]
    assert (log.number("maxprocs"), log.number("MaxJobs")) == (8, 0)
    first, second = log.jobs
    assert (first.number, first.submit_s, first.run_s, first.processors, first.estimate_s) == (1, 0, 100, 8, 120)
    assert (first.user, first.group, second.queue) == (3, 7, 2)
    assert (second.submit_s, second.processors, second.estimate_s) == (10.5, 1, 50)
    assert log.lines == [6, 8]
    assert log.skipped == []


@given(jobs=st.lists(swf_jobs(), max_size=5, unique_by=lambda job: job.number))
def test_what_is_written_is_read_again(jobs: list[SwfJob]) -> None:
    stream = io.BytesIO()
    write_jobs(stream, [("Note", "two\nlines")], jobs)
    stream.seek(0)
    log = parse_swf(stream, whole=True)
    assert log.jobs == jobs
    assert log.labels == [("Note", "two lines")]


WORDS = st.sampled_from(("1", "-1", "0", "2.5", "1e3", "-0", "x", ";", "1_0", "9" * 30, "\x00", "é"))


@given(lines=st.lists(st.lists(WORDS, min_size=17, max_size=19).map(" ".join) | st.text(max_size=40), max_size=6))
def test_any_text_is_a_log_or_an_error_with_a_line(lines: list[str]) -> None:
    refusal = ""
    try:
        log = log_of("\n".join(lines))
    except WorkloadError as error:
        refusal = str(error)
    if refusal:
        assert re.match(r"a\.swf:[1-9]", refusal)
        return
    jobs = len(log.jobs) + sum(skip.jobs for skip in log.skipped)
    assert jobs == sum(bool(line) and not line.startswith(";") for line in map(str.strip, "\n".join(lines).split("\n")))


def test_jobs_that_say_too_little_are_counted_by_reason_with_the_first_line() -> None:
    def line(number: int, **columns: float) -> str:
        job = SwfJob(**{"number": number, "submit_s": 1, "run_s": 5, "allocated": 1, **columns})  # type: ignore[arg-type]
        stream = io.BytesIO()
        write_jobs(stream, [], [job])
        return stream.getvalue().decode()

    log = log_of(
        line(1)
        + line(2, run_s=-1)
        + line(3, run_s=-7)
        + line(4, submit_s=-1)
        + line(5, allocated=0)
        + line(6, run_s=-1)
        + line(7, requested_s=-3)
        + line(1, status=2)
        + line(8, run_s=0)
    )
    assert [job.number for job in log.jobs] == [1, 8]
    assert [(skip.reason, skip.jobs, skip.first_line) for skip in log.skipped] == [
        ("the run time is not known", 2, 2),
        ("the run time is negative", 1, 3),
        ("the submission is not known", 1, 4),
        ("it has no processors", 1, 5),
        ("the requested time is negative", 1, 7),
        ("a part of a job, which has a line of its own", 1, 8),
    ]
    notes = batch_workload(log).notes
    assert "2 jobs left out: the run time is not known (a.swf:2)" in notes
    assert len([note for note in notes if "left out" in note]) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FIRST + "2 10 -1 50\n", "a.swf:2: has 4 numbers, where a job has 18; is the line cut off?"),
        (FIRST + "2 10" + " -1" * 17 + "\n", "a.swf:2: has 19 numbers, where a job has 18"),
        (FIRST.replace("100", "1OO"), "a.swf:1: run_s: '1OO' is no number"),
        (FIRST.replace("100", "inf"), "a.swf:1: run_s: 'inf' is no number"),
        (FIRST.replace("100", "1_0"), "a.swf:1: run_s: '1_0' is no number"),
        (FIRST.replace("100", "1e999"), "a.swf:1: run_s: '1e999' is no number"),
        (FIRST.replace("100", "٣"), "a.swf:1: run_s: '٣' is no number"),
        (FIRST.replace("100", "1e300"), "a.swf:1: run_s: 1e300 is above"),
        (FIRST.replace(" 4 ", " 4.5 "), "a.swf:1: allocated: 4.5 is not a whole number"),
        (FIRST.replace(" 4 ", " 99999999 "), "a.swf:1: allocated: 99999999 is above 10,000,000"),
        (FIRST + FIRST, "a.swf:2: number: job 1 stands in line 1 already"),
        ("x" * 200_000, "a.swf:1: a line of"),
    ],
)
def test_lines_that_are_not_of_a_log_are_errors_with_their_place(text: str, words: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        log_of(text)
    assert words in str(caught.value)
    assert ("cut off" in words) == ("cut off" in str(caught.value))


def test_files_and_compressed_files(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.swf", tmp_path / "A.SWF.GZ"
    plain.write_text(HEAD + FIRST)
    packed.write_bytes(gzip.compress((HEAD + FIRST).encode()))
    assert read_swf(plain).jobs == read_swf(packed).jobs
    assert (is_swf(plain), is_swf(packed), is_swf(tmp_path / "a.swf.jsonl")) == (True, True, False)
    packed.write_bytes(packed.read_bytes()[:40])
    with pytest.raises(WorkloadError, match="not a readable gzip file"):
        read_swf(packed)
    plain.write_bytes(b"y" * 300_000)
    with pytest.raises(WorkloadError, match=r"a\.swf:1: a line of 100,001 bytes"):
        read_swf(plain)
    plain.write_text(FIRST + SECOND)
    with pytest.raises(WorkloadError, match="more than 1 jobs"):
        read_swf(plain, jobs_max=1)


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("2", ""),
        ("2 (of 5)", ""),
        ("many", ""),
        ("3", "the header says MaxJobs: 3, and the log has 2 jobs; is it cut off?"),
        ("1", "the header says MaxJobs: 1, and the log has 2 jobs"),
    ],
)
def test_another_number_of_jobs_than_the_header_says_is_noted(said: str, note: str) -> None:
    """A job that was left out counts, a part of one does not."""
    left_out = SECOND.replace(" 50 ", " -1 ")
    part = FIRST.replace(" 120 -1 1 ", " 120 -1 2 ")
    workload = batch_workload(log_of(f"; MaxJobs: {said}\n" + FIRST + left_out + part))
    assert [each for each in workload.notes if "MaxJobs" in each] == ([note] if note else [])


def test_a_gang_a_number_of_asks_or_one_ask() -> None:
    log = log_of(HEAD + FIRST + SECOND)
    gang = batch_workload(log)
    nodes = [line for line in gang.lines if isinstance(line, Node)]
    assert [(node.id, node.res) for node in nodes] == [(f"node-{number}", {"vcore": 2000}) for number in range(1, 5)]
    first, second = (line for line in gang.lines if isinstance(line, App))
    gang_job = (first.at, first.id, first.queue, first.user, first.groups)
    assert gang_job == (0, "job-1", "root.jobs", "user-3", ("group-7",))
    assert (first.atomic, first.gang[0].min, first.gang[0].res) == (True, 8, {"vcore": 1000})
    single_job = (second.at, second.queue, second.user, second.groups, second.gang)
    assert single_job == (10.5, "root.queue-2", "user-4", (), ())
    asks = [line for line in gang.lines if isinstance(line, Ask)]
    asked = [(ask.key, ask.duration_s, ask.requested_s) for ask in asks[-2:]]
    assert asked == [("job-1-8", 100, 120), ("job-2", 50, 50)]

    several = [line for line in batch_workload(log, jobs_as="asks").lines if not isinstance(line, Node)]
    assert [line.gang for line in several if isinstance(line, App)] == [(), ()]
    assert len([line for line in several if isinstance(line, Ask)]) == 9

    one = batch_workload(log, jobs_as="one").lines
    sizes = [line.res for line in one if isinstance(line, Node | Ask)]
    assert sizes == [{"vcore": 8000}, {"vcore": 8000}, {"vcore": 1000}]


def test_processors_are_spread_over_the_nodes_and_none_is_lost() -> None:
    def sizes(head: str, jobs_as: JobsAs = "gang") -> list[int]:
        lines = batch_workload(log_of(head + FIRST), jobs_as=jobs_as).lines
        return [line.res["vcore"] // 1000 for line in lines if isinstance(line, Node)]

    assert sizes("; MaxNodes: 3\n; MaxProcs: 8\n") == [3, 3, 2]
    assert sizes("; MaxNodes: 12\n; MaxProcs: 8\n") == [1] * 8
    assert sizes("; MaxNodes: 9\n") == [1] * 9
    assert sizes("") == [1] * 8
    assert sizes("; MaxNodes: 9\n", "one") == [9]


@pytest.mark.parametrize("jobs_as", ["gang", "asks", "one"])
def test_jobs_run_for_their_run_time_and_all_are_accounted_for(tmp_path: Path, jobs_as: JobsAs) -> None:
    path = tmp_path / "a.swf"
    path.write_text(HEAD + FIRST + SECOND + SECOND.replace("2 10.5", "3 11").replace(" 50 ", " -1 "))
    result = simulate(batch_workload(read_swf(path), jobs_as=jobs_as))
    pods = {pod.application: pod for pod in result.pods}
    assert (pods["job-1"].start_s, pods["job-1"].end_s) == (0, 100)
    assert (pods["job-2"].start_s, pods["job-2"].end_s) == (100, 150)
    assert "1 job left out: the run time is not known" in result.notes[0]
    assert result.never_placed == 0


def test_a_log_without_jobs_or_with_too_many_is_refused() -> None:
    with pytest.raises(
        WorkloadError, match=r"no jobs that can be simulated; 1 left out: the run time is not known \(line 1\)"
    ):
        batch_workload(log_of(FIRST.replace(" 100 ", " -1 ")))
    with pytest.raises(WorkloadError, match=r"a\.swf:1: with it there are 8 asks, and no more than 7"):
        batch_workload(log_of(FIRST), asks_max=7)
    with pytest.raises(WorkloadError, match="the machine has 200,000 nodes"):
        batch_workload(log_of("; MaxNodes: 200000\n" + FIRST))


def test_a_log_out_of_order_and_what_is_not_modelled_is_said() -> None:
    late = "3 1 -1 5 1 -1 100 1 -1 -1 1 -1 -1 -1 -1 -1 1 60\n"
    workload = batch_workload(log_of(HEAD + FIRST + SECOND + late), jobs_as="one")
    times = [line.at for line in workload.lines if isinstance(line, App)]
    assert times == [0, 1, 10.5]
    for words in (
        "not in the order",
        "1 job with a preceding job",
        "memory is not modelled",
        "the machine is one node",
    ):
        assert any(words in note for note in workload.notes)
