"""Asks and allocations are released (spec scheduler-interface.md, section 7.3; scheduling.md, section 14)."""

from __future__ import annotations

from typing import Any

import cython

from licorne.si.messages import Release, Termination

from .nodechanges import remove_foreign

if cython.compiled:
    from cython.cimports.licorne.core.accounting import Books
    from cython.cimports.licorne.core.application import Application
    from cython.cimports.licorne.core.asks import Ask
else:
    from .accounting import Books
    from .application import Application
    from .asks import Ask

Partition = Any  # licorne.core.partition.Partition, which is built upon this module
_CONFIRMATIONS = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)


def release(partition: Partition, message: Release) -> None:
    """An allocation, an ask, or all that an application has, ends; what is unknown is ignored."""
    app_id = message.application_id
    if not app_id and message.what == "both":
        remove_foreign(partition, message.key)
        return
    app = partition.applications.get(app_id) if app_id else _owner(partition, message)
    if app is None:
        return
    if app.gang is not None:
        partition.replacement.withdraw(app, message)
    if message.what != "ask":
        wanted = message.uuid if message.what == "allocation" else message.key
        if wanted:
            alloc = app.allocations.get(wanted)
            allocations = [] if alloc is None else [alloc]
        else:
            allocations = list(app.allocations.values())
        for alloc in allocations:
            end_allocation(partition, app, alloc, message.termination)
    if message.what == "ask" or (message.what == "both" and message.termination is not Termination.TIMEOUT):
        ask = app.asks.get(message.key)
        asks = ([] if ask is None else [ask]) if message.key else list(app.asks.values())
        for ask in asks:
            partition.drop_ask(app, ask)
        if asks:
            partition.lifecycle.emptied(app)
    partition.changed = True


def _owner(partition: Partition, message: Release) -> Application | None:
    """Whose ask or allocation it is that a release of the seed's dialect names by key or UUID alone."""
    app: Application
    for app in partition.applications.values():
        if (message.what == "ask" and message.key in app.asks) or (message.uuid and message.uuid in app.allocations):
            return app
    return None


def end_allocation(partition: Partition, app: Application, alloc: Ask, termination: Termination) -> None:
    """Free what it uses; echoed unless it confirms a release that the core asked for."""
    if app.gang is not None:
        partition.replacement.ended(app, alloc, termination)
        return
    books: Books = partition.books
    books.give_back(app, alloc)
    if termination not in _CONFIRMATIONS:
        partition.say_released(alloc, Termination.STOPPED_BY_RM, "allocation remove as per RM request")
    partition.lifecycle.emptied(app)
