"""The stages of a pod as a table `(stage, event) -> stage`, as the core has tables of its states (`licorne.core.base.states`).

The table holds no actions: what is told to the scheduler or the API server stands where the event is noticed. An event that
has no row for a pod's stage is a fault of licorne: `PodRecord.move` raises an exception.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """Where a pod is on its way.

    The scheduler knows a pod that is ASKED, AWAITS_CLAIMS, ASSUMED or BOUND. What it takes is counted from its decision on,
    before the binding is sent, until the API server says that the pod is gone.
    """

    HELD = "held"
    """Not asked for: it has gates, a fault, or a part that is not supported, its gang has no room yet or its application fails, or its namespace or priority class is not known yet."""
    ASKED = "asked"
    """Waits for a decision."""
    AWAITS_CLAIMS = "awaits claims"
    """Has a node, and claims that get volumes or devices for it; no binding is sent before they have."""
    ASSUMED = "assumed"
    """Has a node, and the API server has not shown the binding yet."""
    BOUND = "bound"
    """Has a node, as the API server says."""
    UNBOUND = "unbound"
    """Could not be bound, and is asked for again in a while."""
    NODE_UNKNOWN = "node unknown"
    """Has a node that the scheduler does not know (any more), so the scheduler does not know the pod either."""
    REFUSED = "refused"
    """The scheduler has refused it, or it is set aside for a fault of licorne, until it is changed; or it fails with its application."""


class PodEvent(StrEnum):
    """What moves a pod to another stage, or leaves it where it is."""

    HOLD = "must wait"
    ASK = "is asked for"
    DECIDE = "gets a node"
    RESERVE = "gets a node, and its claims not yet"
    COMPLETE = "has all that its claims are to get"
    SEE = "is shown on a known node"
    COUNT = "counts before it is shown"
    """It is reported with the node that was decided, because that is known again, or because its amounts have changed."""
    LOSE = "its node is unknown"
    UNBIND = "was not bound"
    FORGET = "is unknown"
    """The scheduler does not know the pod: it has refused the pod or its application, or the application had completed before."""
    REFUSE = "its ask is refused"
    FAIL = "fails with its application"
    SET_ASIDE = "raises an exception"


WAITING: Final = (Stage.HELD, Stage.ASKED, Stage.UNBOUND)
ON_THE_WAY: Final = (Stage.AWAITS_CLAIMS, Stage.ASSUMED)
COUNTED: Final = (*ON_THE_WAY, Stage.BOUND)
PLACED: Final = (*COUNTED, Stage.NODE_UNKNOWN)
_S, _E = Stage, PodEvent
_ROWS: Final[tuple[tuple[PodEvent, tuple[Stage, ...], Stage], ...]] = (
    (_E.HOLD, (*WAITING, _S.REFUSED), _S.HELD),
    (_E.ASK, WAITING, _S.ASKED),
    (_E.DECIDE, (_S.ASKED,), _S.ASSUMED),
    (_E.RESERVE, (_S.ASKED,), _S.AWAITS_CLAIMS),
    (_E.COMPLETE, (_S.AWAITS_CLAIMS,), _S.ASSUMED),
    (_E.SEE, tuple(Stage), _S.BOUND),
    (_E.COUNT, (_S.HELD, _S.ASSUMED, _S.NODE_UNKNOWN), _S.ASSUMED),
    (_E.COUNT, (_S.AWAITS_CLAIMS,), _S.AWAITS_CLAIMS),
    (_E.LOSE, tuple(Stage), _S.NODE_UNKNOWN),
    (_E.UNBIND, (_S.HELD, *ON_THE_WAY, _S.NODE_UNKNOWN), _S.UNBOUND),
    (_E.FORGET, (_S.HELD, _S.ASKED, _S.ASSUMED, _S.BOUND, _S.NODE_UNKNOWN), _S.HELD),
    (_E.REFUSE, (_S.ASKED,), _S.REFUSED),
    (_E.FAIL, WAITING, _S.REFUSED),
    (_E.SET_ASIDE, (*WAITING, *ON_THE_WAY, _S.REFUSED), _S.REFUSED),
)
STAGES: Final = {(source, event): target for event, sources, target in _ROWS for source in sources}
"""The stage that follows; a pod begins HELD."""
