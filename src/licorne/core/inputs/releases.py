"""Releases of asks and allocations.

Source: docs/spec/scheduler-interface.md, section 7.3; docs/spec/scheduling.md, section 14.

In a full cluster there is one release for each decision, which is why this file is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._plain import cython
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.scheduling.descent import Descent
from licorne.core.waiting.accounting import Accounting
from licorne.si.allocations import Release, Released
from licorne.si.messages import Termination

from .lifecycle import Lifecycle
from .node_changes import remove_foreign

if TYPE_CHECKING:
    # partition imports this module; here, compiled, it is an untyped object
    from licorne.core.partition import Partition


# Globals, because looking up a member of an enumeration is slow.
UNKNOWN = Termination.UNKNOWN
STOPPED_BY_RM = Termination.STOPPED_BY_RM
TIMEOUT = Termination.TIMEOUT


@cython.cclass
class Releases:
    """The input of releases of one partition; cold operations are delegated to the partition."""

    partition: Partition
    applications: dict[str, Application]
    accounting: Accounting
    descent: Descent
    lifecycle: Lifecycle
    partition_name: str

    def __init__(self, partition: Partition, applications: dict[str, Application]) -> None:
        self.partition = partition
        self.applications = applications
        self.accounting = partition.accounting
        self.descent = partition.descent
        self.lifecycle = partition.lifecycle
        self.partition_name = partition.name

    @cython.ccall
    def take(self, message: Release) -> cython.void:
        """Release an allocation, an ask, or all of an application; unknown ones are ignored."""
        app: Application | None
        if message.application_id:
            app = self.applications.get(message.application_id)
        elif message.what == "both":
            remove_foreign(self.partition, message.key)
            return
        else:
            app = self._owner(message)
        if app is None:
            return
        if app.gang is not None:
            self.partition.replacement.withdraw(app, message)
        if message.what != "ask":
            self._end_allocations(app, message)
        if message.what == "ask" or (message.what == "both" and message.termination is not TIMEOUT):
            self._drop_asks(app, message.key)

    @cython.cfunc
    def _owner(self, message: Release) -> Application | None:
        """Find the application of an ask or allocation that a release names by key or UUID alone (first interface)."""
        app: Application
        for app in self.applications.values():
            if (message.what == "ask" and message.key in app.asks) or (
                message.uuid and message.uuid in app.allocations
            ):
                return app
        return None

    @cython.cfunc
    def _end_allocations(self, app: Application, message: Release) -> cython.void:
        """End the allocation that a release names; if it names none, all allocations of the application."""
        alloc: Ask | None
        wanted: str = message.uuid if message.what == "allocation" else message.key
        if wanted:
            alloc = app.allocations.get(wanted)
            if alloc is not None:
                self._end(app, alloc, message.termination)
            return
        for alloc in list(app.allocations.values()):
            self._end(app, alloc, message.termination)

    @cython.cfunc
    def _end(self, app: Application, alloc: Ask, termination: Termination) -> cython.void:
        """End an allocation, and echo the release unless it confirms one that the core has asked for."""
        if app.gang is not None:
            self.partition.replacement.ended(app, alloc, termination)
            return
        self.accounting.remove_allocation(app, alloc)
        if termination is STOPPED_BY_RM or termination is UNKNOWN:
            self.notify_released(alloc, STOPPED_BY_RM, "allocation remove as per RM request")
        self.lifecycle.emptied(app)

    @cython.cfunc
    def _drop_asks(self, app: Application, key: str) -> cython.void:
        """Drop the pending ask of this key; with an empty key, all pending asks."""
        ask: Ask | None
        if not app.asks:
            return
        if key:
            ask = app.asks.get(key)
            if ask is None:
                return
            self.partition.drop_ask(app, ask)
        else:
            for ask in list(app.asks.values()):
                self.partition.drop_ask(app, ask)
        self.lifecycle.emptied(app)

    @cython.ccall
    def notify_released(self, alloc: Ask, termination: Termination, text: str) -> cython.void:
        """Append the message that an allocation has ended, or that the resource manager must end it."""
        message: Released = Released.__new__(Released)
        message.key = alloc.key
        message.application_id = cython.cast(Application, alloc.app).id
        message.termination = termination
        message.message = text
        message.partition = self.partition_name
        message.uuid = "" if alloc.id == alloc.key else alloc.id
        message.ask = False
        self.descent.out.append(message)
