"""Protobuf bytes: every message of both dialects, read and written as the official implementation does it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples, scaled
from licorne.si import adapt_v19, first, v19
from licorne.si._common import Resource
from licorne.si._schema import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Field, Message, fields
from licorne.si.wire import WireError, decode, encode
from si.oracle import CASES, V19, ours, theirs
from si.soup import Soup, part, varint

EXAMPLES = int(os.environ.get("LICORNE_WIRE_EXAMPLES") or scaled(3000))
"""Of random, cut and mutated bytes; 50,000 and more in a long run."""

IDS = [f"{message.__module__.rpartition('.')[2]}-{message.__name__}" for message, _ in CASES]
texts = st.text(st.characters(codec="utf-8"), max_size=6)
int32s = st.integers(INT32_MIN, INT32_MAX)
int64s = st.integers(INT64_MIN, INT64_MAX)


def _single(field: Field) -> st.SearchStrategy[Any]:
    inner: Any = field.type
    match field.kind:
        case "string":
            return texts
        case "bool":
            return st.booleans()
        case "int32":
            return int32s
        case "int64":
            return int64s
        case "enum":
            return st.one_of(st.sampled_from(list(inner)), int32s.filter(lambda number: number not in set(inner)))
        case "message":
            return built(inner)
        case "map":
            return st.dictionaries(texts, texts, max_size=3)
        case "amounts":
            return st.dictionaries(texts, int64s, max_size=3)
        case "quantities":
            return st.dictionaries(texts, built(inner), max_size=3)


def built(message: type[Message]) -> st.SearchStrategy[Any]:
    """Any message of a class, as a peer may build it."""
    values = {}
    for field in fields(message):
        one = _single(field)
        if field.repeated:
            one = st.lists(one, max_size=3)
        elif field.optional:
            one = st.none() | one
        values[field.attribute] = one

    def made(drawn: dict[str, Any]) -> Message:
        for field in fields(message):
            if field.oneof and drawn[field.attribute] is not None:
                for other in fields(message):
                    if other.oneof == field.oneof and other is not field:
                        drawn[other.attribute] = None
        return message(**drawn)

    return st.fixed_dictionaries(values).map(made)


@pytest.mark.parametrize(("message", "official"), CASES, ids=IDS)
def test_round_trips_both_ways(message: type[Message], official: Any) -> None:
    @examples(25)
    @given(built(message))
    def check(made: Any) -> None:
        data = encode(made)
        assert decode(message, data) == made
        there = official.FromString(data)
        assert ours(there, message) == made
        assert decode(message, theirs(made, official).SerializeToString()) == made
        # As short as theirs; the entries of a map have another order there.
        assert sorted(data) == sorted(theirs(made, official).SerializeToString())

    check()


def _entry_set_aside(proto: Any, message: type[Message]) -> bool:
    """Does the official message keep an entry of a map among what it doesn't know?"""
    maps = {field.number for field in fields(message) if field.kind in {"map", "quantities"}}
    if any(item.field_number in maps and item.wire_type == 2 for item in UnknownFieldSet(proto)):
        return True
    for field in fields(message):
        inner: Any = Resource if field.kind == "amounts" else field.type
        found = getattr(proto, field.name)
        if field.kind in {"message", "amounts"}:
            items = found if field.repeated else [found]
            if any(_entry_set_aside(item, inner) for item in items):
                return True
    return False


