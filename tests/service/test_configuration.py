"""Settings of all sources: their precedence, refusals, and how they are shown."""

from __future__ import annotations

import base64
import gzip
import random
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import licorne.cli
from licorne.core.base.setting_table import SettingsError
from licorne.core.base.settings import Settings
from licorne.core.base.states import TIME_MAX_NS
from licorne.grpc.service import GroupSettings, Security, ServiceSettings, SettingError, Web
from licorne.grpc.service.configuration import Given, building, load_all
from licorne.grpc.service.configuration.queues import EVERYBODY, Groups
from licorne.grpc.service.configuration.values import Values, read_values
from licorne.host import shown_settings
from licorne.host.setting_table import SETTINGS, TABLE
from licorne.host.shown_settings import Shown, table
from licorne.host.web.rest import RequestLimits
from licorne.host.web.settings import WebSettings
from pages import settings_page
from seeds import some_seeds

QUEUES = "partitions: [{name: default, queues: [{name: root, queues: [{name: %s}]}]}]\n"


def values_of(tmp_path: Path, text: str, **given: object) -> Values:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    return read_values(Given(file=file, **given))  # type: ignore[arg-type]


# -- the table -------------------------------------------------------------------------------------------


STRUCTURES = (Settings(), WebSettings(), RequestLimits(), ServiceSettings(), GroupSettings(), Security(), Web())


def test_the_defaults_are_those_of_the_code_that_uses_them() -> None:
    values = read_values(Given())
    assert building.service_settings(values) == ServiceSettings()
    texts = {one.key: one.default for one in SETTINGS if one.default}
    for structure in STRUCTURES:
        assert TABLE.fill(structure, texts) == structure == TABLE.fill(structure, {})
    assert values.texts() == {}


def test_every_setting_of_the_scheduler_fills_an_attribute() -> None:
    filled = {one.key for structure in STRUCTURES for _, one in TABLE.attributes(structure)}
    assert {one.key for one in SETTINGS if one.scheduler} <= filled
    with pytest.raises(KeyError):
        TABLE.field("event.maxStream")


def test_every_setting_has_its_own_names_and_a_default_that_parses() -> None:
    for given in ([one.key for one in SETTINGS], [one.option for one in SETTINGS if one.option]):
        assert len(set(given)) == len(given)
    variables = [one.environment for one in SETTINGS if one.environment]
    assert len(set(variables)) == len(variables)
    assert all(re.fullmatch(r"LICORNE_[A-Z0-9_]+", name) for name in variables)
    assert [one.key for one in SETTINGS if one.default and one.kind.read(one.default) is None] == []
    assert [one.key for one in SETTINGS if TABLE.find(one.key) is not one and "<" not in one.key] == []
    names = {one.key: one.environment for one in SETTINGS}
    assert names["licorne.rm-timeout"] == "LICORNE_RM_TIMEOUT"
    assert names["event.trackingEnabled"] == "LICORNE_EVENT_TRACKING_ENABLED"
    assert names["event.RESTResponseSize"] == "LICORNE_EVENT_REST_RESPONSE_SIZE"


BOUNDS = [
    ("event.requestCapacity", "1000001", 1_000_000),
    ("event.ringBufferCapacity", "10000001", 10_000_000),
    ("event.maxStreams", "0", 100),
    ("event.maxStreams", "1e3", 100),
    ("event.RESTResponseSize", "-1", 10_000),
    ("event.trackingEnabled", "perhaps", True),
    ("health.checkInterval", "-1500ms", -1.5),
    ("reservation.delay", "2562047h", TIME_MAX_NS),
    ("gang.hold.max.age", "0", 0),
]


@pytest.mark.parametrize(("key", "text", "value"), BOUNDS)
def test_the_row_says_how_a_value_is_bounded(key: str, text: str, value: object) -> None:
    found = TABLE.find(key)
    assert found is not None
    assert found.value({key: text}) == value


def test_a_key_with_a_name_in_it_fills_a_map() -> None:
    texts = {"priority.class.a": "-7", "priority.class.b": "+8", "priority.classes": "9"}
    assert TABLE.fill(Settings(), texts).priority_classes == {"a": -7, "b": 8}
    for wrong in ("1_000", " 5", "2147483648", ""):
        with pytest.raises(SettingsError, match=r"priority\.class\.a: .*: must be an integer of 32 bits"):
            TABLE.fill(Settings(), {"priority.class.a": wrong})


