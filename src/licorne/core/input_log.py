"""What a host is told of the inputs of the scheduler, in their order, so that it can record and repeat them.

The core is a function of these inputs alone: a scheduler that is given the same ones makes the same decisions. They are
noted where they enter the cluster (`licorne.core.cluster`), below the dialects of the interface, with every value that
the core does not make itself: the time, configurations and settings as they take effect, and answers of predicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from licorne.si.messages import Input, Output

if TYPE_CHECKING:
    from licorne.si.adapt import Part


class InputLog(Protocol):
    """A listener to the inputs of a scheduler (`SchedulerAPI.input_log`).

    A method is called within the call of the scheduler, and must neither raise nor call the scheduler. Objects that it
    is given may change later, except outputs and bytes.
    """

    def advanced(self, now_ns: int) -> None:
        """Note that a call begins, at this time in nanoseconds."""

    def registered(
        self,
        rm_id: str,
        text: str,
        settings: Mapping[str, str],
        *,
        first_interface: bool,
        predicates: bool,
        preemption_predicates: bool,
        alone: bool,
    ) -> None:
        """Note a registration, with the queue configuration and settings that take effect.

        `predicates`, `preemption_predicates`: the resource manager answers them. `alone`: no other one is registered, so
        the state of the scheduler is that of a new one.
        """

    def reloaded(self, rm_id: str, text: str, settings: Mapping[str, str]) -> None:
        """Note a configuration and settings that are in force from now on."""

    def removed(self, rm_id: str) -> None:
        """Note that a resource manager has ended."""

    def paused(self, rm_id: str, *, paused: bool) -> None:
        """Note that nothing is decided for a resource manager, or that it is again."""

    def ages_restored(self, rm_id: str, ages: object) -> None:
        """Note ages of applications and asks, as data for JSON (`licorne.core.inputs.ages`)."""

    def submitted(self, rm_id: str, inputs: Sequence[Input], refusals: Sequence[Output], part: Part | None) -> None:
        """Note messages of a resource manager, and refusals that are delivered before what they lead to.

        `part` says of which request as bytes they are a part, word for word; None if that is not known.
        """

    def answered(self, *, allowed: bool) -> None:
        """Note the answer of a predicate, before the call of `decided` in which it was asked for."""

    def decided(self, limit: int, made: int) -> None:
        """Note that the cluster has decided, for at most `limit` allocations, and has made `made`."""

    def delivered(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Note messages for a resource manager, which repetition must give again."""
