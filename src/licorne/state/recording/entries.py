"""What stands in a recording: each entry is a list of a word and its values.

Messages are written in the core's own terms, with the fields that differ from their defaults. A request of asks that came
as bytes is written as it came (`request`); its inputs are then known by their numbers in it (`part`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

import msgspec

from licorne._bounded import json_value
from licorne.si.messages import (
    Allocation,
    Input,
    NodeAction,
    NodeUpdate,
    Output,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
    Release,
    Termination,
)

Entry = tuple[Any, ...]

TIME: Final = "time"
"""The time, in nanoseconds, of what follows."""
REGISTER: Final = "register"
RELOAD: Final = "reload"
REMOVE: Final = "remove"
PAUSE: Final = "pause"
AGES: Final = "ages"
INPUTS: Final = "inputs"
REQUEST: Final = "request"
PART: Final = "part"
ANSWERS: Final = "answers"
DECIDE: Final = "decide"
CHECK: Final = "check"
"""How many messages the scheduler had given, and their digest, when the call before this entry had ended."""
ANONYMOUS: Final = "anonymous"
"""The names of users and groups are digests in this run, and texts of messages do not count in the digests of it."""
GAP: Final = "gap"
"""The end of a run whose further inputs are lost, and why."""

_KINDS: Final[dict[str, type]] = {
    each.__name__: each for each in (*get_args(Input), RejectedAllocation, RejectedApplication, RejectedNode)
}
"""Everything that goes into a call, and the refusals that an adapter adds to it."""
_DEFAULTS: Final = {
    Allocation: Allocation(key="").fields(),
    Release: Release().fields(),
}


def encode_messages(
    messages: Sequence[Input | Output], change: Callable[[str, dict[str, Any]], object] = lambda *_: None
) -> bytes:
    """Return messages as JSON, up to the first that is none of the core's, which the scheduler refuses.

    `change` is given the kind and the fields of each message, which it may change.
    """
    made = []
    for message in messages:
        if type(message).__name__ not in _KINDS:
            break
        kind, fields = type(message).__name__, _plain(message)
        change(kind, fields)
        for each in fields.get("existing", ()):
            change("Allocation", each)
        made.append([kind, fields])
    try:
        return msgspec.json.encode(made)
    except (UnicodeEncodeError, OverflowError):  # half a character, or a very large number: the slow encoder knows them
        return json.dumps(made).encode()


def _plain(message: Input | Output) -> dict[str, Any]:
    if isinstance(message, Allocation | Release):
        defaults = _DEFAULTS[type(message)]
        return {name: value for name, value in message.fields().items() if name == "key" or value != defaults[name]}
    assert isinstance(message, msgspec.Struct)
    fields = msgspec.structs.asdict(message)
    if existing := fields.get("existing"):
        fields["existing"] = [_plain(each) for each in existing]
    return fields


def decode_messages(data: bytes) -> list[Any]:
    """Return the messages of `encode_messages`.

    Raises:
        ValueError, TypeError, KeyError: the bytes are no such messages.
    """
    if data == b"[]":  # of refusals, most often
        return []
    try:
        made = json_value(data)
    except msgspec.DecodeError:
        made = json.loads(data)
    return [_made(kind, fields) for kind, fields in made]


def _made(kind: str, fields: dict[str, Any]) -> object:
    make: Callable[..., object] = _KINDS[kind]
    if kind == "NodeUpdate":
        fields["existing"] = tuple(_made("Allocation", each) for each in fields["existing"])
        fields["action"] = NodeAction(fields["action"])
    if "termination" in fields:
        fields["termination"] = Termination(fields["termination"])
    if make in _DEFAULTS or make is NodeUpdate:  # msgspec cannot know the types of compiled attributes
        return make(**fields)
    return msgspec.convert(fields, make)
