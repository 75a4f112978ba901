"""How long answers of `licorne.answers` take about a large cluster: 5,000 nodes, half of 100,000 asks running.

The workload is case c with twice the demand that the nodes have room for, with a max on one queue and a limit of one user on
another, so that asks wait for each of these and for nodes. The pods of an application are alike, as a controller makes them,
or all differ. All have waited for a minute, so that what reserves a node has done so. Chains are of pending asks that are
drawn at random, with a fixed seed. Proofs are of the first, a middle and the last ask of three queues: one at its max, one
with the limit, and one that waits for nodes. They are asked of the scheduler itself, as by a process that follows.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Final, TypeVar

import msgspec

from bench.measure.boundary import (
    RM_ID,
    allocation_requests,
    application_request,
    ask_messages,
    node_request,
    registration,
)
from bench.worker import prepared
from bench.workloads.generate import Options, Size
from licorne import SchedulerAPI
from licorne.answers import Home, why
from licorne.answers.why import AskAnswer, Overview
from licorne.core.partition import Partition
from licorne.host.web.rest.state import full_state
from licorne.si.callback import ResourceManagerCallback
from licorne.sim.collector import quiet_collector
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from licorne.state.restored import Outputs, Restored

NODES: Final = 5_000
ASKS: Final = 100_000
CHAINS: Final = 300
AGE_NS: Final = 60 * 10**9
"""How long the asks have waited."""
DEMAND: Final = 2.0
SEED: Final = 1
CHAIN_P99_MS: Final = 20.0
PROOF_S: Final = 2.0
LIMIT_S: Final = 30.0
"""What is aimed at, in the full size: a chain, and all trials of one question; these, and an overview, end after 30 s."""

T = TypeVar("T")


class Proof(msgspec.Struct, frozen=True):
    """One question with proofs: why the ask waits, how many trials were made, and how long all took."""

    reason: str
    place: str
    trials: int
    found: int
    complete: bool
    seconds: float


class Answers(msgspec.Struct, frozen=True):
    """What was measured. Times are in seconds unless the name says otherwise."""

    shape: str
    nodes: int
    running: int
    pending: int
    dump_bytes: int
    read_s: float
    restore_s: float
    overview_s: float
    unexplained: int
    chain_median_ms: float
    chain_p99_ms: float
    chain_most_ms: float
    proofs: tuple[Proof, ...]
    peak_mib: float

    @property
    def holds(self) -> bool:
        """Whether the goals are reached."""
        return self.chain_p99_ms <= CHAIN_P99_MS and all(
            proof.seconds <= PROOF_S and proof.complete for proof in self.proofs
        )


def measure(scale: float = 1.0, shape: str = "app", say: Callable[[str], object] = lambda _: None) -> Answers:
    """Measure answers about a cluster of `scale` times the full size; `shape` as in `Options`."""
    with quiet_collector():
        nodes, asks = max(5, round(NODES * scale)), max(100, round(ASKS * scale))
        say(f"a cluster of {nodes:,} nodes and {asks:,} asks ...")
        outputs = Outputs()
        api = busy(nodes, asks, shape, outputs)
        dump = full_state(api, AGE_NS)
        say(f"a dump of {len(dump) / 1e6:,.0f} MB ...")
        read_s, state = timed(lambda: read_dump(dump))
        restore_s, _ = timed(lambda: Home(restore(state)))
        text = api.cluster.managers[RM_ID].configuration.text
        home = Home(Restored(api, RM_ID, AGE_NS, text, (), outputs))
        partition = home.partition("default")
        end = time.monotonic() + LIMIT_S
        overview_s, overview = timed(lambda: why(home, more=lambda: time.monotonic() < end))
        assert isinstance(overview, Overview)
        keys = [key for app in partition.applications.values() for key in app.asks]
        drawn = random.Random(SEED).sample(keys, min(CHAINS, len(keys)))
        say("chains ...")
        chains = sorted(1000 * timed(lambda key=key: why(home, key, prove=False))[0] for key in drawn)  # type: ignore[misc]
        say("proofs ...")
        proofs = []
        for key, place in examples(partition):
            proofs.append(_proof(home, key, place))
            say(f"  {spoken(proofs[-1])}")
        return Answers(
            shape=shape,
            nodes=len(partition.nodes),
            running=sum(len(app.allocations) for app in partition.applications.values()),
            pending=len(keys),
            dump_bytes=len(dump),
            read_s=read_s,
            restore_s=restore_s,
            overview_s=overview_s,
            unexplained=overview.unexplained,
            chain_median_ms=median(chains),
            chain_p99_ms=chains[int(0.99 * (len(chains) - 1))],
            chain_most_ms=chains[-1],
            proofs=tuple(proofs),
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )


def busy(nodes: int, asks: int, shape: str, outputs: Outputs) -> SchedulerAPI:
    """Return a scheduler that is full, with about half of the asks pending, some of them under a max or a limit."""
    workload = prepared("c", Options(shape=shape, demand=DEMAND), Size(nodes, asks, max(10, asks // 1000), 10))
    config = workload.config or ""
    # Of what one queue of ten asks for, that is for each of its asks 2.1 vcore, about two fifths.
    max_vcore = asks // 12
    queue = f"          - name: q0\n            resources: {{max: {{vcore: {max_vcore}}}}}\n"
    limit = f"[{{limit: one, users: [user1], maxresources: {{vcore: {max_vcore}}}}}]"
    user = f"          - name: q1\n            limits: {limit}\n"
    for name, made in (("q0", queue), ("q1", user)):
        before, found, after = config.partition(f"          - name: {name}\n")
        assert found, "the generator writes its queues in another way"
        kept = after if name == "q1" else after.replace(_GUARANTEE, "", 1)
        config = before + made + kept
    workload.config = config
    api = SchedulerAPI(on_output=outputs)
    api.register_resource_manager(registration(workload), ResourceManagerCallback())
    api.update_node(node_request(workload))
    api.update_application(application_request(workload))
    for request in allocation_requests(ask_messages(workload.lines)):
        api.update_allocation(request)
    for now_ns in (0, AGE_NS // 2, AGE_NS):
        while api.schedule(now_ns=now_ns):
            pass
    return api


_GUARANTEE: Final = (
    '            resources:\n              guaranteed:\n                vcore: "100"\n                memory: "200Gi"\n'
)


def examples(partition: Partition) -> Iterator[tuple[str, str]]:
    """Yield the first, a middle and the last pending ask of three queues: one with a max, one with a limit, one with neither."""
    for path in ("root.q0", "root.q1", "root.q5"):
        queue = partition.tree.find(path)
        assert queue is not None
        asks = sorted((ask for app in queue.apps.values() for ask in app.asks.values()), key=lambda ask: ask.seq)
        for name, index in (("first", 0), ("middle", len(asks) // 2), ("last", -1)):
            if asks:
                yield asks[index].key, f"{name} of {path}"


def _proof(home: Home, key: str, place: str) -> Proof:
    end = time.monotonic() + LIMIT_S
    seconds, answer = timed(lambda: why(home, key, more=lambda: time.monotonic() < end))
    assert isinstance(answer, AskAnswer) and answer.chain is not None and answer.proposals is not None
    proposals = answer.proposals
    return Proof(
        reason=answer.chain.reasons[0].kind,
        place=place,
        trials=proposals.trials,
        found=len(proposals.found),
        complete=proposals.complete,
        seconds=seconds,
    )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return how many seconds some work took, and its result."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def lines(found: Answers) -> Iterator[str]:
    """Yield what was measured as text."""
    yield f"shape {found.shape}: {found.nodes:,} nodes, {found.running:,} running, {found.pending:,} pending; a dump of {found.dump_bytes / 1e6:,.0f} MB"
    left_out = f" without {found.unexplained:,} asks" if found.unexplained else ""
    yield f"read {found.read_s:.2f} s, restore {found.restore_s:.2f} s, overview {found.overview_s:.2f} s{left_out}"
    yield (
        f"chain: median {found.chain_median_ms:.1f} ms, p99 {found.chain_p99_ms:.1f} ms (goal {CHAIN_P99_MS:g}), "
        f"most {found.chain_most_ms:.1f} ms"
    )
    yield from map(spoken, found.proofs)
    yield f"peak memory {found.peak_mib:,.0f} MiB"


def spoken(proof: Proof) -> str:
    """Return the measurement of a question as text."""
    cut = "" if proof.complete else ", cut short"
    return (
        f"proofs, {proof.place:16} ({proof.reason}): {proof.seconds:6.2f} s (goal {PROOF_S:g}), "
        f"{proof.trials} trials, {proof.found} proposals{cut}"
    )


__all__ = ["Answers", "Proof", "busy", "examples", "lines", "measure", "timed"]
