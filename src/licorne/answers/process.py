"""Questions, and how they are asked about a state dump in a process of its own, for services whose loop must go on deciding."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from licorne.answers.hours import hours
from licorne.answers.shares import Shares, shares
from licorne.answers.trials import Home
from licorne.answers.why import Answer, why
from licorne.state.recording import choose_run
from licorne.state.restored import Restored

ENDING_S: Final = 10.0
"""Seconds that the process may take beyond the limit of the question, to read the dump and to write the answer."""


class Question(msgspec.Struct, frozen=True):
    """A question: `why` (of `name`, see `licorne.answers.why`) or `shares`. `limit_s`: seconds to look for changes and reasons.

    `since_ns`: with shares, what was used from this time on, as far as `recording` (a folder) has it; None: it is not told.
    """

    what: Literal["why", "shares"]
    name: str = ""
    partition: str = ""
    prove: bool = True
    limit_s: float = 10.0
    since_ns: int | None = None
    recording: str = ""


class UnansweredError(LookupError):
    """The question has no answer; the text says why."""


def answer_to(question: Question, restored: Restored, more: Callable[[], bool]) -> Answer | Shares:
    """Return the answer of a scheduler, which stays as it is. `more`: asked before each trial whether to go on.

    Raises:
        UnknownNameError: nothing has the name that is asked for.
        CopyError: a trial could not be made.
        RecordingError: what was used cannot be found out.
    """
    if question.what == "shares":
        found = shares(restored, question.partition)
        if question.since_ns is None:
            return found
        used = hours(choose_run(Path(question.recording)), question.since_ns, partition=question.partition)
        return msgspec.structs.replace(found, hours=used)
    return why(Home(restored), question.name, partition=question.partition, prove=question.prove, more=more)


async def ask(dump: bytes, question: Question) -> bytes:
    """Return the answer as JSON, from a state dump.

    Raises:
        UnansweredError: nothing has the name that is asked for, or the dump cannot be restored.
        TimeoutError: there was no answer in time.
    """
    command = ["licorne.answers", msgspec.json.encode(question).decode()]
    status, answer, said = await run_module(command, dump, question.limit_s + ENDING_S)
    if status:
        raise UnansweredError(said or f"the process that answers ended with {status}")
    return answer


async def run_module(command: Sequence[str], text: bytes, limit_s: float) -> tuple[int, bytes, str]:
    """Run a module of Python, with its arguments, in a process of its own, which is killed if the wait for it ends.

    Args:
        command: the name of the module, and the arguments.
        text: the standard input.
        limit_s: how long the process may take, in seconds.

    Returns:
        Exit status, standard output, and standard error as text.

    Raises:
        TimeoutError: the process took longer.
    """
    program, pipe = (sys.executable, "-m", *command), asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(limit_s):
            out, said = await process.communicate(text)
            status = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return status, out, said.decode(errors="replace").strip()
