"""Answers to questions about a cluster, given by a scheduler in the same state: a copy of the core, fed something else.

    pods            the pod that an ask or allocation stands for
    changes         what may be changed so that an ask runs, and how it is said
    asks            changes of the ask itself and of its gang, as messages
    applied         changes, made on a copy
    repairs         what may be done about each reason for which an ask waits
    budget          how much the trials of one question may cost, in counted steps
    trials          whether an ask would be placed after such changes, tried on a copy
    proposals       the smallest changes with which an ask would run, each proved by a trial
    chain           what stands between an ask and a node, from root to node
    weighed         what preferences weigh for an ask that runs
    shares          who has what of which guarantee and max, and who borrows from whom
    hours           what queues, users and groups have used over a time of a recording
    written         proposals as parts of the configuration, or as commands
    timeline        shares against guarantees and decisions over a time, as a service notes them or a recording has them
    recorded        a moment of a recording, to ask about
    partitions      what `config check --from` compares a configuration with: capacity, pods, applications, and placement rules
    above_max       queues that use more than their max, and what becomes of that
    explained       `licorne.explain` and `licorne.shares`: questions of a Python program, to any source
    process         questions about a state dump, answered in a process of their own (`__main__`) while a service decides
    following       the same in a process that follows the scheduler of a service (`licorne.host.follower`)
    why             why an ask, an application, or everything that waits does so

A question is asked of a copy, so no answer changes the scheduler that decides.
"""

from __future__ import annotations

from licorne.answers.partitions import running_partitions
from licorne.answers.shares import shares
from licorne.answers.trials import Home
from licorne.answers.why import ApplicationAnswer, AskAnswer, Overview, why

__all__ = [
    "ApplicationAnswer",
    "AskAnswer",
    "Home",
    "Overview",
    "running_partitions",
    "shares",
    "why",
]
