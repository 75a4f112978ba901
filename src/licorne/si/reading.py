"""The fast path for asks and releases as objects of the 1.9 interface: read into the core's `Allocation` and `Release`.

A peer may have put anything into a message, and the core relies on exact types (`licorne.si._check` says why). So each
field is checked: exact `str` of valid Unicode, exact `int` within its bits, exact `bool`, exact `dict` of these. An
item whose fields are all as declared becomes an `Allocation` at once; its maps are copied, since the peer may change
its own later. Any other item is left to `slow_path`, which mends what can be mended and finds the reason for a refusal.
The slow path is the rule: where the fast path succeeds, its result is the one that the slow path would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import astuple

from licorne._plain import cython
from licorne.si._check import encodable
from licorne.si._schema import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from licorne.si.allocations import Allocation, Release, Termination
from licorne.si.partitions import ShortPartitions, names_for
from licorne.si.v19 import Allocation as AllocationV19
from licorne.si.v19 import AllocationRelease as AllocationReleaseV19
from licorne.si.v19 import AllocationReleasesRequest as AllocationReleasesRequestV19
from licorne.si.v19 import AllocationRequest as AllocationRequestV19
from licorne.si.v19 import PreemptionPolicy
from licorne.si.v19 import TerminationType as TerminationTypeV19

if cython.compiled:
    from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
    from cython.cimports.cpython.unicode import PyUnicode_1BYTE_KIND, PyUnicode_KIND
    from cython.cimports.prefetch import item, prefetch, prefetch_entries

    Words = cython.typedef(cython.pointer(cython.p_void))  # an object in memory, word by word

SlowPath = Callable[[int, Any], "Allocation | None"]
"""Reads the ask with this index, whatever it holds; None if it was refused, which is then reported."""
SlowPathRelease = Callable[[int, Any], "Release | None"]
"""Reads the release with this index, whatever it holds; None if it was left out, which is then noted."""

_TERMINATIONS = sorted(Termination)
"""The core's terminations; the index of each is its number in the 1.9 interface."""

# Typed, for compiled code.
_INT32_MIN = cython.declare(cython.longlong, INT32_MIN)
_INT32_MAX = cython.declare(cython.longlong, INT32_MAX)


FIRST_AHEAD = cython.declare(cython.Py_ssize_t, 6)  # the prefetch begins this many messages ahead
# A sample message, to find out in which words of a message its fields are stored.
_SOME_KEY = "key"
_SOME_RESOURCE: dict[str, int] = {}
_SOME = AllocationV19(allocation_key=_SOME_KEY, resource_per_alloc=_SOME_RESOURCE)


def read_v19(values: Sequence[Any], partitions: ShortPartitions, slow_path: SlowPath) -> list[Allocation]:
    """Read asks and allocations of the 1.9 interface; `partitions` maps names of partitions to the short ones."""
    made: list[Allocation] = []
    index: cython.Py_ssize_t
    name: object = None  # the last name of a partition; mostly all are the same object
    short: str = ""
    of: object = AllocationV19
    key: cython.Py_ssize_t = 0  # the words of a message that hold these two fields; 0: no prefetch
    resource: cython.Py_ssize_t = 0
    if cython.compiled and type(values) is list and len(values) > FIRST_AHEAD:
        key = _place(_SOME, _SOME_KEY)
        resource = _place(_SOME, _SOME_RESOURCE)
    for index, value in enumerate(values):
        ask: Allocation | None = None
        if key and resource and index + FIRST_AHEAD < len(cython.cast(list, values)):
            _prefetch(cython.cast(list, values), index, of, key, resource)
        if type(value) is of:
            ask = _ask_v19(astuple(value))
        if ask is None:
            ask = slow_path(index, value)
        else:
            if ask.partition is not name:
                name = ask.partition
                short = partitions[name]
            ask.partition = short
        if ask is not None:
            made.append(ask)
    return made


# -- prefetch: guesses about the layout of objects in memory, on which no result depends -------------------


