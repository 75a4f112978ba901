"""Warnings about what nothing in a scenario matches: labels that no node has, and queues that take no application.

Both are most often a slip of the pen, and a simulation shows them only at its end, as pods that were never placed and applications
that were rejected. They are warnings, since they can be meant, and since a scenario can be simulated with other queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from licorne._wording import counted
from licorne.config import Configuration
from licorne.config.model import PartitionConfig, QueueConfig
from licorne.core.inputs.admission import identity
from licorne.core.placement.placer import PlacementRequest, Placer, is_forced
from licorne.core.placement.static_tree import StaticTree
from licorne.workload.scenarios.document import Arrivals, Document, Pool, Preferences
from licorne.workload.scenarios.terms import OWN
from licorne.workload.scenarios.values import filled
from licorne.workload.yaml_files.faults import Path
from licorne.workload.yaml_files.reading import Problems

if TYPE_CHECKING:
    from licorne.workload.scenarios.plan import Class, Person

HOSTNAME: Final = "si/hostname"
"""The label that every node has, with its own name."""
PEOPLE_LOOKED_AT: Final = 10_000
"""Users of a class, at most, for whom a queue is looked for: those of the first names."""
NAMES_SHOWN: Final = 10


def warn_of_labels(document: Document, problems: Problems) -> None:
    """Warn of each label and value that a class of pods accepts and no pool has, and of labels that no pool has together."""
    pools = list(document.cluster.values())
    for name, given in document.arrivals.items():
        path = ("arrivals", name, "nodes")
        accepted = {key: [value] if isinstance(value, str) else value for key, value in given.nodes.items()}
        accepted.pop(HOSTNAME, None)
        all_known = True
        for key, values in accepted.items():
            known = sorted({pool.labels[key] for pool in pools if key in pool.labels})
            for index, value in enumerate(values):
                if value not in known:
                    all_known = False
                    at: Path = (*path, key) if isinstance(given.nodes[key], str) else (*path, key, index)
                    problems.warn(at, _no_such_label(key, value, known, pools))
        if all_known and not any(_matches(pool, accepted) for pool in pools):
            problems.warn(path, "no pool of the cluster has all of these labels")


def check_terms(document: Document, problems: Problems) -> None:
    """Note each class that terms of another name and that there is none of, and warn of each label that no node has."""
    labels = sorted({HOSTNAME, *(label for pool in document.cluster.values() for label in pool.labels)})
    for name, given in document.arrivals.items():
        for kind, terms in _terms_of(given):
            for key, which in terms.items():
                path: Path = ("arrivals", name, *kind, key)
                if isinstance(which, str) and which not in (OWN, *document.arrivals):
                    known = _listed([OWN, *document.arrivals])
                    problems.note(path, f"is no class of applications: {which!r}; known are {known}")
                if key not in labels:
                    problems.warn(path, f"no node has the label {key}; known are {_listed(labels)}")


def _terms_of(given: Arrivals) -> Iterator[tuple[tuple[str, ...], Mapping[str, str | int]]]:
    for path, said in (((), given), (("prefers",), given.prefers or Preferences())):
        yield from (((*path, "near"), said.near), ((*path, "apart"), said.apart), ((*path, "spread"), said.spread))


def _no_such_label(key: str, value: str, known: Sequence[str], pools: Sequence[Pool]) -> str:
    if known:
        return f"no node has the label {key} with the value {value!r}; known are {_listed(known)}"
    labels = sorted({label for pool in pools for label in pool.labels})
    return f"no node has the label {key}; " + (f"known are {_listed(labels)}" if labels else "no pool has labels")


def _matches(pool: Pool, accepted: dict[str, list[str]]) -> bool:
    return all(pool.labels.get(key) in values for key, values in accepted.items())


def warn_of_queues(classes: Mapping[str, Class], configurations: Sequence[Configuration], problems: Problems) -> None:
    """Warn of each class with applications that none of the configurations has a queue for, nor makes one."""
    partitions = [each for one in configurations for each in one.partitions if each.name == "default"]
    places = [(Placer.first(each.placement_rules), StaticTree(each)) for each in partitions]
    if not places:
        return
    for name, one in classes.items():
        refused = [each for each in one.people[:PEOPLE_LOOKED_AT] if not _is_placed(one.given, each, places)]
        if refused:
            problems.warn(*_no_queue(name, one.given, refused, partitions))


def _is_placed(given: Arrivals, person: Person, places: Sequence[tuple[Placer, StaticTree]]) -> bool:
    group = person.groups[0] if person.groups else ""
    tags = {key: filled(text, person.name, group) for key, text in given.tags.items()}
    forced = is_forced(tags)
    user, groups, _ = identity(person.name, person.groups, forced=forced)
    request = PlacementRequest("", filled(given.queue, person.name, group), user, groups, tags, forced)
    return any(placer.place(request, tree).queue is not None for placer, tree in places)


def _no_queue(
    name: str, given: Arrivals, refused: Sequence[Person], partitions: Sequence[PartitionConfig]
) -> tuple[Path, str]:
    first = refused[0]
    path: Path = ("arrivals", name, "queue") if given.queue else ("arrivals", name)
    queue = filled(given.queue, first.name, first.groups[0] if first.groups else "")
    asked = f"for {queue}" if queue else "without a queue"
    others = f", nor by {counted(len(refused) - 1, 'other user')}" if len(refused) > 1 else ""
    leaves = list(dict.fromkeys(leaf for each in partitions for leaf in _leaves(each.root, each.root.name)))
    return path, (
        f"no queue takes an application by {first.name}{others} that asks {asked}, and no placement rule makes one; "
        f"queues are {_listed(leaves)}"
    )


def _leaves(queue: QueueConfig, path: str) -> Iterable[str]:
    if not queue.children and not queue.parent:
        yield path
    for child in queue.children:
        yield from _leaves(child, f"{path}.{child.name}")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return (", ".join(names[:NAMES_SHOWN]) or "none") + more
