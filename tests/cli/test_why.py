"""`licorne why`: names, sources, exit statuses, text and JSON. What is proposed is tested in `tests/answers`."""

from __future__ import annotations

import gzip
import importlib.util
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rich.console import Console

from licorne.answers.chain import Chain, LimitLevel, QueueLevel
from licorne.answers.changes import Change, LimitMax, MaxApplications, QueueMax, Schedulable
from licorne.answers.why import Group, Overview
from licorne.cli.why_text import _values, print_notes, show
from licorne.state.restored import Note

Command = Callable[..., Any]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pods-wait"
DUMP = str(EXAMPLE / "dump.json")
WORKLOAD = str(EXAMPLE.parent / "gpu-holiday" / "workload.jsonl")
TOKEN = "abc"  # noqa: S105  of the server in this file


def test_all_that_waits_is_told_by_reason(licorne: Command) -> None:
    done = licorne("why", "--from", DUMP, "--json")
    assert done.status == 0
    answer = json.loads(done.out)
    assert (answer["type"], answer["waiting"], answer["running"]) == ("overview", 4, 15)
    assert [(group["asks"], group["application"], group["never"]) for group in answer["groups"]] == [
        (2, "index", False),
        (1, "report", False),
        (1, "training", True),
    ]


@pytest.mark.parametrize("name", ["index-0", "search/index-0"])
def test_an_ask_is_found_by_its_key_and_by_its_pod(licorne: Command, name: str) -> None:
    answer = json.loads(licorne("why", name, "--from", DUMP, "--json").out)
    assert (answer["type"], answer["key"], answer["pod"], answer["state"]) == (
        "ask",
        "index-0",
        "search/index-0",
        "waits",
    )
    assert answer["sentence"] == "The limit of user sue at root.search leaves too little: 4 vcore missing."
    assert [each["text"] for each in answer["proposals"]["found"]] == [
        "4 vcore more in the limit of user sue at root.search (that of `*`, each user without one of its own)",
        "the ask in queue root.ads in place of root.search",
        "the end of pod search/crawler-4 of root.search on cpu-0",
    ]
    assert [level["queue"] for level in answer["chain"]["queues"]] == ["root", "root.search"]
    [limit] = answer["chain"]["limits"]
    assert (limit["name"], limit["wildcard"], limit["missing"]) == ("sue", True, {"vcore": 4000})
    assert answer["chain"]["nodes"] == {"lack of vcore": 3, "taint gpu=reserved:NoSchedule": 2, "": 1}


def test_what_runs_is_said_to_run(licorne: Command) -> None:
    answer = json.loads(licorne("why", "crawler-0", "--from", DUMP, "--json").out)
    assert (answer["state"], answer["node"], answer["chain"], answer["proposals"]) == ("runs", "cpu-0", None, None)


def test_another_configuration_changes_the_answer_and_not_the_dump(licorne: Command) -> None:
    before = Path(DUMP).read_bytes()
    raised = ("--config", str(EXAMPLE / "raised.yaml"))
    assert json.loads(licorne("why", "index-0", "--from", DUMP, *raised, "--json").out)["state"] == "placed next"
    assert Path(DUMP).read_bytes() == before


