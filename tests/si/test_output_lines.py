"""Outputs as lines of text: one for each, the same compiled and interpreted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.si.messages import NewAllocation, Output, RejectedAllocation, Released, Termination
from licorne.si.output_lines import output_lines


def allocation(key: str, node: str) -> NewAllocation:
    return NewAllocation(key=key, application_id="a", node_id=node, partition="default", queue="root.q", resource={})


@pytest.mark.parametrize(
    ("outputs", "lines"),
    [
        ([], b""),
        ([allocation("k", "n1")], b"k n1\n"),
        ([allocation("k", "n1"), allocation("l", "n2")], b"k n1\nl n2\n"),
        ([Released("k", "a", Termination.UNKNOWN)], b"-k a 0\n"),
        ([Released("k", "a", each) for each in Termination], b"".join(b"-k a %d\n" % each for each in Termination)),
        ([allocation("é", "n"), allocation("\ud800", "n")], "é n\n".encode() + b"\xed\xa0\x80 n\n"),
    ],
)
def test_lines(outputs: list[Output], lines: bytes) -> None:
    allocations = sum(isinstance(output, NewAllocation) for output in outputs)
    assert output_lines(outputs, texts=True) == (lines, allocations)
    assert output_lines(tuple(outputs), texts=False) == (lines, allocations)


def test_what_explains_an_output_is_left_out_if_that_is_wished() -> None:
    outputs = [RejectedAllocation("k", "a", reason="ann may not")]
    with_texts, _ = output_lines(outputs, texts=True)
    without, _ = output_lines(outputs, texts=False)
    assert b"ann" in with_texts
    assert b"ann" not in without
    assert with_texts.startswith(b"RejectedAllocation{")


TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)  # halves of surrogate pairs, too
OUTPUTS = st.one_of(
    st.builds(allocation, TEXTS, TEXTS),
    st.builds(Released, TEXTS, TEXTS, st.sampled_from(Termination)),
    st.builds(lambda key, reason: RejectedAllocation(key, "a", reason=reason), TEXTS, TEXTS),
)


def slow_line(output: Output) -> bytes:
    match output:
        case NewAllocation():
            return f"{output.key} {output.node_id}\n".encode("utf-8", "surrogatepass")
        case Released():
            return f"-{output.key} {output.application_id} {output.termination:d}\n".encode("utf-8", "surrogatepass")
    return output_lines([output], texts=True)[0]


@given(st.lists(OUTPUTS))
def test_lines_of_a_list_are_those_of_its_outputs(outputs: list[Output]) -> None:
    lines, _ = output_lines(outputs, texts=True)
    assert lines == b"".join(map(slow_line, outputs))