@pytest.mark.parametrize(("message", "official"), CASES, ids=IDS)
def test_hostile_bytes_are_read_or_refused_as_by_the_official_implementation(
    message: type[Message], official: Any
) -> None:
    """But for two things, in which the package tested against (upb) differs from those of other languages too.

    An entry of a map that holds an unknown field is an entry here; there it is set aside. And a field of number 0 is
    never allowed here; there it is, within a group or message of which no field is known.
    """
    soup = Soup(20)
    accepted = 0
    for _ in range(EXAMPLES // len(CASES) + 1):
        data = soup.hostile(message)
        try:
            there = official.FromString(data)
        except DecodeError:
            with pytest.raises(WireError, match=rf"^{message.__name__}.* at byte \d+: "):
                decode(message, data)
            continue
        accepted += 1
        try:
            found = decode(message, data)
        except WireError as error:
            assert error.rule == "there is no field of number 0", (error, data)  # noqa: PT017
        else:
            assert found == ours(there, message) or _entry_set_aside(there, message), data
    assert accepted


def test_an_entry_of_a_map_with_an_unknown_field_is_an_entry() -> None:
    data = part(5, part(1, b"k") + varint(3 << 3) + varint(7) + part(2, b"v"))
    assert decode(v19.AddApplicationRequest, data).tags == {"k": "v"}


@pytest.mark.parametrize("depth", range(98, 103))
@pytest.mark.parametrize("inside", [0, 1, 2])
def test_groups_nest_as_deep_as_in_the_official_implementation(depth: int, inside: int) -> None:
    data = varint(20 << 3 | 3) * depth + varint(20 << 3 | 4) * depth
    if inside >= 1:
        data = part(1, data)
    if inside == 2:
        data = part(5, data)
    message = (v19.AllocationRelease, v19.AllocationReleasesRequest, v19.Allocation)[inside]
    try:
        V19[message].FromString(data)
    except DecodeError:
        with pytest.raises(WireError, match="nested deeper than 100 levels"):
            decode(message, data)
    else:
        decode(message, data)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x1a\x05rm", "AllocationRequest.rmID at byte 1: 5 bytes are announced, and 2 are left"),
        (b"\x22\x02\x30\x80", "AllocationRequest.allocations[0].priority at byte 3: the message ends within a number"),
        (
            b"\x22\x00\x22\x04\x0a\x02\xff\xff",
            "AllocationRequest.allocations[1].allocationKey at byte 6: must be valid Unicode",
        ),
        (b"\x12\x04\x0a\x02\x0a\x07", "AllocationRequest.releases.allocationsToRelease[0].partitionName at byte 5: 7"),
        (b"\x00", "AllocationRequest at byte 0: there is no field of number 0"),
        (b"\x0e", "AllocationRequest at byte 1: there is no wire type 6"),
        (b"\x0c", "AllocationRequest at byte 1: a group ends that did not begin"),
        (b"\x08" + b"\xff" * 11, "AllocationRequest at byte 1: a number of more than 10 bytes"),
        (b"\x09\x00", "AllocationRequest at byte 1: the message ends within a number"),
    ],
)
def test_an_error_names_the_field_and_the_byte(data: bytes, error: str) -> None:
    with pytest.raises(WireError) as one:
        decode(v19.AllocationRequest, data)
    with pytest.raises(WireError) as other:
        adapt_v19.ALLOCATIONS.at_once(data)
    assert str(one.value).startswith(error)
    assert str(other.value) == str(one.value)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (v19.Allocation(priority=2**31), "invalid priority 2147483648: must fit in 32 bits with sign"),
        (v19.Allocation(allocation_key="\ud800"), "invalid allocationKey '\\ud800': must be valid Unicode"),
        (v19.NodeRequest(nodes=[v19.Allocation()]), "must be NodeInfo"),  # type: ignore[list-item]
        (
            first.Priority(priority_value=1, priority_class_name="c"),
            "only one may be set of priorityValue, priorityClassN",
        ),
        (v19.Allocation(resource_per_alloc={"a": 2**63}), "resourcePerAlloc['a']"),
    ],
)
def test_a_message_without_a_wire_form_is_refused(message: Message, error: str) -> None:
    with pytest.raises(WireError) as raised:
        encode(message)
    assert error in str(raised.value)


def test_output_is_canonical() -> None:
    """Fields in the order of their numbers, no defaults, maps in the order of their keys."""
    ask = v19.Allocation(
        allocation_key="k", preemption_policy=v19.PreemptionPolicy(), allocation_tags={"b": "", "a": "x"}, priority=-1
    )
    tags = part(2, part(1, b"a") + part(2, b"x")) + part(2, part(1, b"b") + part(2, b""))
    assert encode(ask) == part(1, b"k") + tags + b"\x30" + b"\xff" * 9 + b"\x01" + part(15, b"")


def test_numbers_of_enums_that_are_not_known_are_kept() -> None:
    release = decode(v19.AllocationRelease, b"\x20\x09")
    assert release.termination_type == 9
    assert not isinstance(release.termination_type, v19.TerminationType)
    assert encode(release) == b"\x20\x09"