def test_a_dump_without_constraints_promises_no_node(licorne: Command, tmp_path: Path) -> None:
    dump = json.loads(Path(DUMP).read_bytes())
    for node in dump["nodes"][0]["nodesInfo"]:
        node["attributes"].pop("taints", None)
    [asked] = [app for app in dump["applications"] if app["applicationID"] == "training"]
    said = ("Not enough queue quota", "node(s) had untolerated taint")
    asked["requests"][0]["allocationLog"] = [
        {"message": text, "lastOccurrence": dump["timestamp"] - ago, "count": 7}
        for text, ago in zip(said, (60 * 10**9, 96_200_000), strict=True)
    ]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    done = licorne("why", "training", "--from", str(file))
    assert done.out.splitlines()[4:9] == [
        "Nothing that the scheduler's state shows is in its way; node selectors, affinity, taints and volumes are not in it.",
        "The scheduler's own log: node(s) had untolerated taint (7 times, last under a second before)",
        "The scheduler's own log: Not enough queue quota (7 times, last 1 min 0 s before)",
        "",
        "By what the state shows, it is placed on gpu-0 at once.",
    ]
    assert (
        "node selectors, affinity, taints and volumes are not known" in licorne("why", "index", "--from", str(file)).out
    )
    hidden = "Node selectors, affinity, taints and volumes are not in this state: asks may wait for them too."
    assert hidden in licorne("why", "--from", str(file)).out.splitlines()
    assert hidden not in licorne("why", "--from", DUMP).out
    groups = json.loads(licorne("why", "--from", str(file), "--json").out)["groups"]
    assert (2, "nothing that the scheduler's state shows is in its way") in [(g["asks"], g["summary"]) for g in groups]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("indx",), 1, "did you mean 'index'?"),
        (("ind",), 1, "did you mean 'index' or 'index-0' or 'index-1'?"),
        (("Search/index-",), 1, "did you mean 'search/index-0' or 'search/index-1'?"),
        (("zzz",), 1, "no application, ask, allocation or pod is named 'zzz'"),
        (
            ("root.search",),
            1,
            "root.search is a queue: `licorne shares` tells of queues, and what waits is told without",
        ),
        (("index", "--partition", "gpu"), 1, "there is no partition 'gpu'; there are: default"),
        (("index", "--config", str(EXAMPLE / "dump.json")), 5, "the queue configuration cannot be used"),
        (("index", "--token-file", "nowhere"), 4, "nowhere: no such file; give the path of a file with a token"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(
    licorne: Command, arguments: tuple[str, ...], status: int, said: str
) -> None:
    done = licorne("why", *arguments, "--from", DUMP)
    assert (done.status, done.out) == (status, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere.json", "nowhere.json: No such file or directory; give a file with a state dump"),
        (str(EXAMPLE / "queues.yaml"), "the dump is no JSON"),
        (
            str(EXAMPLE / "queues.yaml"),
            "queues.yaml --record DIR, then give DIR. A queue configuration goes with --config.",
        ),
        (WORKLOAD, f"can be asked when it has run: licorne simulate {WORKLOAD} --record DIR, then give DIR."),
        (
            str(EXAMPLE),
            "is a folder, and no recording, which has a manifest.json; give a file with a state dump, the folder",
        ),
        ("http://127.0.0.1:9", "nothing listens there"),
        ("localhost:9080", "No such file or directory; did you mean http://localhost:9080?"),
        ("127.0.0.1:9/debug/fullstatedump", "did you mean http://127.0.0.1:9/debug/fullstatedump?"),
    ],
)
def test_a_source_that_cannot_be_read_is_a_file_that_cannot_be_read(licorne: Command, source: str, said: str) -> None:
    done = licorne("why", "--from", source)
    assert (done.status, done.out) == (4, "")
    assert said in done.err


def test_a_file_without_its_option_is_told(licorne: Command) -> None:
    done = licorne("why", DUMP)
    assert (done.status, done.out, done.err) == (2, "", f"licorne: {DUMP} is a file: give it with --from\n")
    assert licorne("why", "n" * 5000).status == 4


def test_an_answer_under_another_configuration_says_so_first(licorne: Command) -> None:
    raised = EXAMPLE / "raised.yaml"
    for name in ((), ("index",), ("index-0",)):
        lines = licorne("why", *name, "--no-prove", "--from", DUMP, "--config", raised).out.splitlines()
        assert lines[0] == f"Under {raised}, after the scheduler's next decisions:"
    assert "Under" not in licorne("why", "index-0", "--no-prove", "--from", DUMP).out


def test_since_when_an_allocation_of_a_dump_runs_is_not_made_up(licorne: Command) -> None:
    said = licorne("why", "search/crawler-4", "--from", DUMP).out.splitlines()[0]
    assert said == "search/crawler-4 (crawler-4) of application crawler in root.search: runs"


