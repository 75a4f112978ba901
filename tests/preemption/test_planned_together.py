"""Asks that evict together and have terms of pods: all that something was evicted for can then run, and no term is broken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from gangs_atomic.helpers import tags as gang_tags
from gangs_atomic.helpers import task_groups
from licorne.si.messages import Allocation, NewAllocation
from preemption.test_examples import DELAY, confirm, victims
from preemption.test_openings import Pod, World, asks, passes, pods

Member = tuple[Pod, int]  # with its size


class Books:
    """What runs where, by the messages of the scheduler; what is placed must pass beside it."""

    def __init__(self, world: World) -> None:
        self.world, self.bench = world, world.bench
        assert self.bench.run() == ""
        self.asked: dict[str, Member] = {}
        self.runs = {key: (pod, "") for key, (pod, _) in world.pods.items()}
        for alloc in self.bench.partition.applications["x"].allocations.values():
            self.runs[alloc.key] = world.pods[alloc.key][0], alloc.node.id if alloc.node else ""
        self.read = len(self.bench.outputs)

    def ask(self, app: str, members: list[Member], how: str) -> list[str]:
        """Ask for pods in the queue with the guarantee, together unless `how` is `alone`; return what is evicted for them."""
        tags = {} if how == "alone" else gang_tags(task_groups(w=len(members)), how.removeprefix("placeholders"))
        self.bench.app(app, "root.b", tags=tags)
        for number, (pod, size) in enumerate(members):
            key = f"{app}{number}"
            self.asked[key] = pod, size
            self.bench.send(
                Allocation(
                    key=key,
                    application_id=app,
                    resource={"vcore": size},
                    priority=2,
                    tags=pod.tags(),
                    task_group="w" if tags else "",
                    placeholder=how == "placeholders",
                    allow_preempt_other=True,
                )
            )
        gone = victims(self.bench, after=DELAY)
        self.check()
        return gone

    def end(self, key: str) -> None:
        """Let a victim end."""
        confirm(self.bench, key)
        del self.runs[key]
        self.bench.run()
        self.check()

    def check(self) -> None:
        """Enter what was placed since the last check, each in its turn."""
        for one in self.bench.outputs[self.read :]:
            if isinstance(one, NewAllocation):
                pod, _ = self.asked.pop(one.key)
                assert passes(pod, one.node_id, self.world.zones, self.runs.values()), one
                self.runs[one.key] = pod, one.node_id
        self.read = len(self.bench.outputs)


members = st.lists(st.tuples(asks, st.integers(1, 4)), min_size=2, max_size=3)


@examples(200)
@given(
    st.lists(st.sampled_from(("a", "b", "")), min_size=1, max_size=4),
    st.lists(st.tuples(pods, st.integers(0, 3), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=7),
    st.none() | st.tuples(asks, st.integers(1, 4)),
    members,
    st.sampled_from(("atomic", "placeholders")),
    st.randoms(use_true_random=False),
)
def test_what_something_is_evicted_for_is_placed(
    zones: list[str],
    running: list[tuple[Pod, int, int, int]],
    first: Member | None,
    gang: list[Member],
    how: str,
    random: "random.Random",
) -> None:
    books = Books(World(zones, running, within=False))
    gone = books.ask("k", [first], "alone") if first else []
    claiming = [ask.key for ask in books.bench.partition.claims.by_ask]
    mine = books.ask("g", gang, how)
    if mine:
        claiming += [f"g{number}" for number in range(len(gang))]
    gone += mine
    random.shuffle(gone)
    for key in gone:
        books.end(key)
    assert not [key for key in claiming if key in books.asked], [r.outcome for r in books.bench.partition.evictions]
