"""The fast paths of asks in and allocations out give the same as the slow paths, for objects and for bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntEnum, StrEnum
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from common.examples import examples, scaled
from licorne.si import Translation, adapt_first, adapt_v19, first, messages, v19
from licorne.si._check import Fault, plain
from licorne.si.partitions import ShortPartitions, names_for, qualified_partition, short_partition
from licorne.si.reading import read_ends_v19
from licorne.si.wire import WireError, decode, encode
from si.soup import Soup, part, varint
from si.test_wire import built

EXAMPLES = int(os.environ.get("LICORNE_WIRE_EXAMPLES") or scaled(3000))

Read = Callable[[Any], Translation]
DIALECTS = [
    pytest.param(adapt_v19, v19.Allocation, id="1.9"),
    pytest.param(adapt_first, first.AllocationAsk, id="first"),
]


class Name(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


class Amounts(dict[str, int]):
    """A subclass."""


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, "", "ä", "\ud800", Name.A, b"x", 0, -1, 2**31, 2**63, -(2**63), True, 1.0, Number.ONE, [], (), {},
        {"a": 1}, {"a": True}, {"a": 2**63}, {"\udfff": 1}, {1: "a"}, {"a": "b"}, {"a": "\ud800"}, Amounts(a=1),
        v19.PreemptionPolicy(), v19.PreemptionPolicy(allow_preempt_self=True),
        v19.PreemptionPolicy(allow_preempt_other=1),  # type: ignore[arg-type]
        first.Priority(), first.Priority(priority_value=3), first.Priority(priority_class_name="c"),
        first.Priority(priority_class_name=""), first.Priority(priority_value=True),
        first.Priority(priority_value=1, priority_class_name="c"), object,
    ]
)  # fmt: skip


def request_of(ask: type[Any], asks: list[Any]) -> Any:
    if ask is v19.Allocation:
        return v19.AllocationRequest(rm_id="rm", allocations=asks)
    return first.UpdateRequest(rm_id="rm", asks=asks)


def by_object(adapter: ModuleType, request: Any) -> Translation:
    """The inputs that an adapter makes of a request."""
    if adapter is adapt_v19:
        return adapt_v19.inputs_from_allocation_request(request)
    return adapt_first.inputs_from_update_request(request)


def by_bytes(adapter: ModuleType, data: bytes) -> tuple[str, Translation]:
    if adapter is adapt_v19:
        return adapt_v19.ALLOCATIONS.at_once(data)
    return adapt_first.UPDATES.at_once(data)


def the_long_way(adapter: ModuleType, ask: type[Any], items: list[Any]) -> tuple[list[Any], list[str]]:
    """Inputs and reasons, each item by itself through `plain` and the reader of one."""
    read = adapter._ask_reader(ShortPartitions("rm"))
    inputs, reasons = [], []
    for item in items:
        try:
            inputs.append(read(*astuple(plain(item, ask))))
        except Fault as fault:
            reasons.append(str(fault.inside("?")).partition("?")[2])
    return inputs, reasons


@pytest.mark.parametrize(("adapter", "ask"), DIALECTS)
def test_objects(adapter: ModuleType, ask: type[Any]) -> None:
    fields = ask.__struct_fields__
    odd = st.tuples(built(ask), st.dictionaries(st.sampled_from(fields), ODD, max_size=2)).map(
        lambda drawn: ask(**{**{name: getattr(drawn[0], name) for name in fields}, **drawn[1]})
    )

    @examples(300)
    @given(st.lists(odd | ODD, max_size=4))
    def check(items: list[Any]) -> None:
        result = by_object(adapter, request_of(ask, items))
        inputs, reasons = the_long_way(adapter, ask, items)
        assert result.inputs == inputs
        assert [str(output.reason).partition("]")[2] for output in result.outputs] == reasons  # type: ignore[union-attr]
        for made in result.inputs:
            assert exact(made.fields())  # type: ignore[union-attr]

    check()


def exact(value: Any) -> bool:
    """Does it consist of exact types alone?"""
    if type(value) is dict:
        return all(type(key) is str and exact(item) for key, item in value.items())
    return type(value) in {str, int, bool, type(None)}


@pytest.mark.parametrize(("adapter", "ask"), DIALECTS)
def test_inputs_share_no_map_with_the_message(adapter: ModuleType, ask: type[Any]) -> None:
    resource, tags = {"vcore": 1}, {"a": "b"}
    values = (
        {"resource_per_alloc": resource, "allocation_tags": tags}
        if ask is v19.Allocation
        else {"resource_ask": resource, "tags": tags}
    )
    (made,) = by_object(adapter, request_of(ask, [ask(**values)])).inputs
    resource["vcore"], tags["a"] = 2, "c"
    assert isinstance(made, messages.Allocation)
    assert made.resource == {"vcore": 1}
    assert made.tags == {"a": "b"}


def test_requests_that_bring_nothing_but_releases() -> None:
    """They are read without a detour, or not at all: then they are not as declared, or bring something else."""
    release = v19.AllocationRelease
    odd = st.tuples(built(release), st.dictionaries(st.sampled_from(release.__struct_fields__), ODD, max_size=1)).map(
        lambda drawn: replace(drawn[0], **drawn[1])
    )
    seen = set()

    @examples(300)
    @given(st.lists(built(release) | odd | ODD, max_size=3))
    def check(items: list[Any]) -> None:
        request = v19.AllocationRequest(
            rm_id="rm", releases=v19.AllocationReleasesRequest(allocations_to_release=items)
        )
        ends = read_ends_v19(request)
        seen.add(ends is None)
        if ends is not None:
            result = adapt_v19.inputs_from_allocation_request(request)
            assert (ends, [], []) == (result.inputs, result.outputs, result.ignored)

    check()
    assert seen == {True, False}
    assert read_ends_v19(v19.AllocationRequest(rm_id="rm")) is None
    asks = [v19.Allocation(allocation_key="k")]
    both = v19.AllocationRequest(rm_id="rm", allocations=asks, releases=v19.AllocationReleasesRequest())
    assert read_ends_v19(both) is None


def test_partition_names_belong_to_the_resource_manager_that_asks() -> None:
    for rm_id in ("a", "b", "a", ""):
        short, qualified = names_for(rm_id).short, names_for(rm_id).qualified
        for name in ("", "default", "[a]p", "[b]p", "p", "[a]p"):
            assert short[name] == short_partition(name, rm_id)
            assert qualified[name] == qualified_partition(name, rm_id)


# -- bytes in


def the_general_way(adapter: ModuleType, data: bytes) -> tuple[str, Translation]:
    request = decode(v19.AllocationRequest if adapter is adapt_v19 else first.UpdateRequest, data)
    return request.rm_id, by_object(adapter, request)  # type: ignore[attr-defined]


def same(adapter: ModuleType, data: bytes) -> bool:
    """Both ways agree; were the bytes accepted?"""
    try:
        expected = the_general_way(adapter, data)
    except WireError:
        # Of several faults each way may meet another first: here those of asks are found last.
        with pytest.raises(WireError, match=r"^(AllocationRequest|UpdateRequest)"):
            by_bytes(adapter, data)
        return False
    found = by_bytes(adapter, data)
    assert found[0] == expected[0]
    assert found[1] == expected[1]
    return True


@pytest.mark.parametrize(("adapter", "ask"), DIALECTS)
def test_well_formed_bytes(adapter: ModuleType, ask: type[Any]) -> None:
    whole = v19.AllocationRequest if adapter is adapt_v19 else first.UpdateRequest

    @examples(150)
    @given(built(whole), st.lists(built(ask), max_size=4))
    def check(request: Any, asks: list[Any]) -> None:
        setattr(request, "allocations" if adapter is adapt_v19 else "asks", asks * 2)
        assert same(adapter, encode(request))

    check()


@pytest.mark.parametrize(("adapter", "ask"), DIALECTS)
def test_hostile_bytes(adapter: ModuleType, ask: type[Any]) -> None:
    soup = Soup(7)
    number = 4 if adapter is adapt_v19 else 1
    whole = v19.AllocationRequest if adapter is adapt_v19 else first.UpdateRequest
    accepted = 0
    for _ in range(EXAMPLES):
        some = soup.message(ask) if soup.random.random() < 0.6 else soup.hostile(ask)
        data = part(number, some) + part(number, soup.message(ask)) + part(number, some)
        if soup.random.random() < 0.3:
            data = soup.message(whole) + data
        if soup.random.random() < 0.1:
            data = data[: soup.random.randrange(len(data))]
        accepted += same(adapter, data)
    assert accepted > EXAMPLES // 5


@pytest.mark.parametrize(("adapter", "ask"), DIALECTS)
def test_each_cut_and_each_changed_byte_of_a_request(adapter: ModuleType, ask: type[Any]) -> None:
    values: dict[str, Any] = {"allocation_key": "key", "application_id": "app", "partition_name": "[rm]gpu"}
    if ask is v19.Allocation:
        values |= {"resource_per_alloc": {"vcore": -1, "memory": 2**40}, "allocation_tags": {"a": "b"}, "priority": -7}
    else:
        values |= {"resource_ask": {"vcore": 0, "m": 300}, "tags": {"a": "b"}, "max_allocations": 3}
        values["priority"] = first.Priority(priority_value=-7)
    data = encode(request_of(ask, [ask(**values)]))
    for length in range(len(data) + 1):
        same(adapter, data[:length])
    for place in range(len(data)):
        for change in (0, 1, 0x7F, 0x80, 0xFF, data[place] ^ 1, data[place] + 1 & 255, data[place] + 8 & 255):
            same(adapter, data[:place] + bytes([change]) + data[place + 1 :])


def test_remembered_bytes_are_not_taken_for_another_kind_of_field() -> None:
    """The same bytes as a text, a resource and tags; and texts that only a comparison of all bytes tells apart."""
    entry = part(1, part(1, b"a") + part(2, b"\x08\x05"))
    tags = part(2, part(1, b"a") + part(2, b"\x08\x05"))
    asks = [part(1, b"k") + part(9, tags) + tags + part(5, entry) + part(10, entry)]
    asks += [part(9, b"a" * 12 + varint(number) + b"z" * 12) for number in range(40)] * 2
    assert same(adapt_v19, b"".join(part(4, ask) for ask in asks))


def test_many_unlike_resources() -> None:
    asks = [
        v19.Allocation(allocation_key=str(i), resource_per_alloc={"vcore": i * i, f"t{i % 300}": i}) for i in range(900)
    ]
    assert same(adapt_v19, encode(request_of(v19.Allocation, asks + asks)))


def test_resources_with_other_names_in_another_order_and_with_one_twice() -> None:
    many = [f"t{i}" for i in range(30)]
    orders = [["a", "b"], ["a", "b"], ["b", "a"], ["a"], [""], ["a", ""], many, many[::-1], ["a", "a"], ["b", "b", "a"]]
    asks = []
    for names in orders * 2:
        entries = [part(1, part(1, name.encode()) + part(2, b"\x08\x05")) for name in names]
        asks.append(part(1, b"k") + part(5, b"".join(entries)))
    assert same(adapt_v19, b"".join(part(4, ask) for ask in asks))


# -- bytes out


def outputs() -> st.SearchStrategy[list[messages.Output]]:
    texts = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["", "[rm]x", "n" * 140, "n" * 16400])
    flags = st.booleans()
    amounts = st.sampled_from(
        [{}, {"vcore": 1}, {"a": 0, "": -1, "x" * 130: 2**63 - 1}, {"b": 127, "c": 128}, {"c": 1, "b": 2}]
    )
    new = st.builds(
        messages.NewAllocation,
        *(texts, texts, texts, amounts),
        partition=texts,
        queue=texts,
        priority=st.integers(-(2**31), 2**31 - 1),
        tags=st.none() | st.dictionaries(texts, texts, max_size=2),
        task_group=texts,
        placeholder=flags,
        originator=flags,
        allow_preempt_self=flags,
        allow_preempt_other=flags,
        uuid=texts,
    )
    ends = st.sampled_from(list(messages.Termination))
    others = st.one_of(
        st.builds(messages.Released, texts, texts, ends, texts, partition=texts, uuid=texts, ask=flags),
        st.builds(messages.RejectedAllocation, texts, texts, texts),
        st.builds(messages.AcceptedApplication, texts),
        st.builds(messages.RejectedApplication, texts, texts),
        st.builds(messages.UpdatedApplication, texts, texts, st.integers(0, 2**63 - 1), texts),
        st.builds(messages.AcceptedNode, texts),
        st.builds(messages.RejectedNode, texts, texts),
        st.builds(messages.WaitingForResources, texts, texts, texts),
    )
    return st.lists(new | others, max_size=8)


@pytest.mark.parametrize("adapter", [adapt_v19, adapt_first], ids=["1.9", "first"])
@examples(300)
@given(outputs())
def test_responses(adapter: Any, said: list[messages.Output]) -> None:
    expected = [(kind, encode(response)) for kind, response in adapter.responses(said, "rm")]
    assert adapter.responses_as_bytes(said, "rm") == expected


@pytest.mark.parametrize("adapter", [adapt_v19, adapt_first], ids=["1.9", "first"])
def test_many_decisions_of_all_lengths(adapter: Any) -> None:
    """Lengths that need one, two and three bytes follow each other, and resources come again."""
    resources = [{"vcore": i, "memory": 2**i} for i in range(60)]
    said = [
        messages.NewAllocation(
            "k" * (i * 97 % 300), "a" * (i % 7), "n" * (20000 if i % 97 == 0 else 1), resources[i % 60]
        )
        for i in range(3000)
    ]
    ((kind, response),) = adapter.responses(said, "rm")
    assert adapter.responses_as_bytes(said, "rm") == [(kind, encode(response))]