def test_a_dump_without_a_configuration_is_told_with_its_file(licorne: Command, tmp_path: Path) -> None:
    dump = json.loads(Path(DUMP).read_bytes())
    dump.pop("licorne", None)
    del dump["config"]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    done = licorne("why", "--from", file)
    assert (done.status, done.out) == (4, "")
    assert f"{file}: the dump has no member config with the queue configuration" in done.err
    assert "`licorne why --config queues.yaml`" in done.err
    assert licorne("why", "--from", file, "--config", EXAMPLE / "queues.yaml").status == 0


def test_a_search_that_had_no_time_says_that_first(licorne: Command) -> None:
    lines = licorne("why", "index-0", "--from", DUMP, "--limit", "0s").out.splitlines()
    cut = "A search was cut short: --effort lets the trials cost more, --limit take longer."
    assert lines[4] == f"{cut} No change with which it would run was found until then (1 trial)."
    assert not any("No change of the configuration" in line for line in lines)


def test_the_answer_reads_well_in_a_pipe(licorne: Command) -> None:
    said = licorne("why", "index", "--from", DUMP).out
    for words in ("It would run with any one of these:", "Each was tried on a copy", "maxresources: {vcore: 24}\n"):
        assert words in said
    assert not any(line != line.rstrip() for line in said.splitlines())


@pytest.mark.parametrize("command", [("why", "index-0"), ("shares",)])
def test_assumptions_are_counted_or_listed(licorne: Command, command: tuple[str, ...]) -> None:
    said = licorne(*command, "--from", DUMP).out
    assert said.endswith("\nThe answer rests on 2 assumptions: --assumptions tells more.\n")
    listed = licorne(*command, "--from", DUMP, "--assumptions").out
    assert listed.count("\n  assumed: ") == 2


def test_what_an_answer_lacks_is_always_told() -> None:
    console = Console(file=StringIO(), width=200)
    print_notes(console, (Note("left out", "a node"), Note("assumed", "a"), Note("unknown", "b")))
    assert console.file.getvalue() == (  # type: ignore[attr-defined]
        "What the answer rests on:\n  left out: a node\nThe answer rests on 2 assumptions: --assumptions tells more.\n"
    )


def test_names_are_whole_on_a_narrow_terminal() -> None:
    pod, app = f"analytics/{'spark-etl-nightly-' * 2}w0", "spark-etl-nightly-of-the-year"
    group = Group("max of queue root.analytics.etl reached (memory)", False, 3, 1, "key", app, "root.etl", 0.0, pod)
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    show(Overview(3, 0, (group,), 0.0, ()), console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert pod in said
    assert "…" not in said


LEVEL = QueueLevel("root.a", {"memory": 2**31, "vcore": 1500}, None, {}, {}, {}, 0, 3)
LIMIT = LimitLevel("user", "sue", "root.a", True, {"vcore": 2000}, {}, {}, 0, 2)
CHAIN = Chain("Running", (LEVEL,), (LIMIT,), {}, (), ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (QueueMax("root.a", {"vcore": 500}), ["root.a: max: {memory: 2Gi, vcore: 2}"]),
        (QueueMax("root.a", {"vcore": 500}, dynamic=True), []),
        (QueueMax("root.b", {"vcore": 500}), []),
        (LimitMax("user", "sue", "root.a", {"vcore": 1}), ["the limit at root.a: maxresources: {vcore: 2001m}"]),
        (LimitMax("user", "bob", "root.a", {"vcore": 1}), []),
        (MaxApplications("root.a", 1), ["root.a: maxapplications: 4"]),
        (MaxApplications("root.a", 1, dynamic=True), []),
        (MaxApplications("root.a", 1, "user", "sue"), ["the limit at root.a: maxapplications: 3"]),
        (Schedulable("n"), []),
    ],
)
def test_new_values_are_those_of_the_configuration(change: Change, told: list[str]) -> None:
    assert list(_values([change], CHAIN)) == told


