"""What a program hands to `SchedulerAPI`: is it what is declared? A mistake is told at once, and nothing is taken in.

Only the outermost values are looked at here, once a call. What a request holds is checked where it is walked anyway, by
the adapters (`licorne.si.adapt`), which note values of the wrong type in `Translation.mistyped`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from licorne.core.base.states import TIME_MAX_NS
from licorne.si._check import Fault, plain, shown, text
from licorne.si._schema import Message
from licorne.si.callback import ResourceManagerCallback

METHODS = tuple(name for name in vars(ResourceManagerCallback) if not name.startswith("_"))
"""What a callback may offer."""


class RequestError(ValueError):
    """A request, or another argument of a call, that is not what is declared: a mistake of the program that calls.

    The text names the field, the value and the rule. Nothing of the request was taken in.
    """


def refuse_request(request: object, *of: type[Message]) -> None:
    """Raise for what is no request of this type, or names its resource manager by something else than a text."""
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
    """A copy of a message, all of whose values are as declared."""
    for one in of:
        if isinstance(request, one):
            try:
                return plain(request, one)
            except Fault as fault:
                raise RequestError(str(fault)) from None
    refuse_request(request, *of)
    raise AssertionError("it was refused")


def check_text(name: str, value: object) -> None:
    """Raise for an argument that is no text."""
    try:
        text(value)
    except Fault as fault:
        raise RequestError(str(fault.inside(name))) from None


def check_callback(callback: object) -> None:
    """Raise for what cannot be a callback: a class, or an object with none of the methods."""
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
    """Raise for an argument that cannot be called."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise RequestError(f"invalid {name} {shown(value)}: must be something that can be called")


def refuse_time(name: str, value: object) -> None:
    """Raise for what is no time."""
    if type(value) is int and value > TIME_MAX_NS:
        raise RequestError(f"{name}: {value}: no time is later than {TIME_MAX_NS}")
    raise RequestError(f"invalid {name} {shown(value)}: must be a whole number of nanoseconds, 0 or more")


def refuse_limit(value: object) -> None:
    """Raise for what is no number of allocations."""
    raise RequestError(f"invalid limit {shown(value)}: must be a whole number, 0 or more, or None")


def refuse_input(index: int, value: object, of: Iterable[type]) -> None:
    """Raise for what is no internal message."""
    names = ", ".join(one.__name__ for one in of)
    name = f"the class {value.__name__}" if isinstance(value, type) else shown(value)
    raise RequestError(f"invalid inputs[{index}] {name}: must be one of {names}")


__all__ = [
    "RequestError", "check_callables", "check_callback", "check_text", "checked", "refuse_input", "refuse_limit",
    "refuse_mistyped", "refuse_request", "refuse_time",
]  # fmt: skip
