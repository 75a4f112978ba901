"""Where claims keep asks off for terms of pods, remembered: `Claims.keep_off` finds it once for all nodes and all asks alike.

One more pod changes a check of an ask with a claim by the count of one topology domain. So it is enough to know those domains,
not each node; a thousand asks that wait on as many nodes would else be compared with each claim and node, at each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec

if TYPE_CHECKING:
    from licorne.core.nodes.domains import DomainCount


class KeptOff:
    """Where claims keep some asks off, by what counts their pods.

    `shut`: domains in which one more pod shuts out an ask with a claim. `first`: a pod in any other domain than this would be
    the first of an affinity. `stays`: others count on the ask's own claim. `amounts`: the last ones for which no node was left,
    at this `generation` of the node index.
    """

    def __init__(self) -> None:
        self.shut: dict[DomainCount, dict[int, None]] = {}
        self.first: list[tuple[DomainCount, int]] = []
        self.stays: bool = False
        self.amounts: Vec = Vec()
        self.generation: int = -1

    def at(self, slot: int) -> bool:
        """Return whether they are kept off the node of a slot."""
        shut = (count for count, domains in self.shut.items() if count.key.domain_of[slot] in domains)
        return any(slot not in count.absent for count in shut) or any(
            count.key.domain_of[slot] != domain and any(one.key.domain_of[slot] for one in count.others)
            for count, domain in self.first
        )
