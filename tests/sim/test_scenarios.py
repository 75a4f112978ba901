"""Scenarios: what their texts mean, what is refused and where, the laws of what is generated, and the time line."""

from __future__ import annotations

import io
import pickle
import re
from collections import Counter
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import licorne
from common.examples import examples
from licorne import Scenario
from licorne.config import as_data
from licorne.core.nodes.terms import parse_terms
from licorne.sim import Result
from licorne.workload import ScenarioError, WorkloadError, load_workload
from licorne.workload.lines import App, Ask, Line, Node, NodeDrain, NodeRemove, NodeUndrain, Reload
from licorne.workload.scenarios.document import Profile, Sine, schema
from licorne.workload.scenarios.draws import Source
from licorne.workload.scenarios.rates import arrivals, rates_of
from licorne.workload.scenarios.values import rate, time_us
from licorne.workload.workload import write_workload
from licorne.workload.yaml_files.reading import compose_text

HOUR_S = 3600
DAY_US = 86_400_000_000
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/scenarios"

BASE: dict[str, Any] = {
    "scenario": "base",
    "length": "1d",
    "cluster": {"a": {"nodes": 3, "size": {"vcore": 8}}, "b": {"nodes": 2, "size": {"vcore": 4}, "absent": True}},
    "queues": [{"name": "q"}],
    "arrivals": {"job": {"rate": "6/h", "queue": "root.q", "size": {"vcore": 1}, "duration": "1h"}},
}


def text_of(scenario: Scenario, **choices: Any) -> bytes:
    stream = io.BytesIO()
    write_workload(scenario.workload(**choices), stream)
    return stream.getvalue()


def with_events(*events: dict[str, Any], **changes: Any) -> Scenario:
    return Scenario({**BASE, **changes, "events": list(events)})


def steps(scenario: Scenario) -> list[tuple[float, Line]]:
    """The lines of the time line after the beginning, with their times."""
    found: list[tuple[float, Line]] = []
    at: float = 0
    for line in scenario.workload().lines:
        at = at if line.at is None else line.at
        if at > 0 and not isinstance(line, App | Ask):
            found.append((at, line))
    return found


def names(found: list[tuple[float, Line]], kind: type[Any]) -> list[tuple[float, str]]:
    return [(at, getattr(line, "id")) for at, line in found if type(line) is kind]  # noqa: B009  # each kind has one


# -- the same bytes ------------------------------------------------------------------------------------------


def test_equal_seeds_give_equal_bytes_and_others_do_not() -> None:
    scenario = Scenario.read(EXAMPLES / "batch-burst.yaml")
    text = text_of(scenario)
    sent = pickle.loads(pickle.dumps(scenario))  # noqa: S301  # what this process has just pickled
    assert text == text_of(scenario) == text_of(sent)
    assert text == text_of(scenario, seed=scenario.seed, load=1)
    assert text != text_of(scenario, seed=scenario.seed + 1)


def test_the_bytes_are_those_of_every_machine_and_version() -> None:
    """The numbers were drawn once and written down; whoever draws others has changed what scenarios mean."""
    source = Source(7, "class", "job")
    assert [source.uniform() for _ in range(3)] == [0.8063069132618857, 0.31999325129696166, 0.34768496721898845]
    found = [source.exponential(), source.normal(), source.normal()]
    assert found == [0.5007141385459397, -2.571636646402079, -1.4923064153085577]
    scenario = Scenario({**BASE, "length": "2h"})
    lines = [line for line in scenario.workload(seed=3).lines if isinstance(line, App)]
    assert [line.at for line in lines] == [
        130.385149, 702.837865, 2121.967206, 2141.083073, 2545.845539,
        3614.539849, 4234.357478, 5904.898796, 6707.226102, 6887.950703,
    ]  # fmt: skip


def test_another_class_changes_nothing_of_a_class() -> None:
    other = {**BASE, "arrivals": {**BASE["arrivals"], "other": {"rate": "9/h", "size": {"vcore": 2}}}}
    both = [line for line in Scenario(other).workload().lines if isinstance(line, App | Ask)]
    kept = [line for line in both if (line.id if isinstance(line, App) else line.app).startswith("job-")]
    assert kept == [line for line in Scenario(BASE).workload().lines if isinstance(line, App | Ask)]


def test_a_higher_load_moves_arrivals_forward_and_changes_nothing_else() -> None:
    drawn = {
        **BASE["arrivals"]["job"],
        "pods": {"uniform": [1, 5]},
        "duration": {"lognormal": {"median": "1h", "sigma": 1}},
    }
    scenario = Scenario({**BASE, "arrivals": {"job": drawn}})
    few, many = (
        [line for line in scenario.workload(load=load).lines if isinstance(line, App | Ask)] for load in (1, 3)
    )
    assert len(many) > 2 * len(few)
    for one, other in zip(few, many, strict=False):
        assert type(one) is type(other)
        assert msgspec.structs.replace(one, at=None) == msgspec.structs.replace(other, at=None)
        if isinstance(one, App):
            assert one.at is not None and other.at is not None
            assert abs(one.at - 3 * other.at) < 1e-3


def test_a_written_workload_is_simulated_as_the_scenario_is(tmp_path: Path) -> None:
    scenario = Scenario.read(EXAMPLES / "gpu-training.yaml")
    written = tmp_path / "written.jsonl"
    written.write_bytes(text_of(scenario))
    own, read = licorne.simulate(scenario), licorne.simulate(written)
    assert (own.digest, own.pods) == (read.digest, read.pods)


# -- laws of arrivals ------------------------------------------------------------------------------------------