@pytest.mark.parametrize("key", ["service.clusterId", "kubernetes.qps", "admissionController.accessControl.bypassAuth"])
def test_settings_of_kubernetes_are_known_and_have_no_effect(key: str) -> None:
    found = TABLE.find(key)
    assert found is not None
    assert found.applies == "no effect here"


# -- which source counts ---------------------------------------------------------------------------------


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = "licorne.rm-timeout: 1\nlicorne.max-name: 11\nlicorne.max-tags: 111\n\nlog.level: WARN\n"
    environment = {"LICORNE_RM_TIMEOUT": "2", "LICORNE_MAX_NAME": "22", "LICORNE_PURE": "1", "LICORNE_GRPC": ""}
    options = {"licorne.rm-timeout": "1m30s"}
    found = values_of(tmp_path, file, environment=environment, options=options)
    origins = {key: found.by_key[key].origin.removeprefix(f"{tmp_path}/") for key in found.by_key}
    assert [found.get(f"licorne.{name}") for name in ("rm-timeout", "max-name", "max-tags")] == [90.0, 22, 111]
    assert origins["licorne.rm-timeout"] == "option --rm-timeout"
    assert origins["licorne.max-name"] == "environment LICORNE_MAX_NAME"
    assert origins["licorne.max-tags"] == "settings.yaml:3"
    assert origins["log.level"] == "settings.yaml:5"
    assert origins["licorne.grpc"] == "default"
    assert found.warnings == []


@pytest.mark.parametrize(
    ("text", "enabled"), [("true", "false"), ("1", "false"), ("F", "true"), ("perhaps", None), ("", None)]
)
def test_disable_reservation_as_in_the_original(text: str, enabled: str | None) -> None:
    found = read_values(Given(environment={"DISABLE_RESERVATION": text}))
    assert found.texts().get("reservation.enabled") == enabled
    assert len(found.warnings) == (text == "perhaps")
    both = read_values(Given(environment={"DISABLE_RESERVATION": text, "LICORNE_RESERVATION_ENABLED": "t"}))
    assert both.texts()["reservation.enabled"] == "t"


def test_unparsable_values_mean_the_default_where_the_original_does_so(tmp_path: Path) -> None:
    text = "event.maxStreams: many\nhealth.checkInterval: soon\nlog.level: loud\nadmissionController.accessControl.bypassAuth: 7\n"
    found = values_of(tmp_path, text)
    assert len(found.warnings) == 4
    assert found.warnings[0].endswith(
        "settings.yaml:1: event.maxStreams: 'many': must be a whole number, 0 or more; the default is used"
    )
    assert found.get("event.maxStreams") == 100
    assert found.texts() == {}


REFUSED = [
    ("service.dispatchTimeout: soon", "1: service.dispatchTimeout: 'soon': must be a duration"),
    ("kubernetes.qps: fast", "1: kubernetes.qps: 'fast': must be an integer of 32 bits"),
    ("\nlicorne.max-name: 0", "2: licorne.max-name: '0': must be a whole number from 1"),
    ("reservation.delay: -1s", "1: reservation.delay: '-1s': must be a duration"),
    ("gang.hold.max.age: soon", "1: gang.hold.max.age: 'soon': must be a duration like 30m, or 0"),
    ("event.ringbufferCapacity: 5", "YuniKorn does not read it; write event.ringBufferCapacity"),
    ("service.instanceTypeNodeLabelKey: x", "write service.nodeInstanceTypeNodeLabelKey"),
    ("event.maxStream: 5", "'event.maxStream': no such setting; did you mean event.maxStreams?"),
    ("Log.Level: 5", "did you mean log.level?"),
    ("max-name: 5", "did you mean licorne.max-name?"),
    ("nonsense: 5", "'nonsense': no such setting; `licorne serve --print-config` lists all"),
    ("- a", "1:1: must be a mapping of keys to texts"),
    ("a: 1\na: 2", "2:1: 'a': is there twice"),
    ("log.level: {a: b}", "1:12: log.level: must be a text"),
    ("queues.yaml:\n  partitions: []", "2:3: queues.yaml: must be a text (write `|` behind the colon)"),
    ("a: [", "cannot be read as YAML [yaml-syntax]"),
    ("data: {log.level: info}\nother: 1", "2:1: 'other': no part of a ConfigMap"),
    ("binaryData: {queues.yaml.gz: AAAA}", "must be base64 of gzip"),
]


