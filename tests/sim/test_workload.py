"""Workload files: the lines that are read, and the texts of refusals."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.workload.lines import App, Ask, Line, Node, Run, encode, to_ns
from licorne.workload.workload import Mode, Workload, WorkloadError, parse_workload, read_workload

META = '{"t":"meta","name":"w","expect":3}'
META2 = '{"t":"meta","name":"w","expect":0,"version":2}'
CONFIG = '{"t":"config","yaml":"partitions: []","extra":{"a":"b"}}'
NODE = '{"t":"node","id":"n1","res":{"vcore":1000},"attrs":{"si/zone":"z"}}'
APP = '{"t":"app","id":"a1","queue":"root.q","user":"u","groups":["g"]}'
ASK = '{"t":"ask","key":"k1","app":"a1","res":{"vcore":500},"prio":0}'


def parse(*lines: str) -> Workload:
    return parse_workload(("\n".join(lines) + "\n").encode().splitlines(keepends=True), file="w.jsonl")


def test_version_1_is_handed_in_kind_by_kind() -> None:
    workload = parse(META, ASK, APP, CONFIG, NODE, "", ASK.replace("k1", "k2"))
    assert [type(line).__name__ for line in workload.lines] == ["Node", "App", "Ask", "Ask"]
    assert (workload.name, workload.mode, workload.expect) == ("w", Mode.BATCH, 3)
    assert (workload.config, workload.extra) == ("partitions: []", {"a": "b"})
    assert list(workload.lines)[-1] == Ask(key="k2", app="a1", res={"vcore": 500})


def test_version_2_keeps_the_order_of_the_file() -> None:
    workload = parse(META2, CONFIG, APP, NODE, '{"t":"run"}', ASK, '{"t":"run"}')
    assert [type(line) for line in workload.lines] == [App, Node, Run, Ask, Run]
    assert workload.mode is Mode.SCRIPT


@pytest.mark.parametrize("addition", ['"at":0', '"duration_s":60'])
def test_a_time_or_a_duration_makes_a_script_timed(addition: str) -> None:
    assert parse(META2, NODE, APP, ASK[:-1] + "," + addition + "}").mode is Mode.TIMED


def test_names_may_stand_in_several_objects_and_in_texts() -> None:
    tags = '{"key":"app","t\\"key":"\\"key\\":","res":"x"}'
    group = '{"name":"%s","min":1,"res":{"vcore":1}}'
    workload = parse(META2, NODE, APP[:-1] + f',"gang":[{group % "a"},{group % "b"}]}}', ASK[:-1] + f',"tags":{tags}}}')
    ask = list(workload.lines)[-1]
    assert isinstance(ask, Ask)
    assert ask.tags == {"key": "app", 't"key': '"key":', "res": "x"}


def test_asks_are_bounded_including_repetitions_of_one_line() -> None:
    gang = APP[:-1] + ',"gang":[{"name":"g","min":%d,"res":{"vcore":1}}],"atomic":%s}'
    lines = [META2, NODE, ASK[:-1] + ',"max":3}', gang % (4, "false"), (gang % (99, "true")).replace("a1", "a2")]

    def read(most: int) -> Workload:
        return parse_workload([(line + "\n").encode() for line in lines], file="w.jsonl", asks_max=most)

    assert len(list(read(7).lines)) == 4
    with pytest.raises(WorkloadError) as error:
        read(6)
    assert str(error.value).startswith("w.jsonl:4: gang: with it there are 7 asks, and no more than 6 are simulated")
    with pytest.raises(WorkloadError, match=r"^w.jsonl:3: max: with it there are 3 asks"):
        read(2)


def test_lines_know_their_positions_in_the_file() -> None:
    workload = parse(META, ASK, "", APP, CONFIG, NODE)
    assert [workload.place(index) for index in range(3)] == ["w.jsonl:6", "w.jsonl:4", "w.jsonl:2"]
    assert (workload.place(-1), workload.config_place) == ("", "w.jsonl:5")


def test_without_a_configuration_the_built_in_one_counts() -> None:
    assert parse(META).config is None


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((), 'there is no "meta" line; is this a workload file?'),
        ((NODE,), '1: t: the first line must be of kind "meta"'),
        ((CONFIG,), '1: t: the first line must be of kind "meta"'),
        ((META, META), '2: t: there is a "meta" line already'),
        ((META2, NODE, CONFIG), '3: t: "config" must stand before every other line but "meta"'),
        ((META, CONFIG, CONFIG), '3: t: there is a "config" line already; a change of it is a "reload"'),
        (('{"t":"meta","version":3}',), "1: version: 3 is unknown; versions 1 and 2 can be read"),
        (("{",), "1: not JSON: Input data was truncated; is this a workload, a file of JSON lines?"),
        ((META, NODE[:-1] + ',"id":"n2"}'), "2: id: stands twice in the same object"),
        ((META, NODE.replace('"vcore":1000', '"vcore":1000,"vcore":2')), "2: vcore: stands twice in the same object"),
        ((META, NODE[:-1] + ',"i\\u0064":"n2"}'), "2: id: stands twice in the same object"),
        ((META2, APP[:-1] + ',"style":"soft"}'), "2: style: 'soft' is unknown; it is Soft or Hard"),
        ((META2, APP, '{"t":"run"}', ASK, '{"t":"run","at":1}'), '3: t: "run" is for scripts; where lines have times, time itself decides'),
        ((META, '{"t" "node"}'), "2: not JSON: expected ':' (byte 5)"),
        (("[1]",), "1: expected object, got array"),
        ((META, '{"id":"n"}'), "2: t: is missing"),
        ((META, '{"t":"nod"}'), "2: t: unknown kind of line 'nod'"),
        ((META, '{"t":"run"}'), '2: t: needs "version":2 in meta'),
        ((META, NODE[:-1] + ',"drain":true}'), '2: drain: needs "version":2 in meta'),
        ((META, APP[:-1] + ',"style":"Hard"}'), '2: style: needs "version":2 in meta'),
        ((META, ASK[:-1] + ',"max":2}'), '2: max: needs "version":2 in meta'),
        ((META, ASK[:-1] + ',"at":0}'), '2: at: needs "version":2 in meta'),
        ((META, ASK[:-1] + ',"durations_s":1}'), "2: durations_s: is not a field of this kind of line"),
        ((META, '{"t":"ask","key":"k"}'), "2: app: is missing"),
        ((META, ASK.replace('"k1"', '""')), "2: key: must not be empty"),
        ((META, ASK.replace("500", "0.5")), "2: res.vcore: expected int, got float; vcore is in thousandths of a core, memory in bytes"),
        ((META2, ASK[:-1] + ',"at":"8:00"}'), "2: at: expected int | float | null, got str; it is in seconds from 0"),
        ((META, ASK.replace("500", "9223372036854775808")), "2: res.vcore: expected int <= 9223372036854775807"),
        ((META, ASK.replace('"prio":0', '"prio":2147483648')), "2: prio: expected int <= 2147483647"),
        ((META, ASK[:-1] + ',"tags":{"a":"b","c":1}}'), "2: tags.c: expected str, got int"),
        ((META2, ASK[:-1] + ',"duration_s":-1}'), "2: duration_s: expected int >= 0"),
        ((META2, ASK[:-1] + ',"max":0}'), "2: max: expected int >= 1"),
        ((META2, '{"t":"run","at":2}', '{"t":"run","at":1.5}'),
         "3: at: 1.5 is before the time of an earlier line; times may not decrease"),
    ],
)  # fmt: skip
def test_a_refusal_names_file_line_and_field(lines: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(WorkloadError) as refusal:
        parse(*lines)
    colon = ": " if not complaint[0].isdigit() else ":"
    assert str(refusal.value) == f"w.jsonl{colon}{complaint}"


def test_a_name_that_stands_twice_among_many_is_found_at_once() -> None:
    """Each name compared with each before it would take longer than a test may."""
    tags = "".join(f'"{number}":"",' for number in range(250_000))
    with pytest.raises(WorkloadError, match="2: 0: stands twice in the same object"):
        parse(META, ASK[:-1] + f',"tags":{{{tags}"0":""}}}}')


def test_text_that_is_no_utf_8_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"^w:1: "):
        parse_workload([b'{"t":"meta","name":"\xff"}'], file="w")


def test_compressed_files_are_read_and_broken_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl.gz"
    path.write_bytes(gzip.compress(f"{META}\n{NODE}\n".encode()))
    assert len(list(read_workload(path).lines)) == 1
    path.write_bytes(b"no gzip")
    with pytest.raises(WorkloadError, match="not a readable gzip file"):
        read_workload(path)


def test_progress_is_reported_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(META + "\n" + (NODE + "\n") * 40_000)
    told: list[tuple[int, int]] = []
    read_workload(path, progress=lambda done, total: told.append((done, total)))
    assert len(told) == 2
    assert told[0][0] < told[1][0] < told[1][1] == path.stat().st_size


names = st.text(min_size=1, max_size=8)
resources = st.dictionaries(names, st.integers(-(2**63), 2**63 - 1), max_size=3)
asks = st.builds(
    Ask,
    at=st.none() | st.just(0),
    key=names,
    app=st.text(max_size=4),
    res=resources,
    prio=st.integers(-(2**31), 2**31 - 1),
    tags=st.none() | st.dictionaries(names, names, max_size=2),
    ph=st.booleans(),
    duration_s=st.none() | st.integers(0, 10**6) | st.floats(0, 10**6),
    max=st.integers(1, 9),
)
nodes = st.builds(Node, id=names, res=resources, drain=st.booleans())


@given(st.lists(asks | nodes))
def test_written_lines_are_read_back_unchanged(lines: list[Line]) -> None:
    text = b"\n".join([META2.encode(), *(encode(line) for line in lines)])
    assert parse_workload(text.splitlines(keepends=True)).lines == lines


@given(st.integers(0, 9_000_000_000))
def test_whole_seconds_are_exact(seconds: int) -> None:
    assert to_ns(seconds) == to_ns(float(seconds)) == seconds * 10**9


@given(st.floats(0, 10**6), st.floats(0, 10**6))
def test_times_keep_their_order(one: float, other: float) -> None:
    assert (to_ns(one) <= to_ns(other)) or one > other
