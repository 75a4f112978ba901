"""Hostile texts, and what it costs to check them: run as a program, for a process of its own can be bounded and killed.

`python hostile.py FIRST COUNT BYTES [FAULT]` draws COUNT texts of about BYTES bytes from the seeds FIRST, FIRST + 1, … and
prints a JSON line for each: seed, processor seconds, peak memory above that of an empty text, and the exit status. FAULT
plants a fault: `pairs` compares each two characters, `copies` keeps what was read so far at each step.

A text is a queue configuration in which one place holds a piece, or a few, thousands of times: the same one each time, or
each with a number of its own. So whatever is done for each piece is done often, and work for each pair of pieces shows.
"""

from __future__ import annotations

import json
import math
import os
import random
import resource
import sys
from collections.abc import Callable
from typing import NamedTuple

CPU_S, CPU_S_PER_MIB = 1, 24

PLACES = (
    "{}",
    "partitions:\n{}",
    "partitions: [{}]",
    "partitions: [{{name: default, queues: [{{name: root, queues: [{}]}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root, submitacl: '{}'}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root, properties: {{{}}}}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root, queues: [{{name: a, resources: {{max: {{{}}}}}}}]}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root, limits: [{}]}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root, limits: [{{limit: x, users: [{}], maxapplications: 1}}]}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root}}], placementrules: [{}]}}]",
    "partitions: [{{name: default, queues: [{{name: root}}], placementrules: [{{name: user, filter: {{users: [{}]}}}}]}}]",
    "partitions: [{{name: default, queues: [{{name: root}}], nodesortpolicy: {{type: fair, resourceweights: {{{}}}}}}}]",
)
"""Where a piece may stand, again and again."""

PIECES = (
    "[", "{{", "- ", "- a\n", "a: ", "? ", "'", '"', "a, ", "a{i}, ", "a{i}: {i}, ", "a{i}: &x{i} {i}, ", "*x, ", "&x [", "&x{i} [*x{i}], ",
    "]", "}}", "<<: *x, ", "#", "\n", " ", "\t", "\\", "|\n a\n", "a{i}: >\n b\n", "!!int {i}, ", "{{name: a}}, ", "{{name: a{i}}}, ",
    "{{name: A{i}, parent: true}}, ", "{{name: a{i}, resources: {{guaranteed: {{vcore: {i}}}, max: {{vcore: 1}}}}}}, ",
    "{{name: a{i}, queues: [", "{{limit: x, users: [u{i}], maxapplications: {i}}}, ", "{{limit: x, groups: [g], maxresources: {{v: 1}}}}, ",
    "{{users: ['*']}}, ", "{{name: user, parent: ", "{{name: fixed, value: root.a{i}, create: true}}, ", "{{name: tag, value: n{i}}}, ",
    "(a|b{i})*", "((((", "a{{1,1000}}", "[a-z]+*, ", "'(a+)+{i}', ", "u{i} g{i}", " ", "1" * 50, "9{i}", "é", "\u2028", "vcore: {i}Ei, ",
    "application.sort.policy: fair, ", "preemption.delay: {i}h, ", "p{i}: '", ".",
)  # fmt: skip


def drawn(seed: int, size: int) -> str:
    """The text of a seed."""
    draw = random.Random(seed)
    pieces = draw.choices(PIECES, k=draw.randint(1, 3))
    text: list[str] = []
    length = 0
    number = 0
    own = draw.random() < 0.7
    while length < size:
        for piece in pieces:
            text.append(piece.format(i=number if own else 0))
            length += len(text[-1].encode())
        number += 1
    return draw.choice(PLACES).format("".join(text))


def compare_pairs(text: str) -> None:
    """A planted fault: time that grows with the square of the text."""
    sum(one == other for one in text for other in text)


def keep_copies(text: str) -> None:
    """A planted fault: memory that grows with the square of the text."""
    _kept = [text[:end] for end in range(0, len(text), 64)]


FAULTS = {"pairs": compare_pairs, "copies": keep_copies}


class Cost(NamedTuple):
    """The costs of a check; `status` is negative where a signal ended it."""

    cpu_s: float
    peak_bytes: int
    status: int


def cpu_bound_s(size: int) -> int:
    """The processor time that a check of a text may take, by its length in bytes."""
    return CPU_S + math.ceil(CPU_S_PER_MIB * size / 2**20)


def cost(text: str, check: Callable[[str], object]) -> Cost:
    """Check a text in a process of its own, which is ended when it has used more processor time than it may."""
    child = os.fork()
    if child == 0:
        limit = cpu_bound_s(len(text.encode()))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        check(text)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, os.waitstatus_to_exitcode(status))


def main(first: int, count: int, size: int, fault: str = "") -> None:
    """Check texts, and print what each took."""
    from licorne.config import check  # noqa: PLC0415  whoever imports this file for its texts needs no scheduler

    def with_fault(text: str) -> None:
        FAULTS[fault](text)
        check(text)

    run = with_fault if fault else check
    empty = cost("", run)
    for seed in range(first, first + count):
        found = cost(drawn(seed, size), run)
        line = {"seed": seed, **found._asdict(), "peak_bytes": found.peak_bytes - empty.peak_bytes}
        print(json.dumps(line), flush=True)  # noqa: T201  what the program is for


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
