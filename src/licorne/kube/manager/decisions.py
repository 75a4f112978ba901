"""What the scheduler says: what follows from its decisions, releases, refusals and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from licorne.si.callback import ResourceManagerCallback
from licorne.si.messages import (
    NewAllocation,
    Output,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
    Released,
    Termination,
    UpdatedApplication,
)

from .commands import Bind
from .diagnostics import cache, held
from .records import ApplicationRecord, PodRecord
from .stages import PodEvent, Stage

if TYPE_CHECKING:
    from .manager import Manager


class Decisions(ResourceManagerCallback):
    """Turns the messages of the scheduler into commands and into records; as its callback, adds to a state dump."""

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

    def take(self, outputs: Iterable[Output]) -> None:
        """Take what the scheduler says, each apart: the core would not repeat the others after an exception about one pod."""
        manager = self._manager
        for output in outputs:
            match output:
                case NewAllocation():
                    record = manager.pods.get(output.key)
                    # Else it is the echo of a pod that was reported with its node.
                    if record is not None and record.stage is Stage.ASKED:
                        manager.run_isolated(record.pod, partial(self._decided, record), output)
                case Released():
                    record = manager.pods.get(output.key)
                    wanted = output.termination is not Termination.STOPPED_BY_RM
                    if wanted and record is not None and record.leaving is None:
                        manager.run_isolated(record.pod, partial(manager.evict, record), output)
                case RejectedAllocation():
                    record = manager.pods.get(output.key)
                    if record is None:
                        manager.foreign_refused(output.key, output.reason)
                    elif record.stage is not Stage.REFUSED:  # else it has been failed
                        manager.run_isolated(record.pod, partial(self._refused, record), output)
                case RejectedNode():
                    manager.node_refused(output.node_id, output.reason)
                case RejectedApplication() | UpdatedApplication():
                    application = manager.applications.get(output.application_id)
                    if application is not None:
                        self._application_changed(application, output)

    def _decided(self, record: PodRecord, new: NewAllocation) -> None:
        manager, meta = self._manager, record.pod.metadata
        manager.decided.append(Bind(meta.namespace, meta.name, meta.uid, new.node_id))
        record.move(PodEvent.DECIDE)
        record.node = new.node_id
        manager.yunikorn_events.decided(record)
        manager.gangs.placed(record)

    def _refused(self, record: PodRecord, refused: RejectedAllocation) -> None:
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

    def _application_changed(
        self, application: ApplicationRecord, output: RejectedApplication | UpdatedApplication
    ) -> None:
        if isinstance(output, RejectedApplication):
            application.state = "Rejected"
            application.refusal = output.reason
        else:
            application.state = output.state
            self._manager.gangs.state_changed(application, output.message)
            self._manager.ended(application)