@pytest.mark.parametrize(("text", "complaint"), REFUSED)
def test_a_refusal_names_position_and_rule(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(SettingError) as refusal:
        load_all(Given(file=file))
    assert complaint in str(refusal.value)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as refusal:
        values_of(tmp_path, "a: 1\nlicorne.max-name: x\n", settings={"b": "1"}, options={"licorne.max-tags": "y"})
    assert len(str(refusal.value).splitlines()) == 4


def test_a_misspelt_environment_variable_is_reported(tmp_path: Path) -> None:
    found = read_values(Given(environment={"LICORNE_MAX_NAMES": "5", "LICORNE_FUZZ": "5"}))
    assert found.warnings == ["LICORNE_MAX_NAMES: no such setting; did you mean LICORNE_MAX_NAME?"]


# -- forms of the settings file --------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [bytes, base64.b64encode], ids=["gzip", "base64 of gzip, as YuniKorn wants it"])
def test_a_config_map_with_packed_parts(tmp_path: Path, inner: Callable[[bytes], bytes]) -> None:
    packed = base64.b64encode(inner(gzip.compress((QUEUES % "packed").encode()))).decode()
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "yunikorn-configs"},
        "data": {"log.level": "DEBUG", "queues.yaml": QUEUES % "plain", "other.yaml": QUEUES % "other"},
        "binaryData": {"queues.yaml.gz": packed, "picture.png": "AAAA"},
    }
    file = tmp_path / "map.yaml"
    file.write_bytes(msgspec.json.encode(manifest))  # JSON is YAML
    loaded = load_all(Given(file=file))
    assert loaded.values.get("log.level") == 10
    assert sorted(loaded.sources) == [EVERYBODY, "other", "queues"]
    assert loaded.sources["queues"] is loaded.sources[EVERYBODY]
    groups = Groups(loaded.sources)
    assert groups.get("queues") == groups.get("") == groups.get("unknown") == (QUEUES % "packed", {})
    assert groups.get("other") == (QUEUES % "other", {})
    assert "unknown" in groups


def test_a_config_map_that_is_mounted(tmp_path: Path) -> None:
    """As Kubernetes does it: each key is a link into a folder that is swapped as a whole."""
    data = tmp_path / "..2026"
    data.mkdir()
    (data / "log.level").write_text("error\n")
    (data / "queues.yaml").write_text(QUEUES % "a")
    (data / "service.policyGroup").write_text("mine")
    (data / "mine.yaml.gz").write_bytes(gzip.compress((QUEUES % "b").encode()))
    (tmp_path / "..data").symlink_to("..2026")
    for file in data.iterdir():
        (tmp_path / file.name).symlink_to(Path("..data", file.name))
    loaded = load_all(Given(file=tmp_path))
    assert loaded.values.by_key["log.level"].text == "error"
    assert loaded.sources[EVERYBODY].text == QUEUES % "b"
    assert loaded.sources["queues"].text == QUEUES % "a"


@pytest.mark.parametrize("seed", some_seeds("LICORNE_SETTINGS_SEED", 60))
def test_no_content_of_a_file_causes_a_traceback(tmp_path: Path, seed: int) -> None:
    """Pieces of settings and of YAML in any order: read, or refused with the place."""
    rng = random.Random(seed)
    pieces = [
        "data:", "binaryData:", "queues.yaml: |", "log.level: ", "event.maxStreams: ", "\n", "\n  ", "- ", "{", "}", "[", "]",
        "&a ", "*a", "? ", ": ", "x", "5", "-1", "true", "null", "'", '"', "<<: ", "!!int ", "\t", "\x00", "\u2028", "é",
        "q.yaml.gz: H4sIAAAAAAAA", "partitions:\n", "---\n", "...\n", "%YAML 1.2\n",
    ]  # fmt: skip
    file = tmp_path / "s.yaml"
    for _ in range(40):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 25)))
        file.write_bytes(text.encode() if rng.random() < 0.95 else rng.randbytes(20))
        try:
            load_all(Given(file=file))
        except SettingError as refusal:
            assert "s.yaml" in str(refusal), (seed, text)  # noqa: PT017