FACTORS = st.sampled_from([5, 12, 24, 48]).flatmap(lambda n: st.lists(st.floats(0.1, 9), min_size=n, max_size=n))
WEEKS = st.none() | st.lists(st.floats(0.1, 9), min_size=7, max_size=7)
PER_HOUR = st.integers(1, 500)
PROFILES = st.one_of(
    PER_HOUR.map(lambda n: Profile(mean=f"{n}/h")),
    st.builds(lambda n, day, week: Profile(mean=f"{n}/h", day=day, week=week), PER_HOUR, FACTORS, WEEKS),
    st.builds(
        lambda n, swing, peak: Profile(mean=f"{n}/h", sine=Sine(swing=swing, peak=peak)),
        PER_HOUR,
        st.floats(0, 1),
        st.integers(0, 86_400),
    ),
)
SPANS = st.tuples(st.integers(0, 10 * DAY_US), st.integers(1, 10 * DAY_US)).map(lambda pair: (pair[0], sum(pair)))


@given(PROFILES)
def test_a_mean_is_the_mean_of_whole_weeks(profile: Profile) -> None:
    assert profile.mean is not None
    expected = rate(profile.mean, ()) * 14 * DAY_US
    assert rates_of(profile, ()).expected(0, 14 * DAY_US) == pytest.approx(expected, rel=1e-9)


