"""Tables of GPU jobs in CSV: mappings, what is read, what is left out and counted, what is refused; and as workloads."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from licorne.sim.runner import simulate
from licorne.workload.lines import App, Ask, Node
from licorne.workload.traces.batch import JobsAs
from licorne.workload.traces.columns import READY, Mapping, parse_mapping, read_mapping
from licorne.workload.traces.gpu_csv import GpuTable, gpu_workload, parse_gpu_csv, peak_gpus, read_gpu_csv
from licorne.workload.workload import Workload, WorkloadError

PAGE = Path(__file__).parents[2] / "docs/use/simulator.md"
COLUMNS = "columns: {job: j, user: u, queue: q, gpus: g, submitted: s, duration: d}\n"
CORES = (
    "columns: {job: j, cores: c, memory: m, pods: p, gpus: g, submitted: s, duration: d}\n"
    "units: {memory: Mi}\n"
    "cluster: {nodes: 2, cores: 4, memory: 8Gi}\n"
)
HEAD = "j,other,u,q,g,s,d\n"
FIRST = "a,x,ann,vcA,4,2020-06-09 18:41:01,100\n"
SECOND = "b,x,bob,vcB,1,2020-06-09 18:41:31,50\n"
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "7,u1,vcX,8,64,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:42:01,60,0\n"
    "8,u2,vcX,0,1,1,FAILED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:42:01,60,0\n"
)


def mapping_of(more: str = "") -> Mapping:
    return parse_mapping(COLUMNS + more, "m.yaml")


def table_of(text: str) -> GpuTable:
    return parse_gpu_csv(text.encode().splitlines(keepends=True), mapping_of(), file="jobs.csv")


def workload_of(text: str, more: str = "") -> Workload:
    return gpu_workload(table_of(text), mapping_of(more))


def test_a_table_that_is_no_utf_8_is_refused() -> None:
    latin = (HEAD + FIRST + SECOND.replace("bob", "m\xfcller")).encode("latin-1")
    with pytest.raises(WorkloadError, match=r"^jobs.csv:3: is not UTF-8 text \(byte 5 of the line\); convert it"):
        parse_gpu_csv(latin.splitlines(keepends=True), mapping_of(), file="jobs.csv")


def test_a_table_becomes_gangs_in_the_queues_of_its_virtual_clusters() -> None:
    workload = workload_of(HEAD + FIRST + SECOND, "cluster: {nodes: 2, gpus: 4}\n")
    nodes = [line for line in workload.lines if isinstance(line, Node)]
    first, second = (line for line in workload.lines if isinstance(line, App))
    asks = [line for line in workload.lines if isinstance(line, Ask)]
    assert [node.res for node in nodes] == [{"nvidia.com/gpu": 4}] * 2
    assert (first.id, first.at, first.queue, first.user, first.atomic) == ("a", 0, "root.vca", "ann", True)
    assert (second.id, second.at, second.queue, second.user, second.atomic) == ("b", 30, "root.vcb", "bob", False)
    found = [(ask.key, ask.res, ask.duration_s) for ask in asks[:2]]
    assert found == [("a-1", {"nvidia.com/gpu": 1}, 100), ("a-2", {"nvidia.com/gpu": 1}, 100)]


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ("1.1,1024,1,0", [{"vcore": 1100, "memory": 2**30}]),
        ("3,1,2,", None),
        ("3,0.5,2,0", [{"vcore": 1500, "memory": 2**18}] * 2),
        ("1,0,3,0", [{"vcore": 334}] * 3),
        ("0,0,2,4", [{"nvidia.com/gpu": 2}] * 2),
        ("1,0,0,0", None),
        ("0,0,1,0", None),
        ("-1,1,1,0", None),
    ],
)
def test_cores_and_memory_are_spread_over_the_pods_of_a_job(row: str, asked: list[dict[str, int]] | None) -> None:
    mapping = parse_mapping(CORES, "m.yaml")
    text = f"j,c,m,p,g,s,d\nfirst,4,8192,1,8,0,9\na,{row},0,9\n"
    workload = gpu_workload(parse_gpu_csv(text.encode().splitlines(keepends=True), mapping, file="jobs.csv"), mapping)
    whole = {"nvidia.com/gpu": 8, "vcore": 4000, "memory": 2**33}
    assert [line.res for line in workload.lines if isinstance(line, Node)] == [whole] * 2
    assert [line.res for line in workload.lines if isinstance(line, Ask)] == [whole, *(asked or [])]
    assert any("1 job left out: " in note for note in workload.notes) == (asked is None)
    assert "the cluster has 2 nodes of 8 GPUs, 4 cores, 8Gi of memory, as the mapping m.yaml says" in workload.notes


def test_without_a_column_of_pods_a_job_has_one_for_each_gpu_and_else_one() -> None:
    mapping = parse_mapping(CORES.replace("pods: p, ", ""), "m.yaml")
    text = b"j,c,m,g,s,d\na,8,2,2,0,9\nb,8,2,0,0,9\n"
    workload = gpu_workload(parse_gpu_csv(text.splitlines(keepends=True), mapping, file="jobs.csv"), mapping)
    asked = [(line.key, line.res) for line in workload.lines if isinstance(line, Ask)]
    half = {"nvidia.com/gpu": 1, "vcore": 4000, "memory": 2**20}
    assert asked == [("a-1", half), ("a-2", half), ("b", {"vcore": 8000, "memory": 2**21})]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("c,x,u,q,1,10,-5", "the duration is negative"),
        ("c,x,u,q,-1,10,5", "the number of GPUs is negative"),
        ("c,x,u,q,0,10,5", "it has no GPUs"),
        ("c,x,u,q,,10,5", "the number of GPUs is not known"),
        ("c,x,u,q,1,None,5", "the submission is not known"),
        ("c,x,u,q,1,10,NaN", "the duration is not known"),
        (",x,u,q,1,10,5", "the name of the job is not known"),
    ],
)
def test_a_job_that_cannot_be_simulated_is_left_out_and_counted(row: str, reason: str) -> None:
    workload = workload_of(HEAD + FIRST + f"{row}\n{row}\n" + SECOND)
    assert len([line for line in workload.lines if isinstance(line, App)]) == 2
    assert f"2 jobs left out: {reason} (jobs.csv:3)" in workload.notes
    with pytest.raises(WorkloadError, match=rf"^jobs\.csv: there are no jobs .*; 1 left out: {reason} \(line 2\)"):
        workload_of(f"{HEAD}{row}\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "jobs.csv:1: the file is empty"),
        (HEAD + FIRST + "b,x,bob,vc\n", "jobs.csv:3: has 4 fields, where the header has 7; is the line cut off?"),
        (
            HEAD + '"a\nb",x,u,q,1,0,1\n' + "b,x\n",
            "jobs.csv:4: has 2 fields, where the header has 7; is the line cut off?",
        ),
        (HEAD + FIRST + "b,x,u,q,1,0,1,2\n", "jobs.csv:3: has 8 fields, where the header has 7"),
        (HEAD + FIRST + 'b,"x,bob', "jobs.csv:3: not a row of CSV"),
        (HEAD + "a,x,u,q,1,0,1_0\n", "jobs.csv:2: duration: '1_0' is no number"),
        (HEAD + "a,x,u,q,1,0,inf\n", "jobs.csv:2: duration: 'inf' is no number"),
        (HEAD + "a,x,u,q,1,0,1e12\n", "jobs.csv:2: duration: 1e12 is beyond"),
        (HEAD + "a,x,u,q,1.5,0,1\n", "jobs.csv:2: gpus: 1.5 is not a whole number"),
        (HEAD + "a,x,u,q,1,2020-13-01 00:00:00,1\n", "jobs.csv:2: submitted: '2020-13-01 00:00:00' is no date"),
        (HEAD + "a,x,u,q,1,soon,1\n", "jobs.csv:2: submitted: 'soon' is no number"),
        (HEAD + "a,x,u,a b,1,0,1\n", "jobs.csv:2: queue: 'a b' cannot be the name of a queue"),
        (HEAD + FIRST + FIRST, "jobs.csv:3: job: a stands in line 2 already"),
        (HEAD + FIRST + "a-2,x,u,q,1,0,1\n", "jobs.csv:3: job: a-2 is also the name of a pod of job a"),
        ("j,u,q,s,d\n", "jobs.csv:1: no column 'g'; there are j, u, q, s, d; that is `gpus` by the mapping m.yaml"),
        ("j,u,q,g,g,s,d\n", "jobs.csv:1: more than one column 'g'"),
        (HEAD + "x" * 100_001 + "\n", "jobs.csv:2: a line of more than 100,000 bytes"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        workload_of(text)
    assert str(refused.value).startswith(words)
    assert ("cut off" in words) == ("cut off" in str(refused.value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "m.yaml:1:1: needs the key columns"),
        ("columns: [\n", "m.yaml:2:1: not YAML"),
        ("cluster: {gpus: 8}\n", "m.yaml:1:1: needs the key columns"),
        ("columns: {job: j, gpus: g, submitted: s}\n", "m.yaml:1:10: columns: needs the key duration"),
        ("columns: {}\n", "m.yaml:1:10: columns: needs the key job"),
        ("columns: {job: j,\n  vc: v}\n", "m.yaml:2:3: columns.vc: unknown key; the keys here are job, submitted,"),
        ("columns: {job: j,\n  job: v}\n", "m.yaml:2:3: columns.job: this key is there twice"),
        (COLUMNS.replace("d}", "}"), "m.yaml:1:71: columns.duration: expected a text, got nothing"),
        ("columns: job\n", "m.yaml:1:10: columns: expected keys with values, got a text"),
        (COLUMNS + "cluster: {nodes: -1}\n", "m.yaml:2:18: cluster.nodes: expected a whole number >= 1"),
        (COLUMNS + "cluster: {gpus: many}\n", "m.yaml:2:17: cluster.gpus: expected a whole number, got a text"),
        (
            COLUMNS.replace("gpus: g, ", ""),
            "m.yaml:1:10: columns: names no column for `gpus`, nor for `cores` or `memory`",
        ),
        (CORES.replace("nodes: 2, ", ""), "m.yaml:3:10: cluster: says no `nodes`, which jobs with cores"),
        (CORES.replace(", memory: 8Gi", ""), "m.yaml:3:10: cluster: says no `memory`, which jobs with cores"),
        (COLUMNS.replace("g,", "g, pods: p,"), "m.yaml:1:1: cluster: says no `nodes`"),
        (
            CORES.replace("8Gi", "8GB"),
            "m.yaml:3:39: cluster.memory: invalid quantity '8GB': the unit has no B, write 8G",
        ),
        (CORES.replace("memory: Mi", "memory: MiB"), "m.yaml:2:17: units.memory: must be one of k, M, G"),
        (COLUMNS + "time: s\n", "m.yaml:2:1: time: unknown key"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        parse_mapping(text, "m.yaml")
    assert f"\n{words}" in f"\n{refused.value}"


@pytest.mark.parametrize(
    ("submitted", "seconds"),
    [
        ("0", 0),
        ("1.5", 1.5),
        ("20200609", 20200609),
        ("1970-01-02", 86400),
        ("1970-01-01 00:00:01.25", 1.25),
        ("1970-01-01T00:00:10Z", 10),
        ("1970-01-01 01:00:00+01:00", 0),
    ],
)
def test_submissions_are_seconds_or_dates(submitted: str, seconds: float) -> None:
    assert table_of(f"{HEAD}a,x,u,q,1,{submitted},1\n").jobs[0].submit_s == seconds


def test_what_a_reader_should_know_is_noted() -> None:
    notes = workload_of(HEAD + SECOND + FIRST + SECOND.replace("b,", "c,").replace("vcB", "VCB").rstrip()).notes
    for words in (
        "the last line has no line end; it was taken as whole (jobs.csv:4)",
        "VCB is one queue with vcB",
        "not in the order of their submission",
        "second 0 is the earliest submission, that of a (line 3)",
        "the cluster has 1 node of 8 GPUs, as many as hold all jobs if each starts on its arrival",
    ):
        assert any(words in note for note in notes), words


rows = st.lists(
    st.tuples(st.integers(-1, 9), st.integers(0, 300), st.integers(-2, 200), st.sampled_from(("", "q1", "q-2"))),
    min_size=1,
    max_size=12,
)


@given(rows=rows)
@example(rows=[(1, 0, 2, ""), (1, 1, 1, ""), (8, 0, 0, "")])  # a job of no duration, that would wait for all of a node
def test_every_row_is_a_job_or_counted_and_a_cluster_of_the_jobs_size_lets_none_wait(
    rows: list[tuple[int, int, int, str]],
) -> None:
    table = table_of(HEAD + "".join(f"n{i},x,u,{q},{g},{s},{d}\n" for i, (g, s, d, q) in enumerate(rows)))
    usable = {f"n{i}": row for i, row in enumerate(rows) if row[0] > 0 and row[2] >= 0}
    assert {job.name: (job.units, job.submit_s, job.run_s) for job in table.jobs} == {
        name: row[:3] for name, row in usable.items()
    }
    assert sum(skip.jobs for skip in table.skipped) + len(table.jobs) == len(rows)
    if not usable:
        return
    assert peak_gpus(table.jobs) == max(
        sum(g for g, s, d, _ in usable.values() if s <= at < s + d or s == at == s + d)
        for _, at, _, _ in usable.values()
    )
    zero = min(row[1] for row in usable.values())
    result = simulate(gpu_workload(table, mapping_of()))
    lasting = [pod for pod in result.pods if usable[pod.application][2]]
    assert len(result.pods) == sum(row[0] for row in usable.values())
    assert all(pod.start_s == usable[pod.application][1] - zero for pod in lasting)


def converted(path: Path, columns: str, jobs_as: JobsAs = "one", asks_max: int = 100) -> Workload:
    mapping = read_mapping(columns)
    return gpu_workload(read_gpu_csv(path, mapping), mapping, jobs_as=jobs_as, asks_max=asks_max)


def test_the_ready_mappings_read_the_published_columns(tmp_path: Path) -> None:
    assert [read_mapping(name).each for name in READY] == [{"nvidia.com/gpu": 8}] * 2
    path = tmp_path / "cluster_log.csv.gz"
    path.write_bytes(gzip.compress(HELIOS.encode()))
    workload = converted(path, "helios")
    (ask,) = (line for line in workload.lines if isinstance(line, Ask))
    assert (ask.app, ask.res, ask.duration_s) == ("7", {"nvidia.com/gpu": 8}, 60)
    assert any("1 job left out: it has no GPUs" in note for note in workload.notes)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(WorkloadError, match="not a readable gzip file"):
        converted(path, "helios")


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_the_program_of_the_page_makes_a_table_of_phillys_job_log(tmp_path: Path) -> None:
    program = re.search(r"```text\n(def seconds.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert program is not None
    whole = {
        "jobid": "application_1_2", "vc": "ee9e8c", "user": "2e2f4c", "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {"start_time": f"2017-10-07 0{hour}:00:00", "end_time": f"2017-10-07 0{hour}:01:00",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]}
            for hour in (2, 4)
        ],
    }  # fmt: skip
    attempt = {"start_time": "2017-10-07 02:00:00", "end_time": None, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}
    others = [{**whole, "jobid": "b", "attempts": []}, {**whole, "jobid": "c", "attempts": [attempt]}]
    log = json.dumps([whole, *others])
    made = subprocess.run(["jq", "-r", program[1]], input=log, capture_output=True, text=True, check=True)
    path = tmp_path / "philly.csv"
    path.write_text(made.stdout)
    workload = converted(path, "philly")
    (app,) = (line for line in workload.lines if isinstance(line, App))
    (ask,) = (line for line in workload.lines if isinstance(line, Ask))
    assert (app.id, app.user, app.queue) == ("application_1_2", "2e2f4c", "root.ee9e8c")
    assert (ask.res, ask.duration_s) == ({"nvidia.com/gpu": 3}, 120)
    assert [note for note in workload.notes if "left out" in note] == [
        f"2 jobs left out: the duration is not known ({path}:3)"
    ]


def test_a_mapping_that_is_not_there_and_too_many_asks_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text(HELIOS)
    with pytest.raises(
        WorkloadError, match=r"heilos: no such file; a mapping is a YAML file, or one of .*: helios, philly"
    ):
        read_mapping("heilos")
    with pytest.raises(WorkloadError, match=r"jobs\.csv:2: with it there are 8 asks, and no more than 7"):
        converted(table, "helios", "gang", asks_max=7)
