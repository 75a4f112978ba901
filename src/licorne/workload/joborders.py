"""The orders in which a batch system takes jobs: the key of a job, which it has from its arrival on (smaller comes first).

The five are those of the table that RLScheduler (SC '20) published; docs/spec/experiments.md, A.4, gives their sources and
their oddities. WFP3 and UNI are meant to prefer jobs that have waited long, but the published program computes the wait of a
waiting job as -1 - s. The sign turns, and the order is nearly the reverse of the intended one; it is repeated here, because
the table cannot be remade otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log2, log10

Key = float | tuple[float, float]
Order = Callable[[float, float, float], Key]
"""Takes the submission in seconds, the requested time in seconds and the processors, and returns the key."""


def fcfs(submit_s: float, requested_s: float, processors: float) -> Key:  # noqa: ARG001  # all orders take the same
    """First come, first served."""
    return submit_s


def sjf(submit_s: float, requested_s: float, processors: float) -> Key:  # noqa: ARG001  # all orders take the same
    """Shortest job first; equally short ones in the order of arrival."""
    return requested_s, submit_s


def f1(submit_s: float, requested_s: float, processors: float) -> Key:
    """The function F1 of Carastan-Santos and de Camargo (SC '17); 0.1 stands for what is not positive."""
    return log10(_positive(requested_s)) * processors + 870 * log10(_positive(submit_s))


def wfp3(submit_s: float, requested_s: float, processors: float) -> Key:
    """WFP3 of Tang et al. (CLUSTER '09), with the turned sign of the published program."""
    return processors * _quotient(1 + submit_s, requested_s) ** 3


def uni(submit_s: float, requested_s: float, processors: float) -> Key:
    """UNICEF of Tang et al. (CLUSTER '09), with the turned sign of the published program."""
    return _quotient(1 + submit_s, log2(processors + 1e-15) * requested_s)


ORDERS: dict[str, Order] = {"fcfs": fcfs, "sjf": sjf, "f1": f1, "wfp3": wfp3, "uni": uni}
"""By the name that a configuration gives to them (`licorne.config.simulation.JOB_ORDERS`)."""
NEED_ESTIMATE = frozenset(ORDERS) - {"fcfs"}
"""The orders that look at the requested time."""


def _positive(value: float) -> float:
    return value if value > 0 else 0.1


def _quotient(above: float, below: float) -> float:
    return above / below if below else inf