@given(PROFILES, SPANS, st.floats(0.1, 3))
def test_even_arrivals_are_as_many_as_expected_at_every_moment(
    profile: Profile, span: tuple[int, int], load: float
) -> None:
    """The number up to any moment differs from the expected one by at most one half, and nothing is out of the span."""
    start, end = span
    rates = rates_of(profile, ())
    times = list(arrivals(rates, start, end, load, None))
    assert times == sorted(times)
    assert all(start <= time < end for time in times)
    for until in (start + (end - start) // 3, end):
        expected = load * rates.expected(start, until)
        assert abs(sum(time < until for time in times) - expected) <= 0.5 + 1e-3


@examples(30)
@given(PROFILES, st.integers(0, 2**32), st.sampled_from([0.5, 1, 2]))
def test_random_arrivals_are_as_many_as_expected(profile: Profile, seed: int, load: float) -> None:
    """Within six deviations of a Poisson number, in each half of ten days; all within the span."""
    rates = rates_of(profile, ())
    times = list(arrivals(rates, 0, 10 * DAY_US, load, Source(seed)))
    assert times == sorted(times)
    for start, end in ((0, 5 * DAY_US), (5 * DAY_US, 10 * DAY_US)):
        expected = load * rates.expected(start, end)
        assert abs(sum(start <= time < end for time in times) - expected) <= 6 * expected**0.5 + 6


def test_bursts_are_as_many_as_they_say_and_grow_with_the_load() -> None:
    bursts = {"apps": 10, "every": "6h", "first": "1h", "within": "30m"}
    job = {"bursts": bursts, "size": {"vcore": 1}}
    scenario = Scenario({**BASE, "arrivals": {"job": job}})
    for load in (1, 2, 0.25):
        found = [line.at for line in scenario.workload(load=load).lines if isinstance(line, App)]
        assert len(found) == 40 * load
        assert all(at is not None and HOUR_S <= (at % (6 * HOUR_S)) < 1.5 * HOUR_S for at in found)


@given(
    st.integers(0, 2**40), st.floats(0.2, 2), st.sampled_from(["1h", "90m", "1d"]), st.sampled_from(["poisson", "even"])
)
def test_nothing_arrives_outside_the_length(seed: int, load: float, length: str, process: str) -> None:
    job = {**BASE["arrivals"]["job"], "process": process, "rate": "50/h", "from": "10m", "to": "50m"}
    late = {"bursts": {"apps": 5, "at": ["59m", "2h"], "within": "3h"}, "size": {"vcore": 1}}
    scenario = Scenario({**BASE, "length": length, "arrivals": {"job": job, "late": late}})
    at: float = 0
    for line in scenario.workload(seed=seed, load=load).lines:
        assert line.at is None or at <= line.at < time_us(length, ()) / 1e6, "times rise, and end before the length"
        at = at if line.at is None else line.at
        if isinstance(line, App) and line.id.startswith("job"):
            assert 600 <= at < 3000


MEANS = [
    ("uniform", {"uniform": ["1h", "3h"]}, 7200, 0.02),
    ("exponential", {"exponential": "1h"}, 3600, 0.04),
    ("lognormal by mean", {"lognormal": {"mean": "1h", "sigma": 0.8}}, 3600, 0.05),
    ("lognormal by median", {"lognormal": {"median": "1h", "sigma": 0.5}}, 3600 * 1.1331485, 0.03),
    ("pareto", {"pareto": {"min": "1h", "shape": 3}}, 3600 * 1.5, 0.04),
    ("choice", {"choice": {"1h": 3, "2h": 1}}, 4500, 0.02),
    ("equal choice", {"choice": ["1h", "2h", "6h"]}, 10_800, 0.04),
    ("table", {"table": [[0, 0], [0.5, "1h"], [1, "2h"]]}, 3600, 0.03),
    ("bounds", {"uniform": [0, "2h"], "min": "1h", "max": "1h"}, 3600, 0),
]


@pytest.mark.parametrize(("name", "distribution", "mean_s", "within"), MEANS, ids=[row[0] for row in MEANS])
def test_a_distribution_has_its_mean(name: str, distribution: dict[str, Any], mean_s: float, within: float) -> None:
    """Of 10,000 drawn durations: the bounds are more than four deviations of the mean of that many."""
    del name
    job = {"rate": "1000/h", "process": "even", "size": {"vcore": 1}, "duration": distribution}
    scenario = Scenario({**BASE, "length": "10h", "arrivals": {"job": job}})
    drawn = [line.duration_s for line in scenario.workload().lines if isinstance(line, Ask)]
    assert len(drawn) == 10_000
    assert sum(one for one in drawn if one is not None) / 10_000 == pytest.approx(mean_s, rel=within)


def test_users_sizes_and_pods_come_by_their_weights() -> None:
    users = {"ann": 6, "team": {"weight": 2, "count": 2, "groups": ["dev"]}, "zoe": {"weight": 2, "groups": ["a", "b"]}}
    sizes = [{"weight": 3, "size": {"vcore": 1}}, {"weight": 1, "size": {"vcore": 2, "memory": "1Gi"}}]
    job = {
        "rate": "500/h",
        "users": users,
        "sizes": sizes,
        "pods": {"choice": {"1": 1, "3": 1}},
        "queue": "root.{group}.{user}",
        "tags": {"namespace": "{user}"},
    }
    lines = list(Scenario({**BASE, "arrivals": {"job": job}}).workload().lines)
    apps = [line for line in lines if isinstance(line, App)]
    asks = [line for line in lines if isinstance(line, Ask)]
    share = {user: number / len(apps) for user, number in Counter(app.user for app in apps).items()}
    assert share == pytest.approx({"ann": 0.6, "team-0": 0.1, "team-1": 0.1, "zoe": 0.2}, abs=0.02)
    assert {(app.user, app.groups, app.queue) for app in apps} == {
        ("ann", (), "root..ann"),
        ("team-0", ("dev",), "root.dev.team-0"),
        ("team-1", ("dev",), "root.dev.team-1"),
        ("zoe", ("a", "b"), "root.a.zoe"),
    }
    assert all(app.tags == {"namespace": app.user} for app in apps)
    pods = Counter(ask.app for ask in asks)
    assert set(pods.values()) == {1, 3}
    small = sum(next(ask for ask in asks if ask.app == app.id).res == {"vcore": 1000} for app in apps[:400])
    assert small / 400 == pytest.approx(0.75, abs=0.09)
    assert all(ask.res in ({"vcore": 1000}, {"vcore": 2000, "memory": 1 << 30}) for ask in asks)


def test_a_gang_is_one_size_and_runs_equally_long() -> None:
    job = {
        **BASE["arrivals"]["job"],
        "pods": 3,
        "gang": "placeholders",
        "style": "Hard",
        "timeout": "90s",
        "duration": {"exponential": "1h"},
        "priority": {"uniform": [1, 9]},
        "nodes": {"zone": "a", "kind": ["x", "y"]},
        "tolerates": ["spot", {"key": "k", "value": "v", "effect": "NoExecute"}],
        "evictable": True,
        "evicts": True,
        "requested": "2h",
    }
    lines = list(Scenario({**BASE, "arrivals": {"job": job}}).workload().lines)
    app = next(line for line in lines if isinstance(line, App))
    asks = [line for line in lines if isinstance(line, Ask) and line.app == app.id]
    (group,) = app.gang
    found = (group.min, group.res, app.style, app.ph_timeout_ms, app.atomic)
    assert found == (3, {"vcore": 1000}, "Hard", 90_000, False)
    assert len({(ask.duration_s, ask.prio, ask.requested_s, ask.pre_self, ask.pre_other) for ask in asks}) == 1
    assert asks[0].group == group.name
    assert msgspec.json.decode((asks[0].tags or {})["licorne/node-constraints"]) == {
        "nodeSelector": {"zone": "a"},
        "nodeAffinity": [[{"key": "kind", "operator": "In", "values": ["x", "y"]}]],
        "tolerations": [
            {"key": "spot", "operator": "Exists"},
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"},
        ],
    }


def test_terms_of_a_class_are_about_a_class_or_the_application() -> None:
    job = {
        **BASE["arrivals"]["job"],
        "near": {"zone": "job"},
        "apart": {"si/hostname": "application"},
        "spread": {"zone": 2},
    }
    other = BASE["arrivals"]["job"]
    lines = list(Scenario({**BASE, "arrivals": {"job": job, "other": other}}).workload().lines)
    tags = {line.app: line.tags or {} for line in lines if isinstance(line, Ask)}
    pod, terms = (msgspec.json.decode(tags["job-1"][name]) for name in ("licorne/pod", "licorne/pod-terms"))
    assert pod["labels"] == {"class": "job", "application": "job-1"}
    own = {"matchLabels": {"application": "job-1"}}
    assert terms == {
        "affinity": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"class": "job"}}}],
        "antiAffinity": [{"topologyKey": "si/hostname", "labelSelector": own}],
        "spread": [{"topologyKey": "zone", "labelSelector": own, "maxSkew": 2}],
    }
    assert tags["other-1"].keys() == {"licorne/pod"}


def test_a_class_prefers_what_it_could_demand() -> None:
    wishes = {"nodes": {"kind": "x"}, "near": {"zone": "job"}, "apart": {"rack": "application"}, "spread": {"zone": 2}}
    scenario = Scenario({**BASE, "arrivals": {"job": {**BASE["arrivals"]["job"], "prefers": wishes}}})
    tags = next(line.tags or {} for line in scenario.workload().lines if isinstance(line, Ask))
    own, job = ({"matchLabels": {kind: name}} for kind, name in (("application", "job-0"), ("class", "job")))
    text = tags["licorne/pod-terms"]
    assert msgspec.json.decode(text) == {
        "preferred": {
            "nodes": [{"weight": 100, "term": [{"key": "kind", "operator": "In", "values": ["x"]}]}],
            "affinity": [{"weight": 100, "term": {"topologyKey": "zone", "labelSelector": job}}],
            "antiAffinity": [{"weight": 100, "term": {"topologyKey": "rack", "labelSelector": own}}],
            "spread": [{"topologyKey": "zone", "labelSelector": own, "maxSkew": 2}],
        }
    }
    assert parse_terms(text, "scenario").demand_nothing
    assert any("no node has the label rack" in str(one) for one in scenario.warnings)


