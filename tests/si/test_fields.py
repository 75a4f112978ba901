"""Each field of each message is explained in the docstring of its class, in both dialects."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from licorne.si import first, v19
from licorne.si._fields import MEANINGS
from licorne.si._schema import Message

DIALECTS = (first, v19)


def messages(dialect: ModuleType) -> list[type[Message]]:
    """Return the messages of a dialect that have fields."""
    found = [getattr(dialect, name) for name in dialect.__all__]
    return [one for one in found if isinstance(one, type) and issubclass(one, Message) and one.__struct_fields__]


@pytest.mark.parametrize("message", [one for dialect in DIALECTS for one in messages(dialect)])
def test_every_field_is_explained_once(message: type[Message]) -> None:
    lines = (inspect.getdoc(message) or "").splitlines()
    start = lines.index("Attributes:")
    assert [line.partition(":")[0].strip() for line in lines[start + 1 :] if line.strip()] == list(
        message.__struct_fields__
    )


def test_no_meaning_is_of_a_field_that_there_is_not() -> None:
    there = {
        (one.__name__, name) for dialect in DIALECTS for one in messages(dialect) for name in one.__struct_fields__
    }
    names = {name for _, name in there} | {f"{message}.{name}" for message, name in there}
    assert MEANINGS.keys() <= names


@pytest.mark.parametrize(
    "name",
    [name for name in MEANINGS if name.endswith(("_nano", "_timestamp", "_seconds", "resource", "_ask", "_per_alloc"))],
)
def test_times_and_amounts_have_a_unit(name: str) -> None:
    assert any(unit in MEANINGS[name] for unit in ("nanoseconds", "milliseconds", "bytes")), MEANINGS[name]
