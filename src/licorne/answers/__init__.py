"""Answers to questions about a cluster, given by a scheduler in the same state: a copy of the core, fed something else.

    dump            reads the state dump of YuniKorn or licorne, and says what in it is unknown
    configuration   the running configuration, from the form in which REST and dumps have it, to a text
    restore         a scheduler in the state of a dump, and what had to be assumed for it

A question is asked of a copy, so no answer changes the scheduler that decides.
"""

from __future__ import annotations

from licorne.answers.dump import Dump, DumpError, read_dump
from licorne.answers.restore import Note, Restored, restore

__all__ = ["Dump", "DumpError", "Note", "Restored", "read_dump", "restore"]