# -- the time line ---------------------------------------------------------------------------------------------


def test_a_pool_leaves_and_joins() -> None:
    found = steps(with_events({"at": "2h", "leave": "a", "for": "3h"}, {"at": "4h", "join": "b"}))
    assert names(found, NodeRemove) == [(2 * HOUR_S, f"a-000{i}") for i in range(3)]
    assert names(found, Node) == [(4 * HOUR_S, "b-0000"), (4 * HOUR_S, "b-0001")] + [
        (5 * HOUR_S, f"a-000{i}") for i in range(3)
    ]


def test_a_pool_grows_and_shrinks_and_new_nodes_have_new_names() -> None:
    found = steps(
        with_events(
            {"at": "1h", "grow": "a", "nodes": 2},
            {"at": "2h", "shrink": "a", "nodes": 1},
            {"at": "3h", "grow": "a", "nodes": 1, "for": "1h"},
        )
    )
    assert names(found, Node) == [(HOUR_S, "a-0003"), (HOUR_S, "a-0004"), (3 * HOUR_S, "a-0005")]
    assert names(found, NodeRemove) == [(2 * HOUR_S, "a-0004"), (4 * HOUR_S, "a-0005")]


def test_a_failed_node_comes_back_unless_its_pool_has_left() -> None:
    back = steps(with_events({"at": "1h", "fail": "a", "for": "2h"}))
    assert names(back, NodeRemove)[0][1] == names(back, Node)[0][1]
    assert [at for at, _ in back] == [HOUR_S, 3 * HOUR_S]
    away = steps(with_events({"at": "1h", "fail": "a", "for": "2h"}, {"at": "2h", "leave": "a"}))
    assert (len(names(away, NodeRemove)), names(away, Node)) == (3, [])
    joined = steps(
        with_events({"at": "1h", "fail": "a", "for": "2h"}, {"at": "2h", "leave": "a"}, {"at": "5h", "join": "a"})
    )
    assert [name for _, name in names(joined, Node)] == ["a-0000", "a-0001", "a-0002"]


def test_an_event_repeats_to_the_end_and_draws_nodes_anew() -> None:
    found = steps(with_events({"at": "1h", "every": "2h", "fail": "a", "nodes": 1, "for": "30m"}))
    assert [at for at, _ in names(found, NodeRemove)] == [HOUR_S * hour for hour in range(1, 24, 2)]
    assert len({name for _, name in names(found, NodeRemove)}) == 3


def test_a_drained_node_takes_pods_again() -> None:
    found = steps(with_events({"at": "1h", "drain": "a", "nodes": 2, "for": "1h"}))
    drained, undrained = names(found, NodeDrain), names(found, NodeUndrain)
    assert len(drained) == 2
    assert [name for _, name in drained] == [name for _, name in undrained]
    assert {at for at, _ in undrained} == {2 * HOUR_S}


def test_a_burst_of_a_class_and_a_configuration() -> None:
    quiet = {**BASE["arrivals"], "rare": {"size": {"vcore": 1}, "queue": "root.q"}}
    scenario = with_events(
        {"at": "2h", "burst": "rare", "apps": 5, "within": "10m"},
        {"at": "3h", "configure": [{"name": "q", "resources": {"max": {"vcore": 2}}}]},
        arrivals=quiet,
    )
    burst = [line.at for line in scenario.workload().lines if isinstance(line, App) and line.id.startswith("rare")]
    assert burst == [2 * HOUR_S + 120 * i for i in range(5)]
    ((at, reload),) = steps(scenario)
    assert isinstance(reload, Reload) and at == 3 * HOUR_S
    result = licorne.simulate(scenario)
    assert next(row.max for row in result.queues if row.queue == "root.q" and row.resource == "vcore") == 2000
    assert result.refused == []


@examples(40)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"at": st.integers(0, 86_399)},
            optional={"nodes": st.integers(1, 5), "for": st.integers(1, 40_000), "every": st.integers(3_600, 90_000)},
        ).flatmap(
            lambda event: st.sampled_from(["leave", "join", "grow", "fail", "drain"]).flatmap(
                lambda kind: st.sampled_from(["a", "b"]).map(lambda pool: {**event, kind: pool})
            )
        ),
        max_size=8,
    )
)
def test_any_time_line_is_consistent(events: list[dict[str, Any]]) -> None:
    """No node comes that is there, none goes or is drained that is not: the scheduler would refuse such lines."""
    there: dict[str, bool] = {}
    for line in with_events(*events).workload().lines:
        if isinstance(line, Node):
            assert line.id not in there
            there[line.id] = False
        elif isinstance(line, NodeRemove):
            del there[line.id]
        elif isinstance(line, NodeDrain | NodeUndrain):
            assert there[line.id] is isinstance(line, NodeUndrain)
            there[line.id] = not there[line.id]


def test_pods_of_a_node_that_goes_are_created_again_or_not() -> None:
    job = {"bursts": {"apps": 4, "at": [0]}, "queue": "root.q", "size": {"vcore": 8}, "duration": "2h", "pods": 1}
    for replace in (True, False):
        scenario = with_events({"at": "1h", "leave": "a", "for": "1h"}, arrivals={"job": job}, replace=replace)
        result = licorne.simulate(scenario)
        outcomes = Counter(pod.outcome for pod in result.pods)
        # Three run from the beginning, and lose an hour; the fourth waits for a node.
        assert outcomes == ({"ended": 4} if replace else {"stopped": 3, "ended": 1})
        assert result.resubmitted == (3 if replace else 0)
        lost = {pod.lost_s for pod in result.pods if pod.evictions}
        assert lost == ({3600.0} if replace else set())


