"""The optional plugins of a resource manager, which are methods of its callback, and how they are called.

Whether a resource manager has a plugin is found out once, at registration (`licorne.si.callback.overrides`); a missing
plugin costs nothing afterwards. Only two kinds of plugin influence the scheduler: predicates, and the saving of a
configuration, which may fail. An exception of a plugin becomes an incident, and otherwise counts as no answer.

**Cache sync.** A resource manager whose predicates read a scheduler cache of its own must learn of an allocation before
it is asked about the next one, or two pods that exclude each other land on one node. Responses come too late for that:
they are delivered at the end of a call, after all its decisions. So the changes since the last sync are sent before
each predicate, and before the responses (*Scheduler Interface Spec*, "Scheduler plugin"). Each new allocation is sent
as assumed, each that has ended as forgotten. An allocation that the core asks the resource manager to end is not
forgotten before the resource manager confirms the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from licorne.si import first, v19
from licorne.si.callback import ResourceManagerCallback, overrides
from licorne.si.events import Event, first_records, v19_records
from licorne.si.messages import NewAllocation, Output, Released, Termination

from .incidents import describe

if TYPE_CHECKING:
    from .manager import RegisteredManager
    from .partition import Predicate, PreemptionPredicate

Note = Callable[[str, Exception], None]
"""A function that takes the name of a plugin and the exception that it raised."""


class Answered(Protocol):
    """A function that takes the answer of a predicate."""

    def __call__(self, *, allowed: bool) -> None:
        """Take the answer."""


class Plugins:
    """The plugins of one resource manager.

    `listens`: it takes records of events. `saves`: it saves configurations. `asked`: it answers predicates. `syncs`: it
    keeps a scheduler cache. `preempts`: it answers the predicates of preemption. `manager` is set once it is registered.
    `answered`, if it is set, is told each answer of a predicate.
    """

    def __init__(self, callback: ResourceManagerCallback | None, note: Note) -> None:
        self._callback = ResourceManagerCallback() if callback is None else callback
        self._note = note
        self.listens = overrides(callback, "send_event")
        self.saves = overrides(callback, "update_configuration")
        self.asked = overrides(callback, "predicates")
        self.syncs = overrides(callback, "re_sync_scheduler_cache")
        self.preempts = overrides(callback, "preemption_predicates")
        self._dumps = overrides(callback, "get_state_dump")
        self._synced: dict[str, int] = {}  # number of outputs already sent to the cache, by partition
        self.manager: RegisteredManager | None = None
        self.answered: Answered | None = None

    def predicate(self) -> Predicate | None:
        """Return the predicate that decisions call; None if the resource manager has no such plugin."""
        return self._allows if self.asked else None

    def _allows(self, key: str, node_id: str, allocate: bool) -> bool:
        if self.syncs:
            self.sync()
        args = v19.PredicatesArgs(allocation_key=key, node_id=node_id, allocate=allocate)
        try:
            why = self._callback.predicates(args)
        except Exception as error:  # noqa: BLE001  an error is a "no" (docs/spec/scheduler-interface.md, section 5)
            self._note("predicates", error)
            why = describe(error)
        if why and allocate and self.manager is not None and self.manager.store is not None:
            self.manager.refused(key, node_id, why)
        return self._told(not why)

    def preemption_predicate(self) -> PreemptionPredicate | None:
        """Return the predicate that preemption calls; None if the resource manager has no such plugin."""
        return self._fits_without if self.preempts else None

    def _fits_without(self, key: str, node_id: str, victims: list[str]) -> bool:
        if self.syncs:
            self.sync()
        last = len(victims) - 1  # the victim set is chosen already: may the ask run when all of it has ended?
        args = v19.PreemptionPredicatesArgs(
            allocation_key=key, node_id=node_id, preempt_allocation_keys=victims, start_index=last
        )
        try:
            answer = self._callback.preemption_predicates(args)
        except Exception as error:  # noqa: BLE001  an error is a "no", as for predicates
            self._note("preemption_predicates", error)
            return self._told(False)
        return self._told(answer.success and answer.index <= last)

    def _told(self, allowed: bool) -> bool:
        if self.answered is not None:
            self.answered(allowed=allowed)
        return allowed

    # -- the cache -------------------------------------------------------------------------------------

    def sync(self, *, last: bool = False) -> None:
        """Send new and ended allocations to the cache; `last`: the outputs are drained before the next sync."""
        manager = self.manager
        if manager is None or not self.syncs:
            return
        args = first.ReSyncSchedulerCacheArgs()
        for name, out in [("", manager.out), *((p.name, p.out) for p in manager.ordered)]:
            for position in range(self._synced.get(name, 0), len(out)):
                _assume_or_forget(args, out[position])
            self._synced[name] = len(out)
        if last:
            self._synced.clear()
        if args.assumed_allocations or args.forget_allocations:
            self._guarded("re_sync_scheduler_cache", lambda: self._callback.re_sync_scheduler_cache(args))

    # -- the others ------------------------------------------------------------------------------------

    def send(self, events: list[Event], *, first_interface: bool) -> None:
        """Hand records of events to the resource manager, in its dialect."""
        records: Any = first_records(events) if first_interface else v19_records(events)
        if records:
            self._guarded("send_event", lambda: self._callback.send_event(records))

    def save(self, text: str) -> str:
        """Have the resource manager save a configuration; return why it did not, or an empty text if it did."""
        try:
            answer = self._callback.update_configuration(first.UpdateConfigurationRequest(configs=text))
        except Exception as error:  # noqa: BLE001  it may be anything
            self._note("update_configuration", error)
            return f"the resource manager failed to save it: {describe(error)}"
        return "" if answer.success else answer.reason or "the resource manager did not save it"

    def diagnostics(self) -> dict[str, Any] | None:
        """Return what the resource manager adds to a state dump, None if nothing; an error of the plugin as `error`."""
        if not self._dumps:
            return None
        try:
            found = msgspec.json.decode(self._callback.get_state_dump(), type=dict[str, Any])
        except Exception as error:  # noqa: BLE001  it may be anything
            self._note("get_state_dump", error)
            return {"error": describe(error)}
        return found

    def _guarded(self, method: str, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  a callback's error changes nothing here
            self._note(method, error)


def _assume_or_forget(args: first.ReSyncSchedulerCacheArgs, output: Output) -> None:
    if isinstance(output, NewAllocation):
        assumed = first.AssumedAllocation(allocation_key=output.key, node_id=output.node_id)
        args.assumed_allocations.append(assumed)
    elif isinstance(output, Released) and not output.ask and output.termination is Termination.STOPPED_BY_RM:
        args.forget_allocations.append(first.ForgotAllocation(allocation_key=output.key))
