"""What a reason says of an ask's future holds: `never` exactly where the end of everything else would not help."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import Bench, config, limit, parent

SELECTOR = {"licorne/node-constraints": '{"nodeSelector": {"kind": "gpu"}}'}


@st.composite
def benches(draw: st.DrawFn) -> Bench:
    """A few nodes, queues with and without a max, a user with a limit, and more asks than there is room for."""
    queues = [
        draw(st.sampled_from(["a", "a resources: {max: {vcore: 4m}}", "a maxapplications: 1"])),
        parent("p resources: {max: {vcore: 6m, memory: 3}}", "b"),
    ]
    bench = Bench(config(*queues, root=f"limits: [{limit('ann', vcore=5)}]"))
    for number in range(draw(st.integers(0, 3))):
        labels = draw(st.sampled_from([{}, {"label/kind": "gpu"}]))
        bench.node(f"n{number}", attributes=labels, vcore=draw(st.integers(1, 7)), memory=draw(st.integers(0, 4)))
    for number in range(draw(st.integers(1, 3))):
        app = f"app-{number}"
        bench.app(app, draw(st.sampled_from(["root.a", "root.p.b"])), draw(st.sampled_from(["ann", "bob"])))
        for ask in range(draw(st.integers(1, 4))):
            bench.ask(
                app,
                f"{app}-{ask}",
                vcore=draw(st.integers(1, 8)),
                memory=draw(st.integers(0, 4)),
                required=draw(st.sampled_from(["", "", "", "n0", "n9"])),
                tags=draw(st.sampled_from([{}, {}, SELECTOR])),
            )
        if draw(st.booleans()):
            bench.run(after=1)
    bench.run(after=1)
    return bench


@examples(200)
@given(benches(), st.data())
def test_an_ask_never_runs_exactly_if_it_would_not_run_alone(bench: Bench, data: st.DataObject) -> None:
    waiting = {key: (app, reasons) for key, app, reasons in bench.partition.waiting()}
    if not waiting:
        return
    key = data.draw(st.sampled_from(sorted(waiting)))
    app, reasons = waiting[key]
    for other in list(bench.partition.applications.values()):
        for name in [name for name in (*other.asks, *other.allocations) if name != key]:
            bench.release(other.id, name)
    for _ in range(3):
        bench.run(after=3600)
    runs = key in bench.application(app).allocations
    assert runs is not any(reason.never for reason in reasons), reasons