@cython.cfunc
@cython.exceptval(check=False)
def _prefetch(
    values: list[Any], index: cython.Py_ssize_t, of: object, key: cython.Py_ssize_t, resource: cython.Py_ssize_t
) -> cython.void:
    """Prefetch the next messages while the one at `index` is read.

    Messages lie scattered in memory, and each is a chain of pointers: from the message to its key and its resource, and
    from the resource to its entries. The processor would wait at every link, since it learns an address only from the
    link before. So this prefetches in stages: the message six places ahead, the two fields (`key` and `resource` are
    their words) of the one four places ahead, and the entries of the resource of the one two places ahead.
    """
    if cython.compiled:
        message: cython.p_void
        words: Words
        prefetch(item(values, index + FIRST_AHEAD), 2)
        message = item(values, index + 4)
        if type(cython.cast(object, message)) is of:
            words = cython.cast(Words, message)
            prefetch(words[key], 1)
            prefetch(words[resource], 1)
        message = item(values, index + 2)
        if type(cython.cast(object, message)) is of:
            words = cython.cast(Words, message)
            if words[resource] != cython.NULL and type(cython.cast(object, words[resource])) is dict:
                prefetch_entries(words[resource], 2)


@cython.cfunc
def _place(message: object, value: object) -> cython.Py_ssize_t:
    """Return the index of the word of the message that refers to this object; 0 if none does."""
    if cython.compiled:
        place: cython.Py_ssize_t
        words: Words = cython.cast(Words, cython.cast(cython.p_void, message))
        for place in range(2, type(message).__basicsize__ // cython.sizeof(cython.p_void)):
            if words[place] == cython.cast(cython.p_void, value):
                return place
    return 0


# -- one ask ---------------------------------------------------------------------------------------------


@cython.cfunc
def _ask_v19(row: tuple[Any, ...]) -> Allocation | None:
    """Make an ask of a message's fields, in the order of their declaration; None if one is not as declared."""
    key, tags, resource, priority, node_id, application_id, partition, task_group, placeholder, originator, policy = row
    if not (_is_text(key) and _is_text(node_id) and _is_text(application_id) and _is_text(partition)):
        return None
    if not (_is_text(task_group) and _is_flag(placeholder) and _is_flag(originator) and _is_int32(priority)):
        return None
    if not _are_tags(tags) or not (resource is None or _are_amounts(resource)):
        return None
    own: cython.bint = False
    other: cython.bint = False
    if policy is not None:
        if type(policy) is not PreemptionPolicy:
            return None
        flags: tuple[Any, ...] = astuple(policy)
        if not (_is_flag(flags[0]) and _is_flag(flags[1])):
            return None
        own = flags[0] is True
        other = flags[1] is True
    ask: Allocation = Allocation.__new__(Allocation)
    ask.key = key
    ask.application_id = application_id
    ask.partition = partition
    ask.resource = None if resource is None else cython.cast(dict, resource).copy()
    ask.priority = priority
    ask.priority_class = ""
    ask.tags = cython.cast(dict, tags).copy() if len(cython.cast(dict, tags)) else None
    ask.node_id = node_id
    ask.task_group = task_group
    ask.placeholder = placeholder is True
    ask.originator = originator is True
    ask.allow_preempt_self = own
    ask.allow_preempt_other = other
    ask.max_allocations = 1
    ask.timeout_ms = 0
    ask.uuid = ""
    ask.independent = False
    return ask


@cython.ccall
def read_ends_v19(request: object) -> list[Any] | None:
    """Read a request that holds releases alone, all as declared. None: it holds something else."""
    if type(request) is not AllocationRequestV19:
        return None
    releases, rm_id, asks = astuple(request)
    if type(asks) is not list or asks or type(releases) is not AllocationReleasesRequestV19:
        return None
    if not _is_text(rm_id):
        return None
    (listed,) = astuple(releases)
    if type(listed) is not list:
        return None
    made: list[Release] = []
    partitions: ShortPartitions = names_for(rm_id).short
    for value in cython.cast(list, listed):
        release: Release | None = _release_v19(value, partitions)
        if release is None:
            return None
        made.append(release)
    return made


def read_releases_v19(values: Sequence[Any], partitions: ShortPartitions, slow_path: SlowPathRelease) -> list[Release]:
    """Read releases of the 1.9 interface; `partitions` maps names of partitions to the short ones."""
    made: list[Release] = []
    index: cython.Py_ssize_t
    for index, value in enumerate(values):
        release: Release | None = _release_v19(value, partitions)
        if release is None:
            release = slow_path(index, value)
        if release is not None:
            made.append(release)
    return made


@cython.cfunc
def _release_v19(value: object, partitions: Any) -> Release | None:
    """Make a release of a message; None if it is not as declared."""
    if type(value) is not AllocationReleaseV19:
        return None
    partition, application_id, termination, message, key = astuple(value)
    if not (_is_text(partition) and _is_text(application_id) and _is_text(message) and _is_text(key)):
        return None
    if type(termination) is not TerminationTypeV19:
        return None
    terminations: list[Any] = _TERMINATIONS
    number: cython.Py_ssize_t = termination
    release: Release = Release.__new__(Release)
    release.partition = partitions[partition]
    release.application_id = application_id
    release.key = key
    release.uuid = ""
    release.termination = terminations[number]
    release.message = message
    release.what = "both"
    return release


# -- checks: is a value exactly as declared? -------------------------------------------------------------


@cython.cfunc
def _is_text(value: object) -> cython.bint:
    """Is the value an exact `str` that can be encoded?"""
    if type(value) is not str:
        return False
    if cython.compiled:
        # A surrogate, which cannot be encoded, takes more than one byte in memory; nearly all texts take one each.
        if PyUnicode_KIND(value) == PyUnicode_1BYTE_KIND:
            return True
    return value.isascii() or encodable(value)


@cython.cfunc
def _is_flag(value: object) -> cython.bint:
    return value is True or value is False


@cython.cfunc
def _is_int64(value: object) -> cython.bint:
    if type(value) is not int:
        return False
    if cython.compiled:
        overflow: cython.int = 0
        PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
        return overflow == 0
    return INT64_MIN <= value <= INT64_MAX


@cython.cfunc
def _is_int32(value: object) -> cython.bint:
    if not _is_int64(value):
        return False
    number: cython.longlong = value  # type: ignore[assignment]
    return _INT32_MIN <= number <= _INT32_MAX


@cython.cfunc
def _are_tags(value: object) -> cython.bint:
    if type(value) is not dict:
        return False
    if not cython.cast(dict, value):  # the usual case
        return True
    for name, content in cython.cast(dict, value).items():
        if not (_is_text(name) and _is_text(content)):
            return False
    return True


@cython.cfunc
def _are_amounts(value: object) -> cython.bint:
    if type(value) is not dict:
        return False
    for name, amount in cython.cast(dict, value).items():
        if not (_is_text(name) and _is_int64(amount)):
            return False
    return True


def within(inputs: Sequence[Any], name_chars: int, entries: int) -> bool:
    """Are the asks among these inputs within bounds, `name_chars` for each name and `entries` for each map?

    Asks read from equal bytes share their maps, so a map is mostly the one that was checked just before.
    """
    most: cython.Py_ssize_t = name_chars
    most_entries: cython.Py_ssize_t = entries
    tags: object = None
    resource: object = None
    for value in inputs:
        if type(value) is not Allocation:
            continue
        ask: Allocation = value
        if len(ask.key) > most or len(ask.application_id) > most or len(ask.task_group) > most:
            return False
        if ask.tags is not tags:
            tags = ask.tags
            if not _is_within(ask.tags, most, most_entries):
                return False
        if ask.resource is not resource:
            resource = ask.resource
            if not _is_within(ask.resource, most, most_entries):
                return False
    return True


@cython.cfunc
def _is_within(values: object, most: cython.Py_ssize_t, most_entries: cython.Py_ssize_t) -> cython.bint:
    if values is None:
        return True
    if len(cython.cast(dict, values)) > most_entries:
        return False
    for name in cython.cast(dict, values):
        if len(cython.cast(str, name)) > most:
            return False
    return True
