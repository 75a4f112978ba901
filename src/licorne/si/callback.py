"""The resource manager's side of the in-process API: what the scheduler may call, and when.

One base class serves both dialects. A resource manager overrides the methods of the dialect in which it registered
(three of the 1.9 interface, or one of the first) and whichever plugins it offers. A plugin that is not offered must
cost nothing: a predicate would be called for each pair of ask and node, so the scheduler finds out once, with
`overrides`, whether there is anything to call. An exception from a method is logged by the caller and changes nothing,
unless the description of a plugin says otherwise.

Source: *Scheduler Interface Spec*, "API Interface" and "Scheduler plugin"; docs/spec/scheduler-interface.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from licorne.si import first, v19


class ResourceManagerCallback:
    """Base class of resource managers; every method does nothing here.

    A method must not call the scheduler's API: the step that called the method is still under way.
    """

    # -- the 1.9 interface

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Receive decisions, releases or refusals, one of these kinds in a response, in the order of decision."""

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """Receive the verdicts on the new applications of one request, or applications that entered another state."""

    def update_node(self, response: v19.NodeResponse) -> None:
        """Receive the verdicts on new nodes."""

    # -- the first interface

    def recv_update_response(self, response: first.UpdateResponse) -> None:
        """Receive all outputs of a step. RESYNC in `action` means: stop, and register again."""

    # -- plugins of both

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        """May this ask run on this node? None: yes. A text, or an exception: no, and why.

        Called before an allocation (`args.allocate` true), and before a reservation or a placeholder's replacement
        on the placeholder's own node (false). Must answer the same when asked the same between two inputs.
        """
        return None

    def send_event(self, events: Sequence[v19.EventRecord] | Sequence[first.EventRecord]) -> None:
        """Receive the events since the last call, in order.

        Called every two seconds if there are any events and tracking is on.
        """

    def update_container_scheduling_state(
        self, request: v19.UpdateContainerSchedulingStateRequest | first.UpdateContainerSchedulingStateRequest
    ) -> None:
        """Learn that a pending ask fits its quotas and limits but no node has room for it: a reason to add nodes.

        The state in the message is FAILED. Asks are looked through every second, and it is called at most once for an ask.
        """

    # -- plugins of 1.9

    def preemption_predicates(self, args: v19.PreemptionPredicatesArgs) -> v19.PreemptionPredicatesResponse:
        """Would the ask fit on the node without the victims 0 to i? Called while preemption looks for victims.

        Try first without all of `preempt_allocation_keys[:start_index]`, then without one more at a time; `index` is
        the victim at which it fits. Called only if overridden; the answer here is that the resources alone decide.
        """
        return v19.PreemptionPredicatesResponse(success=True, index=args.start_index)

    def get_state_dump(self) -> str:
        """Return a JSON object that becomes `rmDiagnostics` in the full state dump. Called when a dump is requested.

        If the answer is not a JSON object, or the method raises, the dump has the text `rmDiagnostics.error` instead.
        """
        return "{}"

    # -- plugins of the first interface

    def re_sync_scheduler_cache(self, args: first.ReSyncSchedulerCacheArgs) -> None:
        """Receive the allocations to assume (new ones) and to forget (ended ones) since the last call.

        Called before the responses that report these allocations, and before a predicate is asked if there is something
        new. A resource manager of the 1.9 interface may override it too.
        """

    def update_configuration(self, request: first.UpdateConfigurationRequest) -> first.UpdateConfigurationResponse:
        """Save this configuration, and answer with the one it replaces.

        Called by `SchedulerAPI.change_configuration` with a text that has been checked, before it is applied. If the
        answer lacks `success`, or the method raises, the configuration is not applied.
        """
        return first.UpdateConfigurationResponse(success=False, reason="this resource manager saves no configuration")


def overrides(callback: object, method: str) -> bool:
    """Return whether the resource manager offers this method itself rather than inherits the one that does nothing.

    True also for an object of any other class that has the method, and for a method set on the instance. Meant to be
    called once at registration, not before each call.
    """
    if method in getattr(callback, "__dict__", ()):
        return True
    offered = getattr(type(callback), method, None)
    return offered is not None and offered is not getattr(ResourceManagerCallback, method, None)
