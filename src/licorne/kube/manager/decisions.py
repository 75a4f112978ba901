"""The callbacks of the scheduler: what follows from its decisions, releases, refusals and verdicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from licorne.si import v19
from licorne.si.callback import ResourceManagerCallback

from .commands import Bind
from .diagnostics import cache, held
from .records import PodRecord
from .stages import PodEvent, Stage

if TYPE_CHECKING:
    from .manager import Manager


class Decisions(ResourceManagerCallback):
    """The callbacks of the scheduler; they turn into commands and into records."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.diagnostics: dict[str, Callable[[], Any]] = {
            "cache": lambda: cache(manager),
            "held": lambda: held(manager),
        }
        """What a state dump has under `rmDiagnostics`, by name."""

    def get_state_dump(self) -> str:
        """Return the diagnostics as JSON."""
        return msgspec.json.encode({name: read() for name, read in self.diagnostics.items()}).decode()

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Take decisions, releases and refusals, each apart: the core would not repeat those after an exception."""
        manager = self._manager
        for new in response.new:
            record = manager.pods.get(new.allocation_key)
            # Else it is the echo of a pod that was reported with its node.
            if record is not None and record.stage is Stage.ASKED:
                manager.run_isolated(record.pod, partial(self._decided, record), new)
        for released in response.released:
            if released.termination_type is not v19.TerminationType.STOPPED_BY_RM:
                record = manager.pods.get(released.allocation_key)
                if record is not None and record.leaving is None:
                    manager.run_isolated(record.pod, partial(manager.evict, record), released)
        for refused in response.rejected_allocations:
            record = manager.pods.get(refused.allocation_key)
            if record is None:
                manager.foreign_refused(refused.allocation_key, refused.reason)
            elif record.stage is not Stage.REFUSED:  # else it has been failed
                manager.run_isolated(record.pod, partial(self._refused, record), refused)

    def _decided(self, record: PodRecord, new: v19.Allocation) -> None:
        manager, meta = self._manager, record.pod.metadata
        manager.decided.append(Bind(meta.namespace, meta.name, meta.uid, new.node_id))
        record.move(PodEvent.DECIDE)
        record.node = new.node_id
        manager.yunikorn_events.decided(record)
        manager.gangs.placed(record)

    def _refused(self, record: PodRecord, refused: v19.RejectedAllocation) -> None:
        manager, application = self._manager, record.application
        if not application.is_known:
            record.move(PodEvent.FORGET)  # its application ended just before; both begin anew
            manager.ended(application)
        elif record.pod.spec.node_name:
            if record.work.ask.placeholder:
                manager.remove_placeholder(record, refused.reason)
            manager.count_as_foreign(record, refused.reason)
        elif record.node:
            if not manager.is_counted(record):  # else only a change was refused
                record.move(PodEvent.FORGET)  # its binding is under way; it is reported when the API server shows it
        elif record.work.ask.placeholder:
            manager.remove_placeholder(record, refused.reason)
        elif application.is_failing:
            record.move(PodEvent.FORGET)
        else:
            manager.refuse(record, refused.reason)

    def update_node(self, response: v19.NodeResponse) -> None:
        """Tell the manager which nodes the scheduler has refused."""
        for refused in response.rejected:
            self._manager.node_refused(refused.node_id, refused.reason)

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """Take verdicts on applications, and their states."""
        manager = self._manager
        for refused in response.rejected:
            application = manager.applications.get(refused.application_id)
            if application is not None:
                application.state = "Rejected"
                application.refusal = refused.reason
        for updated in response.updated:
            application = manager.applications.get(updated.application_id)
            if application is not None:
                application.state = updated.state
                manager.gangs.state_changed(application, updated.message)
                manager.ended(application)
