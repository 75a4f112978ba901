"""Checkpoints change nothing: a scheduler that is restored in between decides as one that never was.

The state machine (`machine`) has the same law with everything that it does: gangs, preemption, limits, several resource
managers, both dialects (`machine.driver`). Here are long histories, planted faults, and files of all sorts.
"""

from __future__ import annotations

import contextlib
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seeds
from checkpoint import faults
from checkpoint.histories import busy, compare, replace
from common.examples import examples
from common.plain_python import printed_by
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.core.checkpoint import CheckpointError
from licorne.core.checkpoint.columns import EQUAL_MAX
from licorne.core.scheduling.host_orders import HostOrders
from licorne.si import v19
from rings import first_in_gate


@pytest.mark.parametrize("first_interface", [False, pytest.param(True, marks=pytest.mark.gate)])
def test_a_restored_scheduler_goes_on_as_before(first_interface: bool) -> None:
    for seed in seeds.some_seeds("LICORNE_CHECKPOINT_SEED", 1):
        sys.stdout.write(f"to run this again, first: LICORNE_CHECKPOINT_SEED={seed}\n")
        assert compare(300, seed, first_interface=first_interface) > (0 if seeds.RANDOM else 5)


@examples(4)
@given(seed=st.integers(0, 1 << 30), first_interface=st.booleans())
def test_a_scheduler_may_be_restored_at_each_step(seed: int, first_interface: bool) -> None:
    compare(20, seed, first_interface=first_interface, often=1.0)


@pytest.mark.parametrize("fault", first_in_gate(faults.FAULTS))
def test_an_attribute_that_is_not_kept_is_noticed(fault: str) -> None:
    assert printed_by("checkpoint.faults", fault).startswith(f"{fault}: caught")


@pytest.mark.gate
def test_a_sound_checkpoint_is_no_fault() -> None:
    assert printed_by("checkpoint.faults", faults.SOUND) == f"{faults.SOUND}: not caught\n"


def test_a_checkpoint_leaves_the_scheduler_as_it_is() -> None:
    history = busy()
    assert history.api.checkpoint() == history.api.checkpoint()


def test_an_empty_scheduler_has_a_checkpoint() -> None:
    api = SchedulerAPI()
    api.restore_checkpoint(SchedulerAPI().checkpoint())
    assert api.cluster.managers == {}


def test_time_goes_on_from_where_it_was() -> None:
    history = busy(50)
    replace(history)
    assert history.api.cluster.now == history.now


class Yes(ResourceManagerCallback):
    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        return None


def test_what_the_host_brings_must_fit() -> None:
    data = busy(20).api.checkpoint()
    with pytest.raises(ValueError, match="must answer the predicates"):
        SchedulerAPI().restore_checkpoint(data)
    with pytest.raises(ValueError, match="callback"):
        SchedulerAPI().restore_checkpoint(data, {"rm": Yes})  # type: ignore[dict-item]
    used = SchedulerAPI()
    used.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), Yes())
    with pytest.raises(ValueError, match="only a new scheduler"):
        used.restore_checkpoint(data, {"rm": Yes()})


def test_a_callback_cannot_take_one() -> None:
    class Curious(ResourceManagerCallback):
        def update_node(self, response: v19.NodeResponse) -> None:
            api.checkpoint()

    api = SchedulerAPI()
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), Curious())
    node = v19.NodeInfo(node_id="n", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 1})
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[node]))
    assert "from within a callback" in "".join(api.callback_errors) or api.callback_errors


def test_a_watcher_is_told_of_restored_partitions() -> None:
    seen = []
    api = SchedulerAPI()
    api.cluster.watcher = lambda partition: seen.append(partition.name)
    api.restore_checkpoint(busy(5).api.checkpoint(), {"rm": Yes()})
    assert seen == ["default"]


def test_orders_of_the_host_are_those_of_the_new_scheduler() -> None:
    api = SchedulerAPI()
    api.cluster.orders = HostOrders(queue_key=lambda queue: queue.path)
    api.restore_checkpoint(busy(5).api.checkpoint(), {"rm": Yes()})
    assert api.cluster.orders is not None
    assert api.cluster.partition("rm").descent.orders is not None


# -- files of all sorts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "damaged"),
        (b"licorne", "damaged"),
        (b"\x93\xa1x\x01\xa1y", "no checkpoint of licorne"),
        (b"\x93\xb2licorne checkpoint\x63\xa59.9.9", "format 99, of licorne 9.9.9: this is licorne"),
        (b"\x93\xb2licorne checkpoint\x01\xa59.9.9", "damaged"),
    ],
)
def test_other_bytes_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        SchedulerAPI().restore_checkpoint(data)


def test_a_truncated_checkpoint_is_refused() -> None:
    data = busy(20).api.checkpoint()
    for length in range(0, len(data), 97):
        with pytest.raises(CheckpointError):
            SchedulerAPI().restore_checkpoint(data[:length], {"rm": Yes()})


def test_a_checkpoint_with_bytes_that_are_no_text_is_refused() -> None:
    data = busy(20).api.checkpoint()
    for at in (data.index(b"backoff_until"), data.index(b"root"), data.index(b"Tracker")):
        with pytest.raises(CheckpointError, match="damaged: 'utf-8'"):
            SchedulerAPI().restore_checkpoint(data[:at] + b"\xff" + data[at + 1 :], {"rm": Yes()})


def test_a_checkpoint_with_any_other_byte_is_restored_or_refused() -> None:
    data = busy(20).api.checkpoint()
    for at in range(0, len(data), len(data) // 80):
        with contextlib.suppress(CheckpointError):
            SchedulerAPI().restore_checkpoint(data[:at] + b"\xff" + data[at + 1 :], {"rm": Yes()})


def test_a_checkpoint_with_other_attributes_is_refused() -> None:
    data = busy(20).api.checkpoint().replace(b"backoff_until", b"backoff_later")
    with pytest.raises(CheckpointError, match=r"Application has other attributes in this licorne .*backoff_until"):
        SchedulerAPI().restore_checkpoint(data, {"rm": Yes()})


def test_a_checkpoint_with_another_class_is_refused() -> None:
    data = busy(20).api.checkpoint().replace(b"\xa7Tracker", b"\xa7Tracked")
    with pytest.raises(CheckpointError, match="this licorne has no Tracked"):
        SchedulerAPI().restore_checkpoint(data, {"rm": Yes()})


@pytest.mark.parametrize(
    ("count", "length", "words"), [(EQUAL_MAX + 1, 0, "more members than"), (1, EQUAL_MAX + 1, "equal values")]
)
def test_a_small_checkpoint_that_would_take_much_memory_is_refused(count: int, length: int, words: str) -> None:
    content = msgspec.msgpack.decode(busy(20).api.checkpoint())
    content[4].append("x" * (EQUAL_MAX // 10))  # compressed, this takes a few bytes
    content[5]["Vec"] = (
        count,
        {
            "fill": {"=": 0},
            "is_sum": {"=": True},
            "length": {"=": length},
            "amount": {"=": 0},
            "beyond": [[]] * 3,
            "beyonds": 0,
        },
    )
    with pytest.raises(CheckpointError, match=words):
        SchedulerAPI().restore_checkpoint(msgspec.msgpack.encode(content), {"rm": Yes()})
