"""The resource manager's side of the in-process API: what the scheduler may call, and when.

One base class serves both dialects. A resource manager overrides the methods of the dialect in which it registered
(three of the 1.9 interface, or one of the first) and whichever plugins it offers. A plugin that is not offered must
cost nothing: a predicate is asked for each ask and node, so the scheduler finds out once, with `overrides`, whether
there is anything to call. An exception from a method is logged by the caller and changes nothing, save where a plugin
says otherwise.

Source: *Scheduler Interface Spec*, "API Interface" and "Scheduler plugin"; docs/spec/scheduler-interface.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from licorne.si import first, v19


class ResourceManagerCallback:
    """Base class of resource managers; every method does nothing here.

    Methods must not call the scheduler's API back before they return: the step that called them is still under way.
    """

    # -- the 1.9 interface

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Decisions, ends and refusals. A response holds items of one of the three kinds, in order of decision."""

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """The verdicts on the new applications of one request, or applications that entered another state."""

    def update_node(self, response: v19.NodeResponse) -> None:
        """The verdicts on new nodes."""

    # -- the first interface

    def recv_update_response(self, response: first.UpdateResponse) -> None:
        """All that the scheduler has to say after a step. RESYNC in `action`: stop, and register again."""

    # -- plugins of both

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        """May this ask run on this node? None: yes. A text, or an exception: no, and why.

        Called before an allocation (`args.allocate` true), and before a reservation or a placeholder's replacement
        on the placeholder's own node (false). Must answer the same when asked the same between two inputs.
        """
        return None

    def send_event(self, events: Sequence[v19.EventRecord] | Sequence[first.EventRecord]) -> None:
        """Events since the last call, in order. Called every two seconds, if there are any and tracking is on."""

    def update_container_scheduling_state(
        self, request: v19.UpdateContainerSchedulingStateRequest | first.UpdateContainerSchedulingStateRequest
    ) -> None:
        """A pending ask fits its quotas but no node has room for it (state FAILED): a reason to add nodes.

        Called at most once for an ask, by a scan each second.
        """

    # -- plugins of 1.9

    def preemption_predicates(self, args: v19.PreemptionPredicatesArgs) -> v19.PreemptionPredicatesResponse:
        """Would the ask fit on the node without the victims 0 to i? Called while preemption looks for victims.

        Try first without all of `preempt_allocation_keys[:start_index]`, then without one more at a time; `index` is
        the victim at which it fits. Called only if overridden; the answer here is that the resources alone decide.
        """
        return v19.PreemptionPredicatesResponse(success=True, index=args.start_index)

    def get_state_dump(self) -> str:
        """A JSON object that becomes `rmDiagnostics` in the full state dump. Called when such a dump is asked for.

        What is no JSON object, and an exception, become the text `rmDiagnostics.error`.
        """
        return "{}"

    # -- plugins of the first interface

    def re_sync_scheduler_cache(self, args: first.ReSyncSchedulerCacheArgs) -> None:
        """Allocations to assume and to forget since the last call: new ones, and those that have ended.

        Called before the responses that tell of them, and before a predicate is asked while there is something new. A
        resource manager of the 1.9 interface may override it too.
        """

    def update_configuration(
        self,
        request: first.UpdateConfigurationRequest,
    ) -> first.UpdateConfigurationResponse:
        """Save this configuration, and answer with the one it replaces.

        Called by `SchedulerAPI.change_configuration` with a text that has been checked, before it is applied. Without
        `success` in the answer, or with an exception, nothing changes.
        """
        return first.UpdateConfigurationResponse(success=False, reason="this resource manager saves no configuration")


def overrides(callback: object, method: str) -> bool:
    """Whether the resource manager offers this method itself, rather than inherits the one that does nothing.

    True also for an object of any other class that has the method, and for one set on the instance. Meant to be asked
    once at registration, and not before each call.
    """
    if method in getattr(callback, "__dict__", ()):
        return True
    offered = getattr(type(callback), method, None)
    return offered is not None and offered is not getattr(ResourceManagerCallback, method, None)
