"""Points run elsewhere, with files that came along, as they run here: the same outcomes, and messages that name the same files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from licorne.lab.sweep import EngineError, Outcome, Point, Sweep, run_point
from licorne.lab.sweep.inputs import KEPT, Bundle, Unpacked, pack, pack_policy, run_unpacked
from licorne.lab.sweep.plan import OWN, Keys

ROOT = Path(__file__).resolve().parents[2]
MINE = (
    "from licorne import Policy\n\n\nclass Last(Policy):\n    def node_key(self, pod, node):\n        return node.id\n"
)


@pytest.fixture(params=["absolute", "relative", "beside"])
def examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the examples are named: by their whole path, from the root of the repository, or from their own folder."""
    monkeypatch.chdir(ROOT / "examples/gpu-holiday" if request.param == "beside" else ROOT)
    return {"absolute": f"{ROOT}/examples/gpu-holiday/", "relative": "examples/gpu-holiday/", "beside": ""}[
        request.param
    ]


@pytest.fixture
def unpacked() -> Iterator[Unpacked]:
    made = Unpacked()
    yield made
    made.close()


def elsewhere(point: Point, unpacked: Unpacked) -> Outcome:
    """Run a point as a worker does: the names that it has been given lead nowhere."""
    bundles = {"workload": pack(point.workload)}
    if point.configuration != OWN:
        bundles["configuration"] = pack(point.configuration)
    if point.policy != OWN and (policy := pack_policy(point.policy)) is not None:
        bundles["policy"] = policy
    digest = Keys().digest_of_policy(point) if point.policy != OWN else ""
    return run_unpacked(point, run_point, bundles, digest, unpacked.path_of)


def test_outcomes_and_messages_are_the_same(examples: str, unpacked: Unpacked, tmp_path: Path) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(MINE)
    sweep = Sweep(
        workloads=(f"{examples}workload.jsonl",),
        configurations=(OWN, f"{examples}no-preemption.yaml"),
        policies=(OWN, f"{policy}:Last", f"{policy}:Missing", "no.such.module:Last"),
        seeds=(None, 1),
    )
    for point in sweep.points():
        here = run_point(point)
        assert elsewhere(point, unpacked) == here
        assert point.seed is None or point.workload in here.error


def test_files_that_a_scenario_names_and_folders_come_along(unpacked: Unpacked, tmp_path: Path) -> None:
    scenario = ROOT / "examples/scenarios/pool-leaves.yaml"
    text = (ROOT / "examples/scenarios/pool-leaves.yaml").read_text(encoding="utf-8")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "scenario.yaml").write_text(text)
    for path in (scenario, tmp_path / "deep" / "scenario.yaml"):
        point = Point(workload=str(path), load=0.1, seed=1)
        assert elsewhere(point, unpacked) == run_point(point)
    (tmp_path / "deep" / "more").mkdir()
    (tmp_path / "deep" / "more" / "file").write_bytes(b"1")
    there = unpacked.path_of(pack(str(tmp_path / "deep")))
    assert there.name == "deep"


def test_a_module_comes_along_and_an_installed_package_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_package").mkdir()
    (tmp_path / "mine_package" / "__init__.py").write_text("")
    (tmp_path / "mine_package" / "order.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    packed = pack_policy("mine_package.order:Last")
    assert packed is not None
    inside = sorted(name.removeprefix(packed.inside) for name, _ in packed.files)
    assert inside == ["/mine_package/__init__.py", "/mine_package/order.py"]
    assert pack_policy("pytest:Last") is None
    assert pack_policy("entry-point") is None


def test_a_worker_with_other_code_of_a_policy_runs_nothing(unpacked: Unpacked, tmp_path: Path) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(MINE)
    point = Point(workload=str(ROOT / "examples/gpu-holiday/workload.jsonl"), policy=f"{policy}:Last")
    inputs = {"workload": pack(point.workload), "policy": Bundle(str(policy), "mine.py", (("mine.py", b"#"),), "1")}
    digest = Keys().digest_of_policy(point)
    with pytest.raises(EngineError, match=r"a worker lacks what this machine has: .* no Last"):
        run_unpacked(point, run_point, inputs, digest, unpacked.path_of)
    inputs["policy"] = inputs["policy"]._replace(files=(("mine.py", MINE.encode() + b"#"),), digest="2")
    with pytest.raises(EngineError, match=rf"another version of its code .* here {digest[:12]}"):
        run_unpacked(point, run_point, inputs, digest, unpacked.path_of)


def test_a_worker_keeps_its_last_inputs_alone(unpacked: Unpacked) -> None:
    bundles = [Bundle("a", "a", (("a", b"%d" % number),), str(number)) for number in range(KEPT + 2)]
    paths = [unpacked.path_of(bundle) for bundle in bundles]
    assert [path.exists() for path in paths] == [False, False] + [True] * KEPT
    assert unpacked.path_of(bundles[0]).read_bytes() == b"0"
    assert str(paths[0].parent) not in sys.path
