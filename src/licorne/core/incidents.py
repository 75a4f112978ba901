"""Incidents: events that a host should learn of although no call failed, such as refusals that no callback takes.

A resource manager need not override every method of its callback, and an exception in one changes nothing. Without
incidents both would be swallowed, and a program that forgot a field would wait for decisions that never come. So each
refusal that no callback takes, each exception of a callback, and each part of a request without effect becomes an
`Incident`, which is handed once to a handler: that of the host (`SchedulerAPI(on_incident=...)`), or else the default.
The core writes no log; `import licorne` sets a default handler that does (`licorne._log`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from licorne import _default
from licorne.si import first, v19
from licorne.si.callback import overrides

Refusal = v19.RejectedAllocation | v19.RejectedApplication | v19.RejectedNode | first.RejectedAllocationAsk

ERRORS_MAX = 100
"""Most errors of callbacks that are kept; the oldest is dropped first."""
REFUSALS = ("rejected", "rejected_nodes", "rejected_applications", "rejected_allocations")
"""The fields of responses, of both dialects, that hold refusals."""


class Incident(NamedTuple):
    """An event that a host should know of, although no call failed.

    `kind`: a refusal that no callback took, an error that a method of the callback raised, or a part of a request that
    has no effect (`ignored`). `callback`: the method that was called, or that a resource manager has to override to
    receive refusals itself; empty if there is none. `refusal`: the message of the resource manager's dialect. `error`:
    the exception, with its traceback. `text`: a description for people.
    """

    kind: Literal["refusal", "callback error", "ignored"]
    rm_id: str
    text: str
    callback: str = ""
    refusal: Refusal | None = None
    error: Exception | None = None


Handler = Callable[[Incident], object]


class Incidents:
    """Makes incidents and hands them to a handler.

    `errors`: the last errors of callbacks and of the handler, at most `ERRORS_MAX`, as texts like `ValueError: its message`.
    """

    def __init__(self, handler: Handler | None = None) -> None:
        self.handler = handler
        self.errors: list[str] = []

    def deliver(self, rm_id: str, callback: object, method: str, response: object) -> None:
        """Pass a response to the callback's method, if it has it; refusals that it does not take reach the handler.

        Whether the method is overridden is checked each time, so that one that is set on the object later counts.
        """
        if callback is not None and hasattr(callback, method):
            try:
                getattr(callback, method)(response)
            except Exception as error:  # noqa: BLE001  a callback's error changes nothing here
                self.failed(rm_id, method, error)
        refused = [refusal for field in REFUSALS for refusal in getattr(response, field, ())]
        if refused and not takes(callback, method):
            for refusal in refused:
                self._tell(Incident("refusal", rm_id, _words(refusal), method, refusal=refusal))

    def failed(self, rm_id: str, method: str, error: Exception) -> None:
        """Make an incident of an exception that a method of a callback raised."""
        self._tell(Incident("callback error", rm_id, f"{method} raised {self._keep(error)}", method, error=error))

    def passed_over(self, rm_id: str, text: str) -> None:
        """Make an incident of a part of a request that was ignored; `text` says which part, and why."""
        self._tell(Incident("ignored", rm_id, text))

    def _tell(self, incident: Incident) -> None:
        handlers = [self.handler] if self.handler is not None else _default.incident_handlers[-1:]
        try:
            for handler in handlers:
                handler(incident)
        except Exception as error:  # noqa: BLE001  a handler's error changes nothing either
            self._keep(error)

    def _keep(self, error: Exception) -> str:
        text = describe(error)
        self.errors.append(text)
        del self.errors[:-ERRORS_MAX]
        return text


def describe(error: Exception) -> str:
    """Return type and text of an exception, even of one that raises when it is converted to text."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  it may be anything
        return type(error).__name__


def takes(callback: object, method: str) -> bool:
    """Tell whether a callback has a method of its own, rather than that of the base class, which does nothing."""
    return callback is not None and overrides(callback, method)


_SUBJECTS: Mapping[str, str] = {
    "allocation_key": "allocation", "application_id": "application", "node_id": "node",
}  # fmt: skip


def _words(refusal: Refusal) -> str:
    """Describe a refusal in one line, such as `allocation 'k' of application 'a' was refused: reason`."""
    names = [f"{what} {getattr(refusal, field)!r}" for field, what in _SUBJECTS.items() if hasattr(refusal, field)]
    return f"{' of '.join(names)} was refused: {refusal.reason}"
