"""Answers to questions about a cluster, given by a scheduler in the same state: a copy of the core, fed something else.

    source          where a dump comes from: a file, or a running scheduler
    dump            reads the state dump of YuniKorn or licorne, and says what in it is unknown
    configuration   the running configuration, from the form in which REST and dumps have it, to a text
    restored        a scheduler to start from, and what its user must know of it
    restore         a scheduler in the state of a dump, and what had to be assumed for it
    exact           the same of a dump that has a checkpoint, with nothing assumed
    pods            the pod that an ask or allocation stands for
    copies          runs something on a copy of this process
    changes         what may be changed so that an ask runs, and how it is said
    asks            changes of the ask itself and of its gang, as messages
    applied         changes, made on a copy
    repairs         what may be done about each reason for which an ask waits
    budget          how much the trials of one question may cost, in counted steps
    trials          whether an ask would be placed after such changes, tried on a copy
    proposals       the smallest changes with which an ask would run, each proved by a trial
    chain           what stands between an ask and a node, from root to node
    shares          who has what of which guarantee and max, and who borrows from whom
    hours           what queues, users and groups have used over a time of a recording
    partitions      what `config check --from` compares a configuration with: capacity, pods, applications
    workloads       the same of a workload
    rulesused       how many applications each placement rule places
    explained       `licorne.explain` and `licorne.shares`: questions of a Python program, to any source
    process         asks in a process of its own (`__main__`), for services whose loop must go on deciding
    follower        a process that follows the scheduler of a service and answers its questions (`following`)
    why             why an ask, an application, or everything that waits does so

A question is asked of a copy, so no answer changes the scheduler that decides.
"""

from __future__ import annotations

from licorne.answers.dump import Dump, DumpError, read_dump
from licorne.answers.partitions import running_partitions
from licorne.answers.restore import restore
from licorne.answers.restored import Note, Restored, UnknownNameError
from licorne.answers.shares import shares
from licorne.answers.source import SourceError, fetch
from licorne.answers.trials import Home
from licorne.answers.why import ApplicationAnswer, AskAnswer, Overview, why

__all__ = [
    "ApplicationAnswer",
    "AskAnswer",
    "Dump",
    "DumpError",
    "Home",
    "Note",
    "Overview",
    "Restored",
    "SourceError",
    "UnknownNameError",
    "fetch",
    "read_dump",
    "restore",
    "running_partitions",
    "shares",
    "why",
]
