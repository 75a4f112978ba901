"""Checks of the arguments of `SchedulerAPI`: a value of the wrong type raises before anything is taken in.

Only the outermost values are checked here, once a call. The contents of a request are checked where they are walked
anyway, by the adapters (`licorne.si.adapt`), which note values of the wrong type in `Translation.mistyped`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from licorne.core.base.states import TIME_MAX_NS
from licorne.si._check import Fault, plain, shown, text
from licorne.si._schema import Message
from licorne.si.callback import ResourceManagerCallback

METHODS = tuple(name for name in vars(ResourceManagerCallback) if not name.startswith("_"))
"""The methods that a callback may have."""


class RequestError(ValueError):
    """A request, or another argument of a call, is not of the declared type: a mistake of the calling program.

    The text names the field, the value and the rule. Nothing of the request was taken in.
    """


def refuse_request(request: object, *of: type[Message]) -> None:
    """Raise for a value that is no request of these types, or whose `rm_id` is no text."""
    names = " or ".join(dict.fromkeys(one.__name__ for one in of))
    if isinstance(request, type):
        raise RequestError(f"invalid message {request.__name__}: must be a {names}, not the class itself")
    if not isinstance(request, of):
        raise RequestError(f"invalid message {shown(request)}: must be a {names}")
    raise RequestError(f"invalid rmID {shown(getattr(request, 'rm_id', None))}: must be a string")


def refuse_mistyped(reasons: list[str]) -> None:
    """Raise for values of the wrong type in a request."""
    more = f" (and {len(reasons) - 1} more such values)" if len(reasons) > 1 else ""
    raise RequestError(f"{reasons[0]}{more}; nothing of the request was taken in")


def checked(request: object, *of: type[Message]) -> Any:
    """Return a copy of a message of one of these types, in which all values have their declared types.

    Raises:
        RequestError: it is no such message, or a value in it has the wrong type.
    """
    for one in of:
        if isinstance(request, one):
            try:
                return plain(request, one)
            except Fault as fault:
                raise RequestError(str(fault)) from None
    refuse_request(request, *of)
    raise AssertionError("it was refused")


def check_text(name: str, value: object) -> None:
    """Raise if an argument is no text."""
    try:
        text(value)
    except Fault as fault:
        raise RequestError(str(fault.inside(name))) from None


def check_callback(callback: object) -> None:
    """Raise if an argument cannot be a callback: it is a class, or an object with none of the methods."""
    if callback is None or isinstance(callback, ResourceManagerCallback):
        return
    if isinstance(callback, type):
        raise RequestError(
            f"invalid callback {callback.__name__}: is a class; give an object of it: {callback.__name__}()"
        )
    if not any(callable(getattr(callback, name, None)) for name in METHODS):
        raise RequestError(
            f"invalid callback {shown(callback)}: has none of the methods of ResourceManagerCallback; make a subclass of it"
        )


def check_callables(**given: Any) -> None:
    """Raise if one of these arguments, None apart, cannot be called."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise RequestError(f"invalid {name} {shown(value)}: must be something that can be called")


def refuse_time(name: str, value: object) -> None:
    """Raise for a value that is no time in nanoseconds, or a later one than there is."""
    if type(value) is int and value > TIME_MAX_NS:
        raise RequestError(f"{name}: {value}: no time is later than {TIME_MAX_NS}")
    raise RequestError(f"invalid {name} {shown(value)}: must be a whole number of nanoseconds, 0 or more")


def refuse_limit(value: object) -> None:
    """Raise for a limit that is no number of allocations."""
    raise RequestError(f"invalid limit {shown(value)}: must be a whole number, 0 or more, or None")


def refuse_input(index: int, value: object, of: Iterable[type]) -> None:
    """Raise for an input that is no internal message; `of` are the types that there are."""
    names = ", ".join(one.__name__ for one in of)
    name = f"the class {value.__name__}" if isinstance(value, type) else shown(value)
    raise RequestError(f"invalid inputs[{index}] {name}: must be one of {names}")


__all__ = [
    "RequestError", "check_callables", "check_callback", "check_text", "checked", "refuse_input", "refuse_limit",
    "refuse_mistyped", "refuse_request", "refuse_time",
]  # fmt: skip
