"""A scheduler that was restored as a starting point for answers, and what a reader must know of how that was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from licorne.core.api import SchedulerAPI
from licorne.core.partition import Partition
from licorne.si import messages
from licorne.si.rest_objects import LogEntry


class UnknownNameError(LookupError):
    """Nothing has this name, or several things have; the text names what there is."""


class Note(msgspec.Struct, frozen=True):
    """Something about a dump that a reader of the answer must know.

    `kind`: `assumed` (the dump does not say it), `left out` (it could not be taken over), `differs` (the restored
    scheduler shows another value than the dump), `unknown` (the dump says something that the specification has not),
    `missing` (the dump does not have what the specification always has), or `above max` (a queue uses more than its max).
    `count`: how many objects it concerns, 0 if it concerns all. `examples`: some of their names.
    """

    kind: str
    text: str
    count: int = 0
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the note as a line: kind, text, how many objects it concerns, and some of their names."""
        names = ", ".join(self.examples) + (", …" if self.count > len(self.examples) else "")
        return f"{self.kind}: {self.text}" + (f" ({self.count}: {names})" if self.count else "")


class Restored(msgspec.Struct, frozen=True):
    """A scheduler in the state of a dump, at the time of the dump; no decision has been made since.

    `rm_id` is the resource manager of the dump, and `config` its queue configuration as a text. What the scheduler
    announces goes to the handler of `outputs`. `held`: why the resource manager does not ask for pods that it knows, by
    namespace and name; "" where that is not said. `has_constraints`: whether the state may say on which nodes a pod may run;
    YuniKorn's never does. `logs`: where it does not, what the scheduler itself has noted of each waiting ask, by application
    and key.
    """

    api: SchedulerAPI
    rm_id: str
    now_ns: int
    config: str
    notes: tuple[Note, ...]
    outputs: Outputs
    held: Mapping[str, str] = {}
    has_constraints: bool = True
    logs: Mapping[tuple[str, str], tuple[LogEntry, ...]] = {}

    @property
    def partitions(self) -> list[Partition]:
        """The partitions of the resource manager, by name."""
        return list(self.api.cluster.managers[self.rm_id].ordered)

    def chosen(self, name: str) -> list[Partition]:
        """Return the partition with this name, or all of them if it is empty.

        Raises:
            UnknownNameError: there is none.
        """
        found = [each for each in self.partitions if name in ("", each.name)]
        if not found:
            known = ", ".join(each.name for each in self.partitions)
            raise UnknownNameError(f"there is no partition {name!r}; there are: {known}")
        return found


class Outputs:
    """Takes what the scheduler announces. `handler` gets each output; None: they are passed over."""

    def __init__(self) -> None:
        self.handler: Callable[[messages.Output], object] | None = None

    def __call__(self, rm_id: str, outputs: Iterable[messages.Output]) -> None:
        """Hand on the outputs for the resource manager."""
        if self.handler is not None:
            for output in outputs:
                self.handler(output)