# -- a scheduler's REST interface ----------------------------------------------------------------------------


class _Rest(BaseHTTPRequestHandler):
    """A scheduler that answers its dump at one path, to those who send the token."""

    path_of_dump: ClassVar[str] = "/debug/fullstatedump"
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        path = self.path.removesuffix("?checkpoint=true")  # which another scheduler passes over
        if path == "/moved":
            self.send_response(307)
            self.send_header("Location", self.path_of_dump)
            self.end_headers()
        elif path != self.path_of_dump:
            self.send_error(404)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}" and self.path_of_dump != "/open":
            self.send_error(401)
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(gzip.compress(Path(DUMP).read_bytes()))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def rest() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Rest)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    _Rest.seen.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("path", ["/debug/fullstatedump", "/ws/v1/fullstatedump"])
def test_a_running_scheduler_is_asked_where_new_and_old_ones_answer(
    licorne: Command, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(_Rest, "path_of_dump", path)
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    done = licorne("why", "--from", rest, "--token-file", str(token), "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["waiting"] == 4
    assert _Rest.seen[-1] == f"{path}?checkpoint=true"


def test_redirects_are_followed(licorne: Command, rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Rest, "path_of_dump", "/open")
    assert licorne("why", "--from", f"{rest}/moved").status == 0


def test_without_its_token_the_remedy_is_named(licorne: Command, rest: str) -> None:
    done = licorne("why", "--from", rest)
    assert (done.status, done.out) == (4, "")
    assert "401: the scheduler asks for a token; give --token-file" in done.err


def test_a_token_that_the_scheduler_does_not_know_is_told_as_such(licorne: Command, rest: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-another-scheduler")
    done = licorne("why", "--from", rest, "--token-file", tmp_path / "token")
    assert (done.status, done.out) == (4, "")
    assert "401: the scheduler does not know this token" in done.err


def test_http_and_https_that_are_mixed_up_are_told(licorne: Command, rest: str) -> None:
    done = licorne("why", "--from", rest.replace("http", "https"))
    assert (done.status, "no answer in TLS; if the address has none, give http://" in done.err) == (4, True), done.err
    with socket.create_server(("127.0.0.1", 0)) as server:  # a server that wants TLS hangs up on what is none

        def hang_up() -> None:
            server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        done = licorne("why", "--from", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert (done.status, "if the address wants TLS, give https://" in done.err) == (4, True), done.err


def test_a_scheduler_without_a_resource_manager_is_told(licorne: Command, tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text('{"timestamp": 1, "rmDiagnostics": {"empty": "nobody"}, "logLevel": "info"}')
    done = licorne("why", "--from", tmp_path / "dump.json")
    assert (done.status, done.out) == (4, "")
    assert "no resource manager is registered with the scheduler" in done.err


@pytest.mark.parametrize("command", [("why",), ("shares",), ("config", "check", EXAMPLE / "queues.yaml")])
def test_a_dump_whose_configuration_is_refused_is_told(
    licorne: Command, tmp_path: Path, command: tuple[str | Path, ...]
) -> None:
    dump = json.loads(Path(DUMP).read_bytes())
    dump.pop("licorne", None)  # as YuniKorn writes it
    dump["config"]["Partitions"][0]["Queues"][0]["Queues"][0]["Name"] = "no name!"
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    done = licorne(*command, "--from", tmp_path / "dump.json")
    assert (done.status, done.out) == (5, "")
    assert "dump.json: its queue configuration is refused" in done.err
    assert "no name!" in done.err
    assert ("give another one with --config" in done.err) == (command[0] != "config")
    if command[0] != "config":
        assert licorne(*command, "--from", tmp_path / "dump.json", "--config", EXAMPLE / "queues.yaml").status == 0


def test_the_dump_of_the_example_is_what_its_program_writes() -> None:
    spec = importlib.util.spec_from_file_location("make_pods_wait", EXAMPLE / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.story() == Path(DUMP).read_bytes()