def test_files_named_on_the_command_line_go_before_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"queues.yaml: {QUEUES % 'inline'!r}\n".replace("\\n", ""))
    (tmp_path / "q.yaml").write_text(QUEUES % "file")
    path = str(tmp_path / "q.yaml")
    for options, everybody, named in (
        ({}, "inline", "inline"),
        ({"licorne.config": path}, "file", "inline"),
        ({"licorne.policy-group": f"queues={path}"}, "inline", "file"),
    ):
        sources = load_all(Given(file=tmp_path / "s.yaml", options=options)).sources
        assert (everybody in sources[EVERYBODY].text, named in sources["queues"].text) == (True, True)


def test_a_configuration_in_the_settings_file_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("queues.yaml: |\n  partitions:\n    - name: default\n      quues: []\n")
    with pytest.raises(SettingError, match=r"s\.yaml\[queues\.yaml\]:3:5: .*quues"):
        load_all(Given(file=tmp_path / "s.yaml"))


def test_too_many_queues(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text(QUEUES % "a")
    given = Given(options={"licorne.config": str(tmp_path / "q.yaml"), "licorne.max-queues": "1"})
    with pytest.raises(SettingError, match=r"has 2 queues, and at most 1 are allowed \[queues-too-many\]"):
        load_all(given)


# -- showing them ----------------------------------------------------------------------------------------


def test_print_config(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "OPEN-SESAME"  # noqa: S105
    file = tmp_path / "s.yaml"
    file.write_text(f"queues.yaml: |\n  {QUEUES % 'x'}  # {secret}\nhealth.checkInterval: 0s\nevent.maxStreams: -1\n")
    monkeypatch.setenv("LICORNE_SETTINGS", str(file))
    monkeypatch.setenv("LICORNE_REST", "127.0.0.1:0, unix:/rest")
    words = ["serve", "--print-config", "--max-name", "7", "--insecure", "--setting", "log.core.rest.level=error"]
    assert licorne.cli.run(words) == 0
    told = capsys.readouterr().out
    assert secret not in told
    rows: dict[str, list[str]] = {line.split()[0]: re.split("  +", line) for line in told.splitlines() if line}
    assert rows["licorne.max-name"] == ["licorne.max-name", "7", "option --max-name", "at once"]
    assert rows["licorne.insecure"][1:3] == ["true", "option --insecure"]
    assert rows["licorne.rest"][1:3] == ["127.0.0.1:0, unix:/rest", "environment LICORNE_REST"]
    assert rows["queues.yaml"] == ["queues.yaml", "set", f"{file}:1", "at once"]
    assert rows["log.core.rest.level"][2] == "option --setting"
    assert rows["kubernetes.qps"][3] == "no effect here"
    assert "event.maxStreams: '-1': must be" in told
    assert licorne.cli.run([*words, "--json"]) == 0
    listed = msgspec.json.decode(capsys.readouterr().out)
    assert {one["key"] for one in listed} >= {one.key for one in SETTINGS if "<" not in one.key}
    assert listed[0] == {
        "key": "licorne.grpc", "value": "127.0.0.1:3333", "source": "default", "applies": "at restart",
    }  # fmt: skip


def test_the_page_of_settings_is_current() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_page(), "run: python tools/pages.py"


def test_the_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    licorne.cli.run(["serve", "--help"])
    told = capsys.readouterr().out
    assert [one.option for one in SETTINGS if one.option and f"--{one.option}" not in told] == []


def test_settings_on_a_narrow_terminal_have_a_line_for_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Shown("licorne.some-setting", "a value of some length", "default", "at restart")]
    assert [len(line) for line in table(rows)] == [74, 65]
    monkeypatch.setattr(shown_settings, "_width", lambda: 73)
    *_, key, value = table(rows)
    assert (key, value) == ("licorne.some-setting", "    a value of some length  default  at restart")
