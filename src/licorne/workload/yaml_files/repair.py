"""Convert plain objects to a class; where that fails, find all that is wrong, and leave it out.

msgspec stops at the first mistake. So each value is then converted by itself, by the class or type that is declared for it.
What is faulty is noted. A key that is not known, or a value that may be missing, is left out; a value that is needed is replaced
by a stand-in that causes no further complaint; and where there is none, what contains it is left out. So what the rest means
can be looked at too, and every mistake is told at once. A document that was repaired is never used.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from licorne.workload.workload import explain
from licorne.workload.yaml_files.faults import DocumentError, Path
from licorne.workload.yaml_files.reading import BROKEN, Problems

_INDEX: Final = re.compile(r"\[(\d+)\]")
_WORDS: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "keys with values",
    "str": "a text",
    "|": "or",
}
_WORD: Final = re.compile(r"\b(?:array|bool|float|int|null|object|str)\b|\|")
Text = Annotated[str, msgspec.Meta(min_length=1)]
StandIns = Mapping[tuple[type, str], object]
"""What stands in for a value of a class that is faulty or missing, such that nothing else is wrong because of it."""
_T = TypeVar("_T", bound=msgspec.Struct)


def convert(made: object, kind: type[_T], problems: Problems, stand_ins: StandIns | None = None) -> _T:
    """Return the document that plain objects are; what is faulty is noted, and left out of it.

    Raises:
        YamlFileError: too much of it is faulty for that.
    """
    if not problems.found:
        try:
            return msgspec.convert(made, kind)
        except msgspec.ValidationError:
            pass  # what is wrong is found one by one
    repaired = _Repair(problems, stand_ins or {}).value(made, kind, ())
    if repaired is BROKEN:
        problems.refuse()
    assert problems.found, "what cannot be converted has a fault"
    problems.leave_out()
    return msgspec.convert(repaired, kind)


class _Repair:
    """Looks at values one by one, notes what is wrong with them, and returns them without it."""

    def __init__(self, problems: Problems, stand_ins: StandIns) -> None:
        self._problems = problems
        self._stand_ins = stand_ins

    def value(self, value: object, kind: Any, path: Path) -> object:  # noqa: ANN401  # any annotation
        """Return a value that is of a type, `BROKEN` if nothing of it can be used."""
        options = _options_of(kind)
        if isinstance(value, dict):
            for option in options:
                if isinstance(option, type) and issubclass(option, msgspec.Struct):
                    return self._struct(value, option, path)
                if typing.get_origin(option) is dict and typing.get_args(option)[1] is not Any:
                    return self._mapping(value, kind, option, path)
        if isinstance(value, list):
            for option in options:
                if typing.get_origin(option) is list and _options_of(typing.get_args(option)[0]) != [Any]:
                    return self._list(value, kind, typing.get_args(option)[0], path)
        return value if not _has_broken(value) and self._is(value, kind, path) else BROKEN

    def _is(self, value: object, kind: Any, path: Path, *, quiet: bool = False) -> bool:  # noqa: ANN401
        """Whether a value can be converted to a type; if not, that is noted unless `quiet`."""
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            if not quiet:
                self._problems.add(_fault(str(error), kind, path))
            return False
        return True

    def _struct(self, value: dict[str, object], kind: type[msgspec.Struct], path: Path) -> object:
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        made: dict[str, object] = {}
        meant: set[str] = set()
        for key, one in value.items():
            if key not in fields:
                meant.update(_close(str(key), list(fields)))
                self._problems.note((*path, str(key)), _unknown(str(key), list(fields)), at_key=True)
                continue
            found = self.value(one, fields[key].type, (*path, key))
            if found is not BROKEN:
                made[key] = found
        for name, field in fields.items():
            if name in made or (name not in value and not field.required):
                continue
            if name not in value and name not in meant:
                self._problems.note(path, f"needs the key {name}")
            if (kind, name) in self._stand_ins:
                made[name] = self._stand_ins[kind, name]
            elif field.required:
                return BROKEN
        return made

    def _mapping(self, value: dict[str, object], kind: Any, option: Any, path: Path) -> object:  # noqa: ANN401
        of_key, of_value = typing.get_args(option)
        made: dict[str, object] = {}
        for key, one in value.items():
            if self._is(key, of_key, (*path, key)):
                found = self.value(one, of_value, (*path, key))
                if found is not BROKEN:
                    made[key] = found
        return made if self._is(made, kind, path, quiet=len(made) < len(value)) else BROKEN

    def _list(self, value: list[object], kind: Any, of_item: Any, path: Path) -> object:  # noqa: ANN401
        """Return a list; its items keep their places, so one that cannot be used, nor replaced, spoils it."""
        made = [self.value(one, of_item, (*path, index)) for index, one in enumerate(value)]
        stand_in = {name: one for (kind, name), one in self._stand_ins.items() if kind is of_item}
        made = [dict(stand_in) if one is BROKEN and stand_in else one for one in made]
        if any(one is BROKEN for one in made):
            return BROKEN
        return made if self._is(made, kind, path, quiet=self._problems.is_faulty(path)) else BROKEN


def _has_broken(value: object) -> bool:
    """Whether a value is `BROKEN`, or contains that."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is BROKEN or any(map(_has_broken, items))


def _options_of(kind: Any) -> list[Any]:  # noqa: ANN401
    """Return the types of which a value may be, for an annotation."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return _options_of(typing.get_args(kind)[0])
    if origin in (types.UnionType, typing.Union):
        return [option for one in typing.get_args(kind) for option in _options_of(one)]
    return [kind]


def _fault(text: str, kind: Any, path: Path) -> DocumentError:  # noqa: ANN401
    """Return the fault of a message of msgspec about a value; its parts have been looked at, but for those of a tuple."""
    message, _, where = text.partition(" - at `")
    index = _INDEX.search(where)
    complaint = explain(message)[1]
    if complaint.startswith("expected "):
        quotes = complaint.startswith("expected str, got ") and complaint.split()[-1] in ("int", "float", "bool")
        complaint = (
            _WORD.sub(lambda word: _WORDS[word[0]], complaint.replace(" | null", "")) + "; put it in quotes" * quotes
        )
    elif complaint.startswith("invalid enum value"):
        known = [word for option in _options_of(kind) for word in typing.get_args(option)]
        complaint += f"; known are {', '.join(filter(None, known))}"
    return DocumentError(path if index is None else (*path, int(index[1])), complaint)


def _close(name: str, known: list[str]) -> list[str]:
    """Return the known key that resembles an unknown one most, as the only item of a list; an empty list if none does."""
    return difflib.get_close_matches(name, known, n=1, cutoff=0.7)


def _unknown(name: str, known: list[str]) -> str:
    close = _close(name, known)
    meant = f", did you mean `{close[0]}`?" if close else ";"
    return f"unknown key{meant} the keys here are {', '.join(known)}"
