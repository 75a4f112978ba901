"""The workloads of the benchmark, made from a seed: adversarial by design, and the same bytes whenever they are made.

They are not scenarios (`licorne.workload.scenarios`), which people write: figures of different dates are compared, so neither what is drawn
nor its order may ever change, and what makes a case slow is the shape of each single pod.

generate        cases of one moment: the comparison with yunikorn-core, and bigger ones
queuetree       the queues of the case `tree`
contended       cases with times: gangs and evictions
week            the demonstration's week, `examples/demo/week.jsonl`
"""

from __future__ import annotations

from bench.workloads.contended import CONTENDED, contended
from bench.workloads.generate import Options, benchmark
from bench.workloads.week import week
from licorne.workload.workload import OptionError, Workload


def make(case: str, options: Options) -> Workload:
    """Make the workload of a case.

    Raises:
        OptionError: there is no such case, or it does not have an option, or not with this value.
    """
    if case in CONTENDED:
        return contended(case, options)
    if case != "week":
        return benchmark(case, options)
    if options != Options(seed=options.seed):
        raise OptionError("the case week has no options but seed")
    return week(options.seed)


__all__ = ["make"]