# -- what is refused -------------------------------------------------------------------------------------------

GOOD = """\
scenario: good
length: 1d
cluster:
  a: {nodes: 2, size: {vcore: 4}}
queues:
  - name: q
    resources: {max: {vcore: 4}}
arrivals:
  job:
    rate: 5/h
    size: {vcore: 1}
events:
  - {at: 1h, fail: a}
"""
WRONG_KEYS = [
    ("pods: 0", "11: pods: 0 is not from 1 to 100,000"),
    ("pods: 1.5", "11: pods: 1.5 is no whole number"),
    ("devices: 1", "14: devices: no pool of the cluster has devices"),
    ("style: Hard", "12: style: is for gangs with placeholders"),
    ("queue: 'root.{team}'", "12: queue: in braces stand {user} and {group} only"),
    ("users: {ann: 0}", "12: users: needs a user with a weight above 0"),
    ("users: {ann: x}", "18: users.ann: expected a number or keys with values, got a text"),
    ("tags: {a: 1}", "15: tags.a: expected a text, got a whole number; put it in quotes"),
    ("from: 2d", "11: from: is not before `to`, or before the end"),
    ("duration: {}", "15: duration: a distribution has exactly one of choice"),
    ("duration: {uniform: [2h, 1h]}", "25: duration.uniform: the first of the two is the larger"),
    ("duration: {uniform: 2h}", "25: duration.uniform: expected a list, got a text"),
    ("duration: {lognormal: {sigma: 1}}", "27: duration.lognormal: needs either median or mean"),
    ("duration: {table: [[0, 1], [0.9, 2]]}", "23: duration.table: the shares must rise"),
    ("duration: {exponential: 1h, min: 2h, max: 1h}", "47: duration.max: is below min"),
]
"""Another key of the job, in line 11, and what is said of it after its column."""
WRONG = [
    ("length: 1d", "length: long", "2:9: length: 'long' is no time; write seconds, or like 90s"),
    ("length: 1d", "length: 0", "2:9: length: must be above 0"),
    ("length: 1d\n", "", "1:1: needs the key length"),
    ("length: 1d", "length: 1d\nlength: 2d", "3:1: length: this key is there twice"),
    ("length: 1d", "lenght: 1d", "2:1: lenght: unknown key, did you mean `length`?"),
    ("length: 1d", "length: 1d\nseed: -1", "3:7: seed: expected a whole number >= 0"),
    ("nodes: 2", "nodes: 010", "4:14: cluster.a.nodes: '010' means 8 in YAML; write that"),
    ("nodes: 2", "nodes: many", "4:14: cluster.a.nodes: expected a whole number, got a text"),
    ("nodes: 2", "nods: 2", "4:7: cluster.a.nods: unknown key, did you mean `nodes`?"),
    (
        "vcore: 4}}\nq",
        "vcore: 0.5}}\nq",
        "4:31: cluster.a.size.vcore: invalid quantity '0.5': there is no decimal point, write 500m",
    ),
    ("vcore: 4}}\nq", "vcore: 4, gpu-milli: 1000}}\nq", "4:45: cluster.a.size.gpu-milli: counts devices"),
    ("  - name: q", "  - nam: q", "6:5: root.queues[0]: unknown key 'nam', did you mean 'name'"),
    ("max: {vcore: 4}", "max: {vcore: x}", "7:30: root.q: resources.max.vcore: invalid quantity 'x'"),
    ("rate: 5/h", "rate: 5", "10:11: arrivals.job.rate: '5' is no rate; write a number per s, m, h, d or w"),
    (
        "rate: 5/h",
        "rate: {mean: 5/h, day: [1, 2, 3, 4, 5, 6, 7]}",
        "10:28: arrivals.job.rate.day: 7 parts do not divide a day evenly",
    ),
    ("rate: 5/h", "rate: {steps: {1h: 5/h}}", "10:19: arrivals.job.rate.steps: must begin with 0s"),
    ("rate: 5/h", "pods: 1", "10:5: arrivals.job: needs a rate or bursts"),
    ("size: {vcore: 1}", "priority: 1", "10:5: arrivals.job: needs either size or sizes"),
    (
        "size: {vcore: 1}",
        "size: {vcore: [1]}",
        "11:19: arrivals.job.size.vcore: expected a whole number or a number or a text or keys with values, got a list",
    ),
    ("at: 1h", "at: 25h", "13:10: events[0].at: is not before the end of the scenario"),
    ("fail: a", "fail: b", "13:20: events[0].fail: there is no such pool; known are a"),
    ("fail: a", "fial: a", "13:14: events[0].fial: unknown key, did you mean `fail`?"),
    ("fail: a", "fail: a, drain: a", "13:5: events[0]: an event has exactly one of leave"),
    ("fail: a", "nodes: 1", "13:5: events[0]: an event has exactly one of leave"),
    ("fail: a", "burst: job", "13:5: events[0]: needs the key apps"),
    ("fail: a", "burst: jib, apps: 2", "13:21: events[0].burst: there is no such class; known are job"),
    ("fail: a", "shrink: a, for: 1h", "13:30: events[0].for: is not for shrink; for it are at, every, nodes"),
    ("fail: a", "configure: none.yaml", "13:25: events[0].configure: none.yaml: No such file"),
    ("fail: a", "fail: a, every: 0.1s", "13:30: events[0].every: is at least 1 s"),
    ("  - {at: 1h, fail: a}", "  - [1h]", "13:5: events[0]: expected keys with values, got a list"),
    ("scenario: good", "szenario: good", "1:1: this is no scenario: it begins with `scenario:`"),
    ("scenario: good", "scenario: *x", "1:11: no anchor 'x' stands before this alias"),
    (
        "length: 1d",
        "length: 1d\nsettings: {reservation.delay: soon}",
        "3:31: settings.reservation.delay: 'soon': must be a duration",
    ),
    *(
        ("rate: 5/h", f"rate: 5/h\n    {key}", "11:{}: arrivals.job.{}".format(*said.split(": ", 1)))
        for key, said in WRONG_KEYS
    ),
]


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=[f"{row[1]}"[:60] for row in WRONG])
def test_a_mistake_has_a_line_and_a_column(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError, match=re.escape(f"s.yaml:{said}")):
        Scenario(GOOD.replace(old, new, 1), file="s.yaml")


