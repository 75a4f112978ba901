"""Strict reading of the JSON texts with which asks and nodes say what they demand: of nodes, and of other pods.

Each function names in its error the path of what it refuses, the value, and the rule that it breaks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

MAX_TEXT_LENGTH: Final = 64 * 1024
"""The longest text that is accepted, in characters; it bounds everything inside too."""
TEXTS_MAX: Final = 4096
CHARACTERS_MAX: Final = 1 << 20
"""How many texts a cache has at most, and how many characters they have together."""
_SHOWN_LENGTH = 120
_K = TypeVar("_K")
_T = TypeVar("_T")
_Sortable = TypeVar("_Sortable", bound="str | tuple[Any, ...]")


class ConstraintError(ValueError):
    """Constraints or taints that cannot be parsed; names the field, its value and the rule that it breaks."""

    def __init__(self, path: str, value: object, rule: str) -> None:
        shown = json.dumps(value[:_SHOWN_LENGTH] if isinstance(value, str) else value)
        if len(shown) > _SHOWN_LENGTH:
            shown = shown[:_SHOWN_LENGTH] + "…"
        super().__init__(f"{path}: {shown}: {rule}")
        self.path = path
        self.value = value
        self.rule = rule


class TextCache(dict[_K, _T]):
    """What texts mean, by text. It is emptied before it exceeds `TEXTS_MAX` or `CHARACTERS_MAX`."""

    def __init__(self) -> None:
        super().__init__()
        self._characters = 0

    def add(self, key: _K, characters: int, value: _T) -> None:
        """Remember what a text of so many characters means."""
        if len(self) >= TEXTS_MAX or self._characters + characters > CHARACTERS_MAX:
            self.clear()
            self._characters = 0
        self[key] = value
        self._characters += characters


def read_json(text: str, path: str) -> object:
    """Parse a JSON text in which no key is given twice."""
    if len(text) > MAX_TEXT_LENGTH:
        fail(path, text, f"is longer than {MAX_TEXT_LENGTH} characters")

    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            times = Counter(name for name, _ in pairs)
            twice = min(name for name in times if times[name] > 1)
            fail(path, twice, "a key is given twice")
        return fields

    try:
        return json.loads(text, object_pairs_hook=without_duplicates)
    except ConstraintError:
        raise
    except json.JSONDecodeError as error:  # the interpreter's own wording is not part of our answers
        raise ConstraintError(path, text, f"is not JSON, from character {error.pos + 1} on") from None
    except (ValueError, RecursionError):
        raise ConstraintError(path, text, "is JSON with too large a number or too many levels") from None


def fields_of(value: object, path: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that an object has; a field that is null counts as absent."""
    if not isinstance(value, dict):
        fail(path, value, "must be an object")
    for name in value:
        if name not in known:
            fail(path, name, f"is an unknown key, known are {', '.join(known)}")
    return {name: field for name, field in value.items() if field is not None}


def list_of(value: object, path: str, read: Callable[[object, str], _T]) -> list[_T]:
    """Return the items of a list, each read by `read`."""
    if not isinstance(value, list):
        fail(path, value, "must be a list")
    return [read(item, f"{path}[{index}]") for index, item in enumerate(value)]


def text_of(value: object, path: str, *, required: bool = False) -> str:
    """Return a text; `required`: it must not be empty."""
    if not isinstance(value, str):
        fail(path, value, "must be a text")
    if required and not value:
        fail(path, value, "must not be empty")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        fail(path, value, "holds half of a surrogate pair")
    return value


def one_of(value: object, path: str, known: tuple[str, ...]) -> str:
    """Return a text that must be one of these."""
    text = text_of(value, path)
    if text not in known:
        fail(path, text, f"must be one of {', '.join(name for name in known if name)}")
    return text


def sorted_set(values: list[_Sortable]) -> tuple[_Sortable, ...]:
    """Return values whose order means nothing, sorted and without duplicates."""
    return tuple(sorted(set(values)))


def fail(path: str, value: object, rule: str) -> NoReturn:
    """Raise ConstraintError for a value that breaks a rule."""
    raise ConstraintError(path, value, rule)