def test_the_unchanged_text_is_right() -> None:
    assert Scenario(GOOD).length_s == 86_400


def test_a_queue_is_called_as_it_is_written() -> None:
    """YAML would read `no` as false, and the reader of queue configurations reads it as a name."""
    config = Scenario(GOOD.replace("name: q", "name: no")).workload().config
    assert config is not None
    (root,) = as_data(config)["partitions"][0]["queues"]
    assert [queue["name"] for queue in root["queues"]] == ["no"]


def told(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        Scenario(text, file="s.yaml")
    return [str(problem) for problem in caught.value.problems]


def path_of(said: str) -> str:
    return said.split(": ")[1]


def test_two_mistakes_are_told_at_once_whatever_they_are() -> None:
    """What may be due to the other one is left out: where a part is faulty, complaints about the whole, and about the end."""
    unreadable = ("this is no scenario", "no anchor")
    rows = [row for row in WRONG if not any(words in row[2] for words in unreadable)]
    pairs = 0
    for (old, new, said), (other_old, other_new, other_said) in combinations(rows, 2):
        one, other = (words.split(": ")[1] if words.count(": ") > 1 else "" for words in (said, other_said))
        text = GOOD.replace(old, new, 1)
        if {one, other} & {"length", "lenght"} and "the end" in said + other_said:
            continue
        if one.startswith(other) or other.startswith(one) or other_old not in text:
            continue
        text = text.replace(other_old, other_new, 1)
        if new not in text:
            continue
        found = told(text)
        pairs += 1
        for wanted in (said, other_said):
            words = wanted.partition(": ")[2]
            assert any(words in each for each in found), (words, found)
    assert pairs > 500


def test_mistakes_of_all_kinds_in_one_text_are_told_at_once_and_nothing_else() -> None:
    """Unreadable values, keys that are unknown, missing or of a wrong type, and texts that mean nothing, in each part."""
    text = """\
scenario: all of it
length: long
cluster:
  a: {nodes: 010, size: {vcore: 0.5, memory: 1GB}, devices: some}
  b: {size: {vcore: 4}, labels: {zone: 1}}
arrivals:
  job:
    rate: {mean: often, day: [1, x], week: [0, 0, 0, 0, 0, 0, 0]}
    bursts: {apps: 0, at: [1h, soon]}
    from: 2d
    size: {vcore: {uniform: [x, y], min: z}, memory: 4Gb}
    devices: 1.5
    duration: {lognormal: {sigma: wide}}
    gang: atom
    style: Hard
    priority: [1]
  other:
    pods: 2
    pods: 3
events:
  - {fail: a, nodes: 0}
  - {at: 1h, drain: c, every: 0.1s, apps: 1}
  - {at: later, configure: [{name: q, resources: {max: {vcore: x}}}]}
"""
    assert [each.partition(": ")[0] + ": " + path_of(each) for each in told(text)] == [
        "s.yaml:2:9: length",
        "s.yaml:4:14: cluster.a.nodes",
        "s.yaml:4:33: cluster.a.size.vcore",
        "s.yaml:4:46: cluster.a.size.memory",
        "s.yaml:4:61: cluster.a.devices",
        "s.yaml:5:6: cluster.b",
        "s.yaml:5:40: cluster.b.labels.zone",
        "s.yaml:8:18: arrivals.job.rate.mean",
        "s.yaml:8:34: arrivals.job.rate.day[1]",
        "s.yaml:8:44: arrivals.job.rate.week",
        "s.yaml:9:20: arrivals.job.bursts.apps",
        "s.yaml:9:32: arrivals.job.bursts.at[1]",
        "s.yaml:11:30: arrivals.job.size.vcore.uniform[0]",
        "s.yaml:11:33: arrivals.job.size.vcore.uniform[1]",
        "s.yaml:11:42: arrivals.job.size.vcore.min",
        "s.yaml:11:54: arrivals.job.size.memory",
        "s.yaml:12:14: arrivals.job.devices",
        "s.yaml:13:35: arrivals.job.duration.lognormal.sigma",
        "s.yaml:14:11: arrivals.job.gang",
        "s.yaml:16:15: arrivals.job.priority",
        "s.yaml:18:5: arrivals.other",
        "s.yaml:18:5: arrivals.other",
        "s.yaml:19:5: arrivals.other.pods",
        "s.yaml:21:5: events[0]",
        "s.yaml:21:22: events[0].nodes",
        "s.yaml:22:21: events[1].drain",
        "s.yaml:22:31: events[1].every",
        "s.yaml:22:43: events[1].apps",
        "s.yaml:23:10: events[2].at",
        "s.yaml:23:64: root.q",
    ]


# -- what is warned of ---------------------------------------------------------------------------------------

LABELLED = """\
scenario: labelled
length: 1d
cluster:
  a: {nodes: 2, size: {vcore: 4}, labels: {gpu: h100, zone: east}}
  b: {nodes: 2, size: {vcore: 4}, labels: {gpu: l4}, absent: true}
queues:
  - name: q
  - name: people
    queues: [{name: ann}]
arrivals:
  job:
    rate: 5/h
    queue: root.q
    size: {vcore: 1}
    nodes: {gpu: [h100, l4]}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", ""),
        ("[h100, l4]", "h1000", "15:18: arrivals.job.nodes.gpu: no node has the label gpu with the value 'h1000'; known are h100, l4"),
        ("[h100, l4]", "[l4, t4]", "15:23: arrivals.job.nodes.gpu[1]: no node has the label gpu with the value 't4'; known are h100, l4"),
        ("gpu: [h100, l4]", "gpus: l4", "15:19: arrivals.job.nodes.gpus: no node has the label gpus; known are gpu, zone"),
        ("gpu: [h100, l4]", "gpu: l4, zone: east", "15:12: arrivals.job.nodes: no pool of the cluster has all of these labels"),
        ("gpu: [h100, l4]", "si/hostname: a-0001", ""),
        ("    nodes: {gpu: [h100, l4]}", "    apart: {rack: job}", "arrivals.job.apart.rack: no node has the label rack; known are gpu, si/hostname, zone"),
        ("root.q", "root.p", "13:12: arrivals.job.queue: no queue takes an application by job that asks for root.p, and no placement rule makes one; queues are root.q, root.people.ann"),
        ("root.q", "root.people", "13:12: arrivals.job.queue: no queue takes an application by job that asks for root.people,"),
        ("root.q", "root.Q", ""),
        ("    queue: root.q\n", "", "12:5: arrivals.job: no queue takes an application by job that asks without a queue,"),
        ("root.q", "root.people.{user}\n    users: [ann]", ""),
        ("root.q", "root.people.{user}\n    users: [ann, bob, eve]", "by bob, nor by 1 other user that asks for root.people.bob,"),
    ],
)  # fmt: skip
def test_what_nothing_matches_is_warned_of(old: str, new: str, said: str) -> None:
    assert old in LABELLED
    scenario = Scenario(LABELLED.replace(old, new, 1), file="s.yaml")
    warnings = [str(one) for one in scenario.warnings]
    assert len(warnings) == bool(said)
    assert said in "".join(warnings)
    assert scenario.outline().warnings == warnings


def test_queues_that_a_rule_makes_or_refuses_are_those_of_the_configuration() -> None:
    rules = {"partitions": [{"name": "default", "placementrules": [{"name": "user", "create": True}], "queues": [{"name": "root", "submitacl": "*"}]}]}  # fmt: skip
    assert Scenario({**BASE, "queues": rules}).warnings == ()
    rules["partitions"][0]["queues"] = [{"name": "root", "submitacl": "ann"}]
    (warning,) = Scenario({**BASE, "queues": rules}).warnings
    assert warning.path == "arrivals.job.queue"
    later = Scenario({**BASE, "queues": rules, "events": [{"at": "2h", "configure": [{"name": "q"}]}]})
    assert later.warnings == ()


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_the_examples_have_no_warning(name: str) -> None:
    assert Scenario.read(EXAMPLES / name).warnings == ()


def test_mappings_of_a_program_are_refused_with_their_path() -> None:
    with pytest.raises(ScenarioError, match=r"^<scenario>: cluster.a.nodes: expected a whole number, got a text$"):
        Scenario({**BASE, "cluster": {"a": {"nodes": "x", "size": {"vcore": 1}}}})
    with pytest.raises(ScenarioError, match=r"^<scenario>: queues: root.q: resources.max.vcore: invalid quantity"):
        Scenario({**BASE, "queues": [{"name": "q", "resources": {"max": {"vcore": "x"}}}]})


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"seed": -1}, "seed: -1 is not possible: expected `int` >= 0"),
        ({"load": 0}, "load: 0 is not possible: expected `float` > 0.0"),
        ({"load": 2000}, "load: 2000 is not possible"),
    ],
)
def test_a_seed_or_load_out_of_range_is_refused(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("`", "`?")):
        Scenario(BASE).workload(**choices)
    with pytest.raises(WorkloadError, match=said.split(":", maxsplit=1)[0]):
        load_workload(Scenario(BASE), **choices)


def test_too_many_asks_are_refused_before_the_simulation_or_while_lines_are_made() -> None:
    with pytest.raises(WorkloadError, match="about 144 asks, and no more than 100"):
        Scenario(BASE).workload(asks_max=100)
    heavy = {**BASE["arrivals"]["job"], "pods": {"choice": {"1": 20_000, "100000": 1}}}
    scenario = Scenario({**BASE, "length": "60d", "arrivals": {"job": heavy}})
    seeds = (scenario.workload(seed=seed, asks_max=10_000) for seed in range(20))
    with pytest.raises(WorkloadError, match="more asks, and no more than 10,000"):
        list(chain.from_iterable(workload.lines for workload in seeds))  # one draws the application with very many pods


def test_what_is_no_scenario_takes_no_seed(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="a seed and a load are for a scenario"):
        load_workload([{"t": "meta", "version": 2}], seed=1)
    binary = tmp_path / "a.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match=r"a\.yaml:1:1: not a text in UTF-8"):
        load_workload(binary)


@examples(200)
@given(st.text(alphabet="abc:{}[]-,*&<0123456789 \n\"'#|", max_size=80))
def test_any_text_is_refused_with_places(text: str) -> None:
    """The text names no cluster, or spoils what stands before it, so none of these can be simulated."""
    with pytest.raises(ScenarioError) as caught:
        Scenario("scenario: x\n" + text)
    assert all(problem.line >= 1 for problem in caught.value.problems)


# -- the configuration, and the schema -------------------------------------------------------------------------


def test_a_configuration_can_be_a_file_a_configmap_a_text_or_a_list(tmp_path: Path) -> None:
    queues = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:\n          - name: q\n"
    (tmp_path / "queues.yaml").write_text(queues)
    inside = "".join(f"    {line}\n" for line in queues.splitlines())
    (tmp_path / "cm.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  queues.yaml: |\n{inside}")
    rest = {name: value for name, value in BASE.items() if name != "queues"}
    digests = set()
    for given_queues in ("queues.yaml", "cm.yaml", BASE["queues"]):
        digests.add(licorne.simulate(Scenario({**rest, "queues": given_queues}, folder=tmp_path)).digest)
    for block in ("queues:\n" + inside, "queues:\n  - name: q\n", "queues: [{name: q}]\n", "queues:\n- name: q\n"):
        head = "scenario: base\nlength: 1d\n" + block
        tail = "cluster:\n  a: {nodes: 3, size: {vcore: 8}}\n  b: {nodes: 2, size: {vcore: 4}, absent: true}\narrivals:\n  job: {rate: 6/h, queue: root.q, size: {vcore: 1}, duration: 1h}\n"
        digests.add(licorne.simulate(Scenario(head + tail)).digest)
    assert len(digests) == 1


def test_the_schema_has_every_key_of_the_document_and_takes_the_examples() -> None:
    """msgspec makes the schema of the classes that it converts by; here it is compared with documents that are right."""
    made = schema()
    kinds = made["$defs"]
    assert set(kinds["Event"]["properties"]) >= {"at", "for", "leave", "configure"}
    assert kinds["Document"]["additionalProperties"] is False
    jsonschema = pytest.importorskip("jsonschema", reason="a validator is no part of licorne")
    for path in EXAMPLES.glob("*.yaml"):
        jsonschema.validate(compose_text(path.read_text(), str(path))[0], made)


# -- the examples ----------------------------------------------------------------------------------------------


def example(name: str) -> Result:
    return licorne.simulate(EXAMPLES / f"{name}.yaml")


def test_there_are_eight_examples_that_say_what_they_show() -> None:
    paths = sorted(EXAMPLES.glob("*.yaml"))
    page = (EXAMPLES.parents[1] / "docs/use/scenarios.md").read_text()
    assert len(paths) == 8
    for path in paths:
        assert path.read_text().startswith("# "), path
        assert f"licorne simulate examples/scenarios/{path.name}" in page, path


def waits(found: Result, queue: str) -> tuple[float, float]:
    row = next(row for row in found.waiting_times if row.queue == queue)
    return row.p50_s, row.longest_s


def test_the_noisy_tenant_waits_and_the_other_does_not() -> None:
    found = example("noisy-tenant")
    assert waits(found, "root.prod")[0] < 300
    assert waits(found, "root.noisy")[0] > 3 * HOUR_S


def test_of_a_hundred_teams_the_one_that_sends_most_waits_longest() -> None:
    found = example("hundred-teams")
    rows = {row.queue: row for row in found.waiting_times if row.placed >= 30 and row.queue.startswith("root.teams")}
    assert max(rows.values(), key=lambda row: row.placed).queue == "root.teams.team-0"
    assert max(rows.values(), key=lambda row: row.mean_s).queue == "root.teams.team-0"


def test_when_a_pool_leaves_its_pods_are_created_again() -> None:
    found = example("pool-leaves")
    assert found.resubmitted > found.preempted > 0
    assert found.never_placed == 0
    assert waits(found, "root.services")[1] < waits(found, "root.batch")[1]


def test_a_halved_queue_gives_back_what_is_over_its_max() -> None:
    found = example("halved-queue")
    assert [row.kind for row in found.evictions] == ["quota-change"]
    usage = {(row.queue, row.resource): row for row in found.queues}
    assert (usage["root.research", "vcore"].peak, usage["root.research", "vcore"].max) == (128_000, 64_000)


def test_gangs_start_as_a_whole_and_shares_are_of_single_devices() -> None:
    found = example("gpu-training")
    (gangs,) = found.gangs
    assert (gangs.kind, gangs.gangs, gangs.started) == ("atomic", 97, 97)
    nodes = {pod.node.rpartition("-")[0] for pod in found.pods if pod.node is not None and pod.queue == "root.training"}
    assert nodes == {"training"}
    assert {pod.outcome for pod in found.pods} == {"ended"}


def test_production_takes_devices_back_and_gangs_still_start() -> None:
    found = example("shared-gpus")
    assert [(gangs.kind, gangs.gangs, gangs.started) for gangs in found.gangs] == [("atomic", 49, 49)]
    assert {(row.kind, row.wanted_by) for row in found.evictions} == {("guaranteed", "root.production")}
    assert waits(found, "root.production")[0] < 120
    assert found.never_placed == 0


def test_a_nightly_batch_gives_way_to_the_online_service() -> None:
    found = example("batch-burst")
    (row,) = found.evictions
    assert (row.kind, row.queue, row.wanted_by) == ("guaranteed", "root.batch", "root.online")
    assert waits(found, "root.online")[0] == 0


def test_replicas_keep_apart_and_spread_over_the_zones_that_are_there() -> None:
    zones: dict[str, list[tuple[str, str]]] = {}
    for pod in example("three-zones").pods:
        if pod.application.startswith("front") and pod.node and pod.arrival_s < 2 * 3600:
            zones.setdefault(pod.application, []).append((pod.node[0], pod.node))
    assert len(zones) > 1
    for placed in zones.values():
        assert sorted(zone for zone, _ in placed) == ["a", "a", "b", "b", "c", "c"]
        assert len({node for _, node in placed}) == 6


def test_batch_prefers_spot_nodes_and_others_use_them_last() -> None:
    on_spot = {
        pod.application.partition("-")[0] for pod in example("three-zones").pods if (pod.node or "").startswith("spot")
    }
    assert on_spot == {"batch"}
